// @ts-check
// The viewers at a time of several titles in one chart: those with the most at once, or those that are chosen.

import { chosenOf, CURVES_MAX, linesOfTitles, toggled } from "../core/audience.js";
import { countText } from "../core/words/format.js";
import { HOUR_MS, momentText } from "../core/place/ranges.js";
import { Answered, useQuestion } from "../parts/data/asking.js";
import { Chart } from "../parts/drawing/chart.js";
import { Term } from "../parts/glossary.js";
import { html } from "../parts/html.js";
import { go, Link, place } from "../parts/place.js";

/** So near now some views that were open then are open still, and miss in a curve of finished ones: most are shorter. */
const OPEN_MS = 6 * HOUR_MS;
/** What a curve of viewers is, for those who ask. */
const COUNTED = "finished views that had begun at a moment, and ended later";

/** The name of such a curve, with what it means. */
export const AtATime = () => html`<${Term} title="Viewers at a time" term="viewers at a time" formula=${COUNTED} />`;

/** @returns {import("../parts/data/asking.js").Answer} The curves of the place. */
export function useTogether() {
  const chosen = chosenOf(place.value.more.videos);
  return useQuestion("/v1/concurrency", place.value, { videos: chosen.length ? JSON.stringify(chosen) : "" }, 30_000);
}

/** The titles that are drawn. @param {any} data */
const drawnOf = (data) => data.titles.map((/** @type {any} */ one) => one.video_id);

/** @param {{of: import("../parts/data/asking.js").Answer}} props */
export function Together({ of }) {
  return html`<section aria-labelledby="together-title"><h2 id="together-title"><${AtATime} /></h2>
    <${Answered} of=${of} height=${360} draw=${(/** @type {any} */ data) => html`<${Drawn} data=${data} />`} />
  </section>`;
}

/** @param {{data: any}} props */
function Drawn({ data }) {
  const { tz, more } = place.value;
  const isChosen = chosenOf(more.videos).length > 0;
  if (!data.titles.length) return html`<p class="empty">No view of a video with an id in this range.</p>`;
  const { times, lines } = linesOfTitles(data);
  const drawn = lines.map((line, at) => ({ ...line, name: html`<${Named} one=${data.titles[at]} title=${line.title} />` }));
  const all = `${countText(data.titles_n)} ${data.titles_n === 1 ? "title" : "titles"} of this range, n ${countText(data.n)} views`;
  return html`
    <p class="note" id="together-of">${isChosen ? html`The titles that are ticked below. <button type="button" id="largest" onClick=${() => go({ more: { videos: "" } })}>Those with the most at once</button>` : `Those with the most at once, of ${all}. Tick titles below to draw others, up to ${CURVES_MAX}.`}</p>
    <${Chart} times=${times} lines=${drawn} unit="viewers" tz=${tz} title="Viewers at a time by title" hasCounts=${false} range=${data.about.range}
      zoom=${(/** @type {number} */ from, /** @type {number} */ to) => go({ from: String(from), to: String(to), range: "" })} />
    <${OpenMissing} range=${data.about.range}><${Link} to=${{ screen: "", more: {} }}>Viewers now<//><//>`;
}

/** A title of the legend: it leads to itself, with its highest moment. @param {{one: any, title: string}} props */
function Named({ one, title }) {
  const peak = one.peak?.views ? ` · most ${countText(one.peak.views)} at ${momentText(one.peak.at_ms, place.value.tz)}` : "";
  return html`<${Link} to=${{ more: { video: one.video_id } }}>${title}<//> <span class="note">n ${countText(one.n)}${peak}</span>`;
}

/** Whether a title of a list is drawn. @param {{of: import("../parts/data/asking.js").Answer, video: string, title: string}} props */
export function DrawnBox({ of, video, title }) {
  const drawn = of.data ? drawnOf(of.data) : [];
  const isDrawn = drawn.includes(video);
  const isFull = !isDrawn && drawn.length >= CURVES_MAX;
  return html`<input type="checkbox" class="drawn" aria-label=${`Draw ${title}`} title=${isFull ? `at most ${CURVES_MAX} titles are drawn` : "drawn above"} checked=${isDrawn} disabled=${!of.data || isFull}
    onChange=${() => go({ more: { videos: toggled(drawn, video) } })} />`;
}

/** Says whom the curves of a range miss that reaches to the present. @param {{range: {to_ms: number}, children?: any}} props - `children`: where those are. */
export const OpenMissing = ({ range, children }) =>
  range.to_ms > Date.now() - OPEN_MS && html`<p class="note" id="still-open">Finished views alone are counted. Those that are open are missing, so a curve falls towards now. ${children}</p>`;
