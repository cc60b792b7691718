// @ts-check
// Ranked suspects: cohorts that explain why a metric is worse than usual, each a click away from being looked at.

import { useSignal } from "@preact/signals";
import { rangeOf, viewsBehind, whichBehind } from "../../core/figures/behind.js";
import { apart, filterOf } from "../../core/place/filters.js";
import { EXCESS_MEANS, evidenceText, excessText } from "../../core/answers/suspects.js";
import { countText, valueText } from "../../core/words/format.js";
import { labelText } from "../../core/words/labels.js";
import { Answered, useQuestion } from "../data/asking.js";
import { MetricMeaning, Term } from "../figures/glossary.js";
import { Figure } from "../figures/figure.js";
import { html } from "../html.js";
import { metricOf, titleOf } from "../data/known.js";
import { Link } from "../place.js";

/** @typedef {import("../../core/place/place.js").Place} Place */

/** What is looked at without being asked: shares of views, and of their time. */
export const SUSPECTED = ["rebuffer_fraction", "playback_failure_fraction", "exit_before_start_fraction"];

/**
 * Those of each metric that has some; one line says that all others were searched, or are being.
 * @param {{within: Place, isDue: boolean}} props - `isDue`: what is asked for a figure comes before what explains it.
 */
export function AllSuspects({ within, isDue }) {
  const all = SUSPECTED.map((metric) => useQuestion(isDue ? "/v1/suspects" : null, within, { metric, limit: 5 }, 30_000));
  const titles = (/** @type {(at: number) => boolean} */ which) => SUSPECTED.filter((_, at) => which(at)).map((name) => metricOf(name).title).join(", ");
  const sought = titles((at) => !all[at].data && !all[at].problem);
  const isEmpty = (/** @type {number} */ at) => all[at].data?.figure.n === 0;
  const empty = titles(isEmpty);
  const clear = titles((at) => !isEmpty(at) && all[at].data?.suspects.length === 0);
  // What holds up one of them holds up all.
  const unanswered = all.find((found) => found.problem && !found.data);
  const { range, from, to } = within;
  return html`<section aria-labelledby="suspects-title" id="suspected">
    <div class="section-head"><h2 id="suspects-title">Suspects of the last hour's finished views</h2>
      <p class="note"><${Link} id="ask-elsewhere" to=${{ screen: "explore", range, from, to, more: { metrics: SUSPECTED[0], suspects: "1" } }}>Ask of any metric and range<//></p></div>
    <p class="note" id="suspects-of">A view counts here once it has finished. Viewers who stall now are in the live figures and in the cards by dimension.</p>
    ${unanswered && html`<${Answered} of=${unanswered} draw=${() => null} />`}
    ${all.map((found, at) => Boolean(found.data && (found.problem || found.data.suspects.length)) && html`<${Answered} key=${SUSPECTED[at]} of=${found} draw=${(/** @type {any} */ data) => data.suspects.length > 0 && html`<${Suspects} data=${data} suspects=${data.suspects} metric=${data.metric} within=${within} />`} />`)}
    ${sought && html`<p class="note" role="status">Searching for who is behind: ${sought} …</p>`}
    ${clear && html`<p class="note" id="unsuspected">Nobody stands out beyond chance in: ${clear}.</p>`}
    ${empty && html`<p class="note" id="unsearched">${all.every((_, at) => isEmpty(at)) ? "No view has finished in this time: nobody can be suspected yet." : `No view of this time has a figure for: ${empty}.`}</p>`}
    <${Possible} answers=${all.flatMap((found) => found.data ?? [])} within=${within} />
  </section>`;
}

/**
 * What is below the line, of some answers: chance may explain it, so it is closed until somebody opens it.
 * @param {{answers: any[], metric?: string, within: Place}} props
 */
