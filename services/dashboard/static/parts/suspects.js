// @ts-check
// Ranked suspects: cohorts that explain why a metric is worse than usual, each a click away from being looked at.

import { countText, shareText, valueText } from "../core/format.js";
import { Answered, useQuestion } from "./asking.js";
import { html } from "./html.js";
import { titleOf } from "./known.js";
import { Link, place } from "./place.js";

/** What is looked at without being asked: shares of views, and of their time. */
export const SUSPECTED = ["rebuffer_fraction", "playback_failure_fraction", "exit_before_start_fraction"];

/**
 * @param {{metric: string, within: import("../core/place.js").Place, isQuiet?: boolean}} props - Quiet: nothing is drawn where there are no suspects.
 */
export function Suspects({ metric, within, isQuiet = false }) {
  const found = useQuestion("/v1/suspects", within, { metric, limit: 5 }, 30_000);
  if (isQuiet && (!found.data || !found.data.suspects.length)) return null;
  return html`<${Answered} of=${found} height=${80} draw=${(/** @type {any} */ data) => (data.suspects.length ? html`<${Table} data=${data} />` : html`<p class="empty">Nobody is suspected: nothing is worse than chance makes it.</p>`)} />`;
}

/** @param {{data: any}} props */
function Table({ data }) {
  const hasUsual = data.against === "usual";
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${`Suspects for ${data.title}`}>
    <table class="suspects" data-metric=${data.metric} data-against=${data.against}>
      <thead><tr><th scope="col">Suspected for ${data.title}</th><th scope="col">Its figure</th><th scope="col">The rest</th>${hasUsual && html`<th scope="col">Usually</th>`}<th scope="col">${hasUsual ? "Grew, beside the rest" : "Beside the rest"}</th></tr></thead>
      <tbody>${data.suspects.map((/** @type {any} */ one) => html`<${Row} one=${one} unit=${data.unit} hasUsual=${hasUsual} />`)}</tbody>
      ${!hasUsual && html`<tfoot><tr><td colspan="4" class="note">The day before has too few views to say what is usual: each is held against all other views of the same time.</td></tr></tfoot>`}
    </table>
  </div>`;
}

/** @param {{one: any, unit: string, hasUsual: boolean}} props */
function Row({ one, unit, hasUsual }) {
  const words = one.conditions.map((/** @type {any} */ part) => `${titleOf(part.dimension)} ${part.label}`).join(" · ");
  const filters = [...place.value.filters, ...one.conditions.map((/** @type {any} */ part) => JSON.stringify({ dimension: part.dimension, in: [part.value] }))];
  const share = unit === "fraction" ? shareText : (/** @type {any} */ value) => valueText(unit, value);
  return html`<tr>
    <th scope="row"><${Link} to=${{ filters }}>${words}<//></th>
    <td class="is-bad">${share(one.figure.value)} <span class="note">n ${countText(one.figure.n)}</span></td>
    <td>${share(one.rest.value)} <span class="note">n ${countText(one.rest.n)}</span></td>
    ${hasUsual && html`<td>${share(one.usual.value)} <span class="note">n ${countText(one.usual.n)}</span></td>`}
    <td>${one.factor.toFixed(one.factor < 10 ? 1 : 0)} ×</td>
  </tr>`;
}
