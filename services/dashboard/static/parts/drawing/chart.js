// @ts-check
// A chart of lines over time (uPlot): axes with units and the zone, gaps where nothing is known, and the figures under the pointer.

import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { axisTexts, countText, valueText } from "../../core/words/format.js";
import { axisOf, lonePoints, movedTo, pointOf } from "../../core/answers/series.js";
import { momentText, tickText, wholeMinutes } from "../../core/place/ranges.js";
import { html } from "../html.js";
import { place as placeMarks } from "./marks.js";

/** @typedef {import("uplot")} Plot */

/** The library comes while figures are asked for: they do not wait for it. @type {import("@preact/signals").Signal<typeof import("uplot") | null>} */
const library = signal(null);
const isMissing = signal(false);
import("uplot").then(
  (module) => {
    library.value = module.default;
  },
  () => {
    isMissing.value = true;
  },
);

const COLOURS = 10;
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = signal(dark.matches);
dark.addEventListener("change", () => {
  isDark.value = dark.matches;
});

/** Colour of a line by its place among the lines of now; one of earlier has that of its own. @param {import("../../core/answers/series.js").Line[]} lines */
const colours = (lines) => {
  let now = 0;
  return lines.map((line) => (line.beside ?? now++) % COLOURS);
};
/** @param {HTMLElement} of @param {string} name */
const style = (of, name) => getComputedStyle(of).getPropertyValue(name).trim();

/**
 * @param {{times: number[], lines: import("../../core/answers/series.js").Line[], unit: string, tz: string, title: string, height?: number,
 *   zoom?: (from_ms: number, to_ms: number) => void, hasCounts?: boolean, top?: number, isSmall?: boolean,
 *   range?: {from_ms: number, to_ms: number}, marks?: import("./marks.js").Mark[]}} props - Times in seconds. `top`: the least that the scale reaches up to. `range`: what was asked for. Small: the figure under the pointer alone; the zone is said once beside all of them.
 */
export function Chart({ times, lines, unit, tz, title, height = 240, zoom, hasCounts = true, top = 0, isSmall = false, range, marks = [] }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {Plot | null} */ (null));
  const at = useSignal(/** @type {number | null} */ (null));
  const axis = useRef(axisOf(times, range));
  axis.current = axisOf(times, range);
  const form = JSON.stringify([lines.map((line) => [line.title, line.beside]), unit, tz, title, height, Boolean(zoom), isDark.value, top, marks, Boolean(library.value)]);
  const data = /** @type {any} */ ([times, ...lines.map((line) => line.values)]);

  // Before the page is seen, so that nothing jumps.
  useLayoutEffect(() => {
    const into = /** @type {HTMLElement} */ (box.current);
    if (!library.value) return undefined;
    const made = new library.value(options(library.value, into, { lines, unit, tz, height, zoom, at, top, marks, across: axis }), data, into);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: into.clientWidth, height }));
    watch.observe(into);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [form]);
  useLayoutEffect(() => plot.current?.setData(data), [JSON.stringify(data)]);

  const { marked, mark, unmark } = useMark(plot);
  const keyed = (/** @type {KeyboardEvent} */ event) => {
    if (marked && zoom && (event.key === "Enter" || event.key === "Escape")) {
      event.preventDefault();
      unmark();
      if (event.key === "Enter" && marked.from !== marked.to) zoom(...stretchOf(marked));
      return;
    }
    const next = movedTo(event.key, at.value, times.length);
    if (next === null) return;
    event.preventDefault();
    if (event.shiftKey && zoom) mark({ from: marked?.from ?? times[at.value ?? next], to: times[next] });
    else unmark();
    plot.current?.setCursor({ left: plot.current.valToPos(times[next], "x"), top: 10 });
    at.value = next;
  };
  const shown = at.value !== null && at.value < times.length ? at.value : null;
  return html`<figure class="chart">
    <div class="plot" ref=${box} tabindex="0" role="group" aria-label=${`${title}. Left and right arrow keys read the figures.${zoom ? " With Shift they mark a stretch: Enter zooms to it, Escape ends it." : ""}`} onKeyDown=${keyed} onPointerDown=${unmark} style=${{ minHeight: `${height}px` }}></div>
    ${isMissing.value && html`<p class="notice" role="status">The chart cannot be drawn: a part of the page did not come. Load the page again.</p>`}
    ${(!isSmall || shown !== null) && html`<${Legend} lines=${lines} unit=${unit} at=${shown} hasCounts=${hasCounts} />`}
    <figcaption class="note" aria-live="polite">${marked && `${momentText(marked.from * 1_000, tz, { seconds: true })} – ${momentText(marked.to * 1_000, tz, { seconds: true })} is marked · `}${shown === null ? (isSmall ? "\u00a0" : `Times are of ${tz}`) : momentText(times[shown] * 1_000, tz, { seconds: true })}</figcaption>
  </figure>`;
}

