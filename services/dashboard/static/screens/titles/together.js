// @ts-check
// The viewers at a time of several titles in one chart: those with the most at once, or those that are chosen.

import { useRef } from "preact/hooks";
import { chosenOf, CURVES_MAX, linesOfTitles, openStretch, toggled } from "../../core/answers/audience.js";
import { countText } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { Answered, presentNow_ms, useQuestion } from "../../parts/data/asking.js";
import { Chart } from "../../parts/drawing/chart.js";
import { Term } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { go, Link, place } from "../../parts/place.js";
import { LiveViewers } from "./live.js";

/** What a curve of viewers is, for those who ask. */
const COUNTED = "finished views that had begun at a moment, and ended later; each point is the most at once from its time to that of the next";

/** The name of such a curve, with what it means. */
export const AtATime = () => html`<${Term} title="Viewers at a time" term="viewers at a time" formula=${COUNTED} />`;

/**
 * `of`: the curves of the place. `drawn`: the ids of the titles that are drawn or asked for; while those with the most at once are
 * asked for, the former ones, and `isKnown` is false.
 * @typedef {{of: import("../../parts/data/asking.js").Answer, drawn: string[], isKnown: boolean}} Curves
 */

/** @returns {Curves} */
export function useTogether() {
  const chosen = chosenOf(place.value.more.videos);
  const of = useQuestion("/v1/concurrency", place.value, { videos: chosen.length ? JSON.stringify(chosen) : "" }, 30_000);
  const largest = useRef(/** @type {string[]} */ ([]));
  if (chosen.length) largest.current = [];
  else if (of.data) largest.current = of.data.titles.map((/** @type {any} */ one) => one.video_id);
  return { of, drawn: chosen.length ? chosen : largest.current, isKnown: chosen.length > 0 || Boolean(of.data) };
}

/** @param {{curves: Curves}} props */
export function Together({ curves: { of } }) {
  const isChosen = chosenOf(place.value.more.videos).length > 0;
  return html`<section aria-labelledby="together-title"><h2 id="together-title"><${AtATime} /></h2>
    <${Answered} of=${of} height=${360} draw=${(/** @type {any} */ data) => html`<${Drawn} data=${data} isChosen=${isChosen} />`} />
    ${isChosen && of.problem && !of.data && html`<p class="note"><${Largest} /></p>`}
  </section>`;
}

/** The way back from titles that are chosen. */
const Largest = () => html`<button type="button" id="largest" onClick=${() => go({ more: { videos: "" } })}>Those with the most at once</button>`;

/** @param {{data: any, isChosen: boolean}} props */
function Drawn({ data, isChosen }) {
  const { tz } = place.value;
  if (!data.titles.length) return html`<p class="empty">No view of a video with an id in this range.</p>`;
  const { times, lines } = linesOfTitles(data);
  const drawn = lines.map((line, at) => ({ ...line, name: html`<${Named} one=${data.titles[at]} title=${line.title} />` }));
  const all = `${countText(data.titles_n)} ${data.titles_n === 1 ? "title" : "titles"} of this range, n ${countText(data.n)} views`;
  return html`
    <p class="note" id="together-of">${isChosen ? html`The titles that are ticked below. <${Largest} />` : `Those with the most at once, of ${all}. Tick titles below to draw others, up to ${CURVES_MAX}.`}</p>
    <${Chart} times=${times} lines=${drawn} unit="viewers" tz=${tz} title="Viewers at a time by title" hasCounts=${false} range=${data.about.range}
      zoom=${(/** @type {number} */ from, /** @type {number} */ to) => go({ from: String(from), to: String(to), range: "" })} />
    <${OpenMissing} range=${data.about.range}><${Link} to=${{ screen: "", more: {} }}>Viewers now<//><//>
    <${LiveViewers} titles=${lines.map(({ title }, at) => ({ title, name: data.titles[at].title }))} />`;
}

/** A title of the legend: it leads to itself, with its highest moment. @param {{one: any, title: string}} props */
function Named({ one, title }) {
  const peak = one.peak?.views ? ` · most ${countText(one.peak.views)} at ${momentText(one.peak.at_ms, place.value.tz)}` : "";
  return html`<${Link} to=${{ more: { video: one.video_id } }}>${title}<//> <span class="note">n ${countText(one.n)}${peak}</span>`;
}

/** Whether a title of a list is drawn. One that cannot be changed keeps the focus. @param {{curves: Curves, video: string, title: string}} props */
export function DrawnBox({ curves: { drawn, isKnown }, video, title }) {
  const isDrawn = drawn.includes(video);
  const isFull = !isDrawn && drawn.length >= CURVES_MAX;
  const isFixed = !isKnown || isFull;
  return html`<input type="checkbox" class="drawn" aria-label=${`Draw ${title}`} title=${isFull ? `at most ${CURVES_MAX} titles are drawn` : "drawn above"} checked=${isDrawn} aria-disabled=${isFixed ? "true" : undefined}
    onClick=${(/** @type {Event} */ event) => isFixed && event.preventDefault()} onChange=${() => go({ more: { videos: toggled(drawn, video) } })} />`;
}

/** Says whom the curves of a range miss that reaches to the present. @param {{range: {from_ms: number, to_ms: number}, children?: any}} props - `children`: where those are. */
export const OpenMissing = ({ range, children }) =>
  openStretch(range, presentNow_ms()) && html`<p class="note" id="still-open">Finished views alone are counted. Those that are open are missing, so a curve falls towards now. ${children}</p>`;
