// @ts-check
// Viewers now by customer: the table below the cards of Now, sorted by the server.

import { cellsOf, CUSTOMER_COLUMNS, CUSTOMERS_MIN, customersSort, sortText } from "../../core/live/live.js";
import { liveTitle, viewsOfLive } from "../../core/live/views.js";
import { countText, shareText } from "../../core/words/format.js";
import { Field } from "../../parts/inputs/field.js";
import { Meaning } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { cellClassOf } from "../../parts/notable/thresholds.js";
import { go, Link, place } from "../../parts/place.js";
import { SortHead } from "../../parts/inputs/sorting.js";
import { TERMS, WITHOUT } from "./slices.js";

/** @param {{picture: any}} props */
export default function Customers({ picture }) {
  const { filters, more } = place.value;
  const left = picture.customers_total - picture.customers.length;
  const sort = customersSort(more["sort.customer"]);
  const sortBy = (/** @type {import("../../parts/inputs/sorting.js").Sort} */ given) => go({ more: { "sort.customer": sortText(given) } });
  const { isShare } = CUSTOMER_COLUMNS[sort.by];
  return html`<section aria-labelledby="customers-title">
    <div class="section-head"><h2 id="customers-title">Viewers now, by customer</h2>${filters.length > 0 && html`<p class="note">${WITHOUT}</p>`}${left > 0 && html`<p class="note">${countText(left)} more customers are not listed</p>`}
      ${sort.by !== "viewers" && picture.customers_held < picture.customers_total && html`<p class="note" id="customers-held">Sorted are the ${countText(picture.customers_held)} customers with the most viewers.</p>`}
      ${isShare && html`<label class="pick">Of at least <${Field} id="customers-min" type="number" min="0" value=${more.customers_min ?? CUSTOMERS_MIN} size="6" onChange=${(/** @type {any} */ event) => go({ more: { customers_min: event.target.value } })} /> viewers or views</label>`}</div>
    <div class="scroll" tabindex="0" role="region" aria-label="Viewers by customer">
      <table id="customers-table">
        <thead><tr><th scope="col">Customer</th>${Object.entries(CUSTOMER_COLUMNS).map(([name, { title }]) => html`<${SortHead} name=${name} title=${title} sort=${sort} sortBy=${sortBy}><${Meaning} title=${title} term=${TERMS[name]} /><//>`)}<th scope="col">Limits</th></tr></thead>
        <tbody>${picture.customers.map((/** @type {any} */ one) => html`<${CustomerRow} key=${one.customer} one=${one} counted_ms=${(picture.series.viewers_now?.length ?? 0) * picture.bucket_ms} />`)}</tbody>
      </table>
    </div>
    ${!picture.customers.length && html`<p class="empty">No customer has so many viewers or views.</p>`}
  </section>`;
}

/** @param {{one: any, counted_ms: number}} props - `counted_ms`: how long counts are counted. */
function CustomerRow({ one, counted_ms }) {
  const { customer, now, totals } = one;
  const cells = cellsOf(now);
  const behind = (/** @type {{isCount: boolean, metric?: string}} */ figure, /** @type {string} */ text) => html`<${Link} to=${viewsOfLive(figure, { customer, filters: [] })} title=${liveTitle(figure, counted_ms)}>${text}<//>`;
  const counted = (/** @type {string} */ metric, /** @type {number} */ some, /** @type {number} */ all, /** @type {string} */ of) => html`${behind({ isCount: true, metric }, countText(some))} <span class="note" title=${of}>n ${countText(all)}</span>${all > 0 && html` <span class="note">${shareText(some / all)}</span>`}`;
  return html`<tr>
    <th scope="row"><${Link} to=${{ customer }}>${customer}<//></th>
    <td>${behind({ isCount: false }, cells.viewers)}</td>
    <td class=${cellClassOf("rebuffering", now)}>${behind({ isCount: false }, cells.rebuffering)} <span class="note">${cells.rebuffering_n}</span></td>
    <td class=${cellClassOf("bitrate", now)}>${behind({ isCount: false }, cells.bitrate)} <span class="note">${cells.bitrate_n}</span></td>
    <td>${behind({ isCount: true }, countText(totals.views_started))}</td>
    <td class=${cellClassOf("failures", totals)}>${counted("playback_failures", totals.failures, totals.views_started, "views started")}</td>
    <td class=${cellClassOf("exits", totals)}>${counted("exits_before_start", totals.exits_before_start, totals.views_finished, "views finished")}</td>
    <td><a href=${`/limits?customer=${encodeURIComponent(customer)}`} aria-label=${`limits of ${customer}`}>limits</a></td>
  </tr>`;
}