/** A stretch that keys mark, from where they began, in seconds: `to` may be earlier. @typedef {{from: number, to: number}} Marked */

/** What is marked by keys: drawn as what a pointer marks, also when the chart is made again. @param {{current: Plot | null}} plot */
function useMark(plot) {
  const marked = useSignal(/** @type {Marked | null} */ (null));
  const select = (/** @type {number} */ left, /** @type {number} */ width) => plot.current?.setSelect({ left, top: 0, width, height: width && plot.current.over.clientHeight }, false);
  useLayoutEffect(() => {
    if (!marked.value || !plot.current) return;
    const [left, right] = [marked.value.from, marked.value.to].map((at) => /** @type {Plot} */ (plot.current).valToPos(at, "x")).sort((one, other) => one - other);
    select(left, right - left);
  });
  const unmark = () => {
    if (marked.value) select(0, 0);
    marked.value = null;
  };
  return { marked: marked.value, mark: (/** @type {Marked} */ stretch) => (marked.value = stretch), unmark };
}

/** @param {Marked} marked */
const stretchOf = ({ from, to }) => wholeMinutes(1_000 * Math.min(from, to), 1_000 * Math.max(from, to));

/** @param {{lines: import("../../core/answers/series.js").Line[], unit: string, at: number | null, hasCounts: boolean}} props */
function Legend({ lines, unit, at, hasCounts }) {
  const places = colours(lines);
  return html`<ul class="legend">
    ${lines.map((line, place) => html`<li key=${line.title} class=${`key line-${places[place]}${line.beside === undefined ? "" : " before"}`}>
      <span class="name">${line.name ?? line.title}</span>
      ${at !== null && html` <b>${valueText(unit, line.values[at])}</b>${hasCounts && html` <span class="note">n ${countText(line.counts[at])}</span>`}`}
    </li>`)}
  </ul>`;
}

/** Charts below this height have their figures beside the axis closer together, px. */
const LOW = 180;

/** @param {typeof import("uplot")} uPlot @param {HTMLElement} into @param {any} what @returns {import("uplot").Options} */
function options(uPlot, into, { lines, unit, tz, height, zoom, at, top, marks, across }) {
  const ink = style(into, "--soft");
  const grid = style(into, "--edge");
  const places = colours(lines);
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width: into.clientWidth || 600,
    height,
    // So that the last time beside the axis is not cut off.
    padding: [null, 30, null, null],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), tz),
    legend: { show: false },
    cursor: { drag: { x: Boolean(zoom), y: false, setScale: false }, points: { size: 6 } },
    scales: { x: { range: () => across.current ?? [null, null] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, top) > 0 ? Math.max(high ?? 0, top) * 1.08 : 1] } },
    axes: [
      { ...axis, space: 74, values: (_, ticks, __, ___, step) => ticks.map((tick, at) => tickText(tick * 1_000, tz, step, at === 0)) },
      // Also a low chart has a scale: more than its zero.
      { ...axis, size: 78, space: height < LOW ? 16 : 30, values: (_, ticks) => axisTexts(unit, ticks) },
    ],
    series: [
      {},
      ...lines.map((/** @type {any} */ line, /** @type {number} */ place) => ({
        label: line.title,
        stroke: style(into, `--line-${places[place]}`),
        width: 2,
        dash: line.beside === undefined ? undefined : [4, 4],
        // A point between two gaps would not be seen as a line.
        points: { ...pointOf(line, style(into, `--line-${places[place]}`), style(into, "--card")), filter: lonePoints },
      })),
    ],
    hooks: {
      draw: [(plot) => placeMarks(plot, marks)],
      // Without an event nobody has moved it: a new answer, or a chart that is made again, leaves the place that is read.
      setCursor: [(plot) => { at.value = plot.cursor.idx ?? (plot.cursor.event ? null : at.peek()); }],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 5 || !zoom) return;
          const [from, to] = [left, left + width].map((x) => Math.round(plot.posToVal(x, "x") * 1_000));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom(...wholeMinutes(from, to));
        },
      ],
    },
  };
}
