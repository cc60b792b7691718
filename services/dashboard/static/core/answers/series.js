// @ts-check
// Answers of /v1/timeseries as lines of a chart. Pure.

import { drawnValue } from "../figures/figures.js";
import { labelText } from "../words/labels.js";

/** @typedef {{value: number | null, n: number}} Figure */
/** @typedef {{from_ms: number, to_ms: number, n: number, metrics: Record<string, Figure>, is_partial?: boolean}} Point */
/** @typedef {{kind: string, key: (string | null)[], labels: string[], n: number, points?: Point[], metrics: Record<string, Figure>}} Group */
/** @typedef {{title: string, kind: string, key: (string | null)[], values: (number | null)[], counts: number[], beside?: number, name?: any}} Line - `beside`: the place, among the lines of now, of the one that this is of earlier. `name`: what a legend has for the title. */

/** Up to when an answer has the views. @param {{about?: {as_of_ms: number | null}}} answer */
const untilOf = (answer) => answer.about?.as_of_ms ?? -Infinity;

/** @typedef {{points: Point[], groups?: Group[], about?: {as_of_ms: number | null}}} Series */

/**
 * @param {Series & {compared?: Series}} answer
 * @param {string} metric
 * @param {string} title - Of the only line.
 * @returns {{times: number[], lines: Line[]}} Times in seconds since 1970. What is not shown for lack of views is a gap; a count of none is 0 where views are counted. Behind each line is the one of
 *   the range that is compared with, if there is one.
 */
export function linesOf(answer, metric, title) {
  const groups = answer.groups?.filter((one) => one.n > 0 || one.kind === "value") ?? [{ kind: "value", key: [], labels: [title], n: 0, points: answer.points, metrics: {} }];
  const times = (groups[0]?.points ?? []).map((point) => point.from_ms / 1_000);
  const { compared } = answer;
  // A group of now may have none of earlier.
  const fit = (/** @type {any[]} */ values, /** @type {any} */ filler) => times.map((_, at) => values[at] ?? filler);
  const lines = groups.flatMap((group, beside) => {
    const name = group.labels.map(labelText).join(" · ");
    const line = lineOf(name, group, metric, untilOf(answer));
    if (!compared) return [line];
    const points = answer.groups ? compared.groups?.find((one) => one.kind === group.kind && JSON.stringify(one.key) === JSON.stringify(group.key))?.points : compared.points;
    const before = lineOf(`${name}, before`, { ...group, points }, metric, untilOf(compared));
    return [line, { ...before, values: fit(before.values, null), counts: fit(before.counts, 0), beside }];
  });
  return { times, lines };
}

/**
 * Since when the last time of an answer that has views runs, if it is not over: its figure changes still. Null if it is over.
 * @param {{points: Point[], groups?: Group[], about: {as_of_ms: number | null}}} answer
 */
export function unfinishedFrom({ points, groups, about }) {
  const all = groups ? groups.flatMap((group) => group.points ?? []) : points;
  const last = all.filter((point) => point.n > 0).reduce((found, point) => (found && found.to_ms >= point.to_ms ? found : point), /** @type {Point | null} */ (null));
  return last && about.as_of_ms !== null && last.to_ms > about.as_of_ms ? last.from_ms : null;
}

/**
 * The points that are of a part of their day, week or month, as the range begins or ends within it.
 * @param {{points: Point[], groups?: Group[]}} answer
 */
export const partialOf = ({ points, groups }) => (groups ? (groups[0]?.points ?? []) : points).filter((point) => point.is_partial);

/** What is drawn around a single time that no range is known of, to either side, s. */
const AROUND_S = 1_800;

/**
 * What the axis of times reaches over, from and to, in seconds. A single time has no stretch of its own: it is drawn within the range that was asked for.
 * @param {number[]} times - In seconds.
 * @param {{from_ms: number, to_ms: number} | undefined} range
 * @returns {[number, number] | null} Null without a time.
 */
export function axisOf(times, range) {
  if (!times.length) return null;
  const [first, last] = [times[0], times[times.length - 1]];
  if (last > first) return [first, last];
  return range ? [Math.min(first, range.from_ms / 1_000), Math.max(first, range.to_ms / 1_000)] : [first - AROUND_S, first + AROUND_S];
}

/** @typedef {{from_value: number, to_value: number, n: number}} Bin */

/**
 * The bins of a distribution with those of an earlier one, by their bounds: where one has no view, it has 0.
 * @param {Bin[]} bins
 * @param {Bin[]} earlier
 * @returns {(Bin & {before: number})[]}
 */
export function binsBeside(bins, earlier) {
  const found = new Map(earlier.map((bin) => [bin.from_value, { ...bin, n: 0, before: bin.n }]));
  for (const bin of bins) found.set(bin.from_value, { ...bin, before: found.get(bin.from_value)?.before ?? 0 });
  return [...found.values()].sort((one, other) => one.from_value - other.from_value);
}

/**
 * A point of a line that stands alone: one of earlier is a ring.
 * @param {Line} line @param {string} colour @param {string} paper - What the chart is drawn on.
 */
export const pointOf = (line, colour, paper) => (line.beside === undefined ? { size: 5, fill: colour, stroke: colour, width: 1 } : { size: 8, fill: paper, stroke: colour, width: 2 });

/** The largest value of all lines: one scale for charts beside each other. @param {Line[]} lines */
export const topOf = (lines) => Math.max(0, ...lines.flatMap((line) => line.values.map((value) => value ?? 0)));

/**
 * @param {string} title
 * @param {Group} group
 * @param {string} metric
 * @param {number} until_ms - Up to when views are counted.
 * @returns {Line}
 */
function lineOf(title, group, metric, until_ms) {
  const points = group.points ?? [];
  const figures = points.map((point) => point.metrics[metric]);
  return {
    title,
    kind: group.kind,
    key: group.key,
    values: figures.map((figure, at) => drawnValue(metric, figure, points[at].from_ms < until_ms)),
    counts: figures.map((figure) => figure?.n ?? 0),
  };
}

/**
 * Where a key moves the place that is read. @param {string} key @param {number | null} at - Null: none is read yet. @param {number} count - Of times.
 * @returns {number | null} Null for a key that moves nothing.
 */
export function movedTo(key, at, count) {
  const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[key];
  if (!by || !count) return null;
  return Math.min(count - 1, Math.max(0, (at ?? (by > 0 ? -1 : count)) + by));
}

/**
 * The places of values between two gaps, which no line shows, in what the chart has now: it outlives an answer. Null where every point is shown.
 * @param {{data: any}} plot
 * @param {number} of - Which series.
 * @param {boolean} [isShown]
 */
export function lonePoints(plot, of, isShown) {
  if (isShown) return null;
  const values = /** @type {(number | null)[]} */ (plot.data[of]);
  return values.flatMap((value, at) => (value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : []));
}