export function Possible({ answers, metric, within }) {
  const isOpen = useSignal(false);
  const some = answers.filter((data) => data.possible?.length);
  const count = some.reduce((sum, { possible }) => sum + possible.length, 0);
  return count > 0 && html`<details class="possible" onToggle=${(/** @type {any} */ e) => { isOpen.value = e.target.open; }}><summary>Not certain: ${count} weaker ${count === 1 ? "candidate" : "candidates"}</summary>
    ${isOpen.value && html`<p class="note">Chance or the usual changes may explain each of these.</p>
      ${some.map((data) => html`<${Suspects} key=${data.metric} data=${data} suspects=${data.possible} metric=${metric ?? data.metric} within=${within} word="Not certain" />`)}`}
  </details>`;
}

/** What stands above a table of suspects beyond chance. */
const CERTAIN = "Suspected";

/**
 * The suspects of an answer, in this order.
 * @param {{data: any, suspects: any[], metric: string, within: Place, word?: string}} props - `metric`: what Explore draws of them; `within`: what was asked about.
 */
export function Suspects({ data, suspects, metric, within, word = CERTAIN }) {
  const hasUsual = data.against === "usual";
  const title = `${word} for ${data.title}`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${title}>
    <table class="suspects" data-metric=${data.metric} data-against=${data.against}>
      <thead><tr><th scope="col">${title} <${MetricMeaning} name=${data.metric} /></th><th scope="col" class="text"><${Term} title="Excess and evidence" term="evidence" formula=${EXCESS_MEANS} /></th><th scope="col">Its figure</th><th scope="col">The rest</th>${hasUsual && html`<th scope="col">Usually</th>`}<th scope="col">${hasUsual ? "Grew, beside the rest" : "Beside the rest"}</th></tr></thead>
      <tbody>${suspects.map((one) => html`<${Row} key=${JSON.stringify(one.conditions)} one=${one} data=${data} metric=${metric} within=${within} isCertain=${word === CERTAIN} />`)}</tbody>
      ${!hasUsual && html`<tfoot><tr><td colspan="5" class="note"><span class="stays">The time before has too few views to say what is usual: each is held against all other views of the same time.</span></td></tr></tfoot>`}
    </table>
  </div>`;
}

/** Its words narrow this screen. Its figure is drawn over time, its excess leads to the views that weigh most in it and its n to all its views, each without the views of suspects found before. The rest and what is usual lead to their views too. Of a ratio these are the same numbers there; of a value Explore draws the metric itself. @param {{one: any, data: any, metric: string, within: Place, isCertain: boolean}} props - What chance may explain is not coloured as bad. */
function Row({ one, data, metric, within, isCertain }) {
  const words = one.conditions.map((/** @type {any} */ part) => `${titleOf(part.dimension)} ${labelText(part.label)}`).join(" · ");
  const cohort = one.conditions.map((/** @type {any} */ part) => filterOf(part.dimension, [part.value]));
  const { range, from, to } = within;
  const alone = { range, from, to, filters: [...within.filters, ...apart(one.filter)] };
  const { customer } = within;
  const rest = { customer, range, from, to, filters: [...within.filters, JSON.stringify({ not: one.filter })] };
  const usual = { customer, ...rangeOf(data.baseline), filters: alone.filters };
  const figure = (/** @type {any} */ { value }) => valueText(data.unit, value);
  return html`<tr>
    <th scope="row"><${Link} to=${{ filters: [...within.filters, ...cohort] }}>${words}<//></th>
    <td class="excess"><${Link} to=${{ ...viewsBehind(metric, { customer: within.customer, filters: alone.filters }), range, from, to }} title=${`its views: ${whichBehind(metric)}`}>${excessText(data.metric, one.excess)}<//> <span class="note">${evidenceText(one.surprise)}</span></td>
    <td class=${isCertain ? "is-bad" : ""}><${Link} to=${{ screen: "explore", ...alone, more: { metrics: metric } }} title="over time">${figure(one.figure)}<//> <span class="note">n <${Link} to=${{ screen: "views", ...alone, more: {} }} title="its views">${countText(one.figure.n)}<//></span></td>
    <td><${Figure} metric=${metric} unit=${data.unit} figure=${one.rest} within=${rest} /></td>
    ${data.against === "usual" && html`<td><${Figure} metric=${metric} unit=${data.unit} figure=${one.usual} within=${usual} /></td>`}
    <td>${one.factor.toFixed(one.factor < 10 ? 1 : 0)} ×</td>
  </tr>`;
}
