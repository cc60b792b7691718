// @ts-check
// Who is behind a figure of Explore: asked by a click, of the metric, range, filters and comparison that are drawn.

import { useSignal } from "@preact/signals";
import { rangeText } from "../../core/place/ranges.js";
import { baselineOf, foundText, questionOf, ranked, RANKS, sentText, typedIn, typedText } from "../../core/answers/suspects.js";
import { countText, valueText } from "../../core/words/format.js";
import { addressFor, Answered, presentNow_ms, useFetched } from "../data/asking.js";
import { capital, metricOf, metrics } from "../data/known.js";
import { Field } from "../inputs/field.js";
import { html } from "../html.js";
import { go, Link, place } from "../place.js";
import { Possible, Suspects, SUSPECTED } from "./suspects.js";

/** As many as one answer has. */
const LIMIT = 10;

/** @typedef {import("../../core/answers/suspects.js").AskedBy} AskedBy */
/** What is drawn. @typedef {{metric: string, compare: string}} Picture */

/** @param {Picture} props */
export function WhoIsBehind(props) {
  const { metric } = props;
  const asked = metricOf(metric).suspects;
  if (!metrics.value[metric]) return null;
  if (asked) return html`<${Asked} asked=${asked} ...${props} />`;
  const other = SUSPECTED[0];
  return html`<p class="note" id="no-suspects">Only a metric that can be worse has suspects, not ${metricOf(metric).title}. Choose another metric, such as <${Link} to=${{ more: { metrics: other } }}>${metricOf(other).title}<//>.</p>`;
}

/** @param {Picture & {asked: AskedBy}} props */
function Asked({ metric, compare, asked }) {
  const within = place.value;
  const { customer, range, from, to, tz, filters, more } = within;
  const isOpen = more.suspects === "1";
  const threshold = more.threshold ?? "";
  const again = useSignal(0);
  const baseline = () => baselineOf(compare, within, presentNow_ms());
  const doesOverlap = Boolean(baseline()?.doesOverlap);
  // The times follow from the moment when it is asked: a minute later it is the same question.
  const key = JSON.stringify(["/v1/suspects", customer, range, from, to, tz, filters, metric, threshold, compare]);
  const address = () => addressFor("/v1/suspects", within, { limit: LIMIT, ...questionOf(metric, asked, threshold, baseline()) });
  const found = useFetched(isOpen && !doesOverlap ? key : null, address, 0, again.value, { isByClick: true });
  const toggle = () => go({ more: { suspects: isOpen ? "" : "1", threshold: "" } });
  const search = () => {
    again.value += 1;
  };
  return html`<div class="who" id="suspected">
    <div class="section-head">
      <button type="button" class="where-toggle" id="ask-suspects" aria-expanded=${isOpen} onClick=${toggle}>Who is behind it?</button>
      ${isOpen && asked.parameter && html`<${Threshold} side=${asked.by} unit=${metricOf(metric).unit} largest=${asked.largest} given=${threshold} found=${found.data?.threshold?.value ?? null} />`}
      ${isOpen && found.data && html`<${Rank} />`}
      ${isOpen && !doesOverlap && html`<button type="button" id="search-again" disabled=${found.isAsking} onClick=${search}>${found.isAsking ? "Searching …" : "Search again"}</button>`}
    </div>
    ${isOpen && doesOverlap && html`<p class="notice" role="status">What is usual is taken from the range that is compared with, and the two overlap: compare with the range before, or with one that is further away.</p>`}
    ${isOpen && !doesOverlap && html`<${Answered} of=${found} height=${180} draw=${(/** @type {any} */ data) => html`<${Drawn} data=${data} metric=${metric} within=${within} />`} />`}
  </div>`;
}

/** @param {{data: any, metric: string, within: import("../../core/place/place.js").Place}} props */
function Drawn({ data, metric, within }) {
  const figure = (/** @type {any} */ { value, n }) => `${valueText(data.unit, value)}, n ${countText(n)}`;
  const suspects = ranked(data.suspects, place.value.more.rank ?? "");
  const usual = data.against === "usual" ? `Usually, from ${rangeText(data.baseline, within.tz)}: ${figure(data.usual)}.` : "What is usual is not known.";
  const sampled = data.read.sampled < data.read.views ? ` A sample of ${countText(data.read.sampled)} of ${countText(data.read.views)} views was searched; all figures are of all views.` : "";
  return html`<p class="note" id="who-of">${capital(data.title)}, all views from ${rangeText(data.about.range, within.tz)}: ${figure(data.figure)}. ${usual}${sampled}</p>
    ${suspects.length > 0 ? html`<${Suspects} data=${data} suspects=${suspects} metric=${metric} within=${within} />` : data.figure.n === 0 ? html`<p class="empty" id="unsearched">No view of this time has a figure for ${data.title}: nobody can be suspected.</p>` : html`<p class="empty" id="unsuspected">Nobody stands out in ${data.title}: chance and the usual changes explain the figures, or all views have changed alike.</p>`}
    <${Possible} answers=${[data]} metric=${metric} within=${within} />`;
}

/** Which views are bad: as somebody has typed it, or as the answer says it. @param {{side: string, unit: string, largest: number | null, given: string, found: number | null}} props */
function Threshold({ side, unit, largest, given, found }) {
  const send = (/** @type {any} */ event) => {
    event.preventDefault();
    go({ more: { threshold: sentText(unit, Number(new FormData(event.target).get("threshold"))) } });
  };
  return html`<form class="pick" id="threshold-form" onSubmit=${send}>
    <label>Bad ${side} <${Field} type="number" id="threshold" name="threshold" min="0" max=${largest === null ? undefined : largest / typedIn(unit).per} step="any" size="7" required value=${given === "" ? foundText(unit, found) : typedText(unit, Number(given))} /> ${typedIn(unit).name}</label>
    <button type="submit">Search</button>
  </form>`;
}

function Rank() {
  const rank = place.value.more.rank || "excess";
  return html`<span class="forms" role="group" aria-label="Ranked by">
    ${Object.entries(RANKS).map(([name, title]) => html`<button type="button" aria-pressed=${name === rank} onClick=${() => go({ more: { rank: name === "excess" ? "" : name } })}>By ${title}</button>`)}
  </span>`;
}
