// @ts-check
// The timeline of a view: a lane of states, of errors, of ads, of bitrates, of the player's requests, over one axis.

import { bitrateText, durationText } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { adsOf, axisStep, LEGEND, levelsOf, markText, restName, sinceText, statesOf, unkeptFrom } from "../../core/view/timeline.js";
import { html } from "../html.js";
import { RequestsDrawn } from "./requests.js";

/** @param {{row: any, span_ms: number, tz: string, errors: import("../../core/view/timeline.js").Mark[], requests: import("./requests.js").Reading}} props */
export function Lanes({ row, span_ms, tz, errors, requests }) {
  const ads = adsOf(row, span_ms);
  const levels = levelsOf(row, span_ms);
  const from_ms = unkeptFrom(row) ?? span_ms;
  const rest = from_ms < span_ms && html`<${Unkept} name=${restName(row)} from_ms=${from_ms} span_ms=${span_ms} />`;
  return html`
    <ul class="states">${[...LEGEND, ...(rest ? ["unkept"] : []), ...(requests.read?.requests.length ? OF_REQUESTS : [])].map((name) => html`<li class=${name}>${name === "unkept" ? restName(row) : (NAMES[name] ?? name)}</li>`)}</ul>
    <div id="view-life">
      <${Lane} name="State" rest=${rest}><${Blocks} found=${statesOf(row, span_ms)} span_ms=${span_ms} /><//>
      ${(errors.length > 0 || rest) && html`<${Lane} name="Errors" rest=${rest} scale=${errors.some(({ event }) => event === "warning") && "and warnings"}><${Marks} found=${errors} span_ms=${span_ms} /><//>`}
      ${(ads.length > 0 || (rest && row.ad_impressions > 0)) && html`<${Lane} name="Ads" rest=${rest}><${Blocks} found=${ads} span_ms=${span_ms} /><//>`}
      ${levels.length > 0 && html`<${Lane} name="Bitrate" rest=${rest} scale=${`to ${bitrateText(highest(levels))}`} isTall><${Bitrates} levels=${levels} span_ms=${span_ms} /><//>`}
      <${Lane} name="Requests" isTall=${!!requests.read}><${RequestsDrawn} row=${row} of=${requests} span_ms=${span_ms} /><//>
    </div>
    <${Axis} row=${row} span_ms=${span_ms} tz=${tz} />`;
}

/** @type {Record<string, string>} */
const NAMES = { waits: "waiting for a first byte", loads: "loading", canceled: "canceled" };
/** What requests add to the legend; those that failed are as red as a failure. */
const OF_REQUESTS = ["waits", "loads", "canceled"];

/** @param {{name: string, rest?: any, scale?: string | false, isTall?: boolean, children?: any}} props - `scale`: what its height stands for, or what else it has. */
const Lane = ({ name, rest, scale, isTall, children }) => html`<div class=${isTall ? "lane tall" : "lane"}><span class="lane-name">${name}${scale && html`<small>${scale}</small>`}</span><div class="drawn">${children}${rest}</div></div>`;

/** The end of a lane of which no events are known. @param {{name: string, from_ms: number, span_ms: number}} props */
function Unkept({ name, from_ms, span_ms }) {
  const text = `${name}: ${durationText(span_ms - from_ms)}, from ${durationText(from_ms)}`;
  return html`<span class="unkept" role="img" aria-label=${text} title=${text} style=${{ left: `${(100 * from_ms) / span_ms}%` }}><b>${name}</b></span>`;
}

/** @param {import("../../core/view/timeline.js").Level[]} levels */
const highest = (levels) => Math.max(...levels.map((one) => one.bitrate_bps));

/** What a lane without anything is called. */
const NOTHING = "nothing";

/** @param {{found: import("../../core/view/timeline.js").Stretch[], span_ms: number}} props */
function Blocks({ found, span_ms }) {
  const label = found.map(([kind, from, to]) => `${kind} ${durationText(to - from)}`).join(", ");
  return html`<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label=${label || NOTHING}>
    ${found.map(([kind, from, to]) => {
      // What is too short to be seen is drawn all the same: stalls are what is looked for.
      const width = Math.max(2, ((to - from) / span_ms) * 1000);
      const x = Math.min(1000 - width, (from / span_ms) * 1000);
      return html`<rect class=${kind} x=${x} width=${width} y="0" height="100"><title>${`${kind}: ${durationText(to - from)}, from ${durationText(from)}`}</title></rect>`;
    })}
  </svg>`;
}

/** A mark's width, of 1,000: as narrow as can be pointed at. */
const MARK = 6;

/** What happens at a moment. @param {{found: import("../../core/view/timeline.js").Mark[], span_ms: number}} props */
function Marks({ found, span_ms }) {
  const x = (/** @type {number} */ at_ms) => Math.min(1000 - MARK, Math.max(0, (at_ms / span_ms) * 1000 - MARK / 2));
  return html`<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label=${found.map(markText).join("; ") || NOTHING}>
    ${found.map((one) => html`<rect class=${one.event === "error" ? "failed" : "warned"} x=${x(one.at_ms)} width=${MARK} y="0" height="100"><title>${markText(one)}</title></rect>`)}
  </svg>`;
}

/** @param {{levels: import("../../core/view/timeline.js").Level[], span_ms: number}} props */
function Bitrates({ levels, span_ms }) {
  // Below the edge, where the highest line would be cut.
  const top = highest(levels) * 1.1;
  const x = (/** @type {number} */ at_ms) => ((at_ms / span_ms) * 1000).toFixed(2);
  const y = (/** @type {number} */ bps) => (100 - (bps / top) * 100).toFixed(2);
  const steps = levels.map(({ from_ms, bitrate_bps }, n) => (n ? `H${x(from_ms)}V${y(bitrate_bps)}` : `M${x(from_ms)} ${y(bitrate_bps)}`));
  const path = `${steps.join("")}H${x(levels[levels.length - 1].to_ms)}`;
  return html`<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label=${`Bitrate: ${levels.map((one) => bitrateText(one.bitrate_bps)).join(", ")}`}>
    <path class="fill" d=${`${path}V100H${x(levels[0].from_ms)}Z`} /><path class="stroke" d=${path} />
    ${levels.map(({ from_ms, to_ms, bitrate_bps }) => html`<rect class="hit" x=${x(from_ms)} width=${x(to_ms - from_ms)} y="0" height="100"><title>${`${bitrateText(bitrate_bps)}, from ${durationText(from_ms)}`}</title></rect>`)}
  </svg>`;
}

/** Since the beginning, and under the ends the wall clock. @param {{row: any, span_ms: number, tz: string}} props */
function Axis({ row, span_ms, tz }) {
  const step = axisStep(span_ms);
  const marks = Array.from({ length: Math.floor(span_ms / (step * 1000)) + 1 }, (_, at) => at * step);
  return html`<div class="axis" aria-hidden="true">${marks.map((s) => html`<span class=${s * 1000 > 0.97 * span_ms ? "last" : ""} style=${{ left: `${(100 * s * 1000) / span_ms}%` }}>${sinceText(s)}</span>`)}</div>
    <p class="note wall">${momentText(row.view_start_ms, tz, { seconds: true, year: true })} – ${momentText(row.view_start_ms + span_ms, tz, { seconds: true })} (${tz})</p>`;
}
