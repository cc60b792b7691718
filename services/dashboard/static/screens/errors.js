// @ts-check
// Errors: codes and texts, their share of views, where they occur, what is new since a release, and views that had them.

import { useSignal } from "@preact/signals";
import { failedOf, rangeOf, withError } from "../core/figures/behind.js";
import { narrowed } from "../core/place/filters.js";
import { changeText, countText, NONE, shareText, shortened } from "../core/words/format.js";
import { labelText } from "../core/words/labels.js";
import { comparedFrom, comparedText, localText, momentsAgo, momentText, msOf, rangeText } from "../core/place/ranges.js";
import { Answered, presentNow_ms, useQuestion } from "../parts/data/asking.js";
import { Compare } from "../parts/narrowing/compare.js";
import { Controls } from "../parts/narrowing/controls.js";
import { Export } from "../parts/exporting.js";
import { Folded } from "../parts/narrowing/folded.js";
import { Field } from "../parts/inputs/field.js";
import { Meaning, MetricMeaning, Term } from "../parts/figures/glossary.js";
import { Counted } from "../parts/figures/figure.js";
import { html } from "../parts/html.js";
import { Label, Texts } from "../parts/figures/label.js";
import { titleOf } from "../parts/data/known.js";
import { once, Pages, pagesKey } from "../parts/data/pages.js";
import { go, Link, place } from "../parts/place.js";
import { SortHead, sortBy } from "../parts/inputs/sorting.js";

/** What the list can be sorted by; `change` where something is held against what was. */
const SORTS = ["views", "change", "first_seen", "last_seen"];

export default function Errors() {
  const { more, tz } = place.value;
  const since = more.since ?? "";
  const compare = since ? "" : (more.compare ?? "");
  const isHeld = Boolean(since || comparedFrom(compare, place.value, presentNow_ms()));
  const by = SORTS.includes(more.sort ?? "") && (more.sort !== "change" || isHeld) ? more.sort : "views";
  const order = more.order === "ascending" ? "ascending" : "descending";
  const params = { since, compare, order_by: by, order, limit: 100 };
  const found = useQuestion("/v1/errors", place.value, params, 30_000);
  const at_ms = msOf(since, tz);
  return html`
    <${Controls} />
    <${Folded} id="shown" label="What is shown" summary=${`New since ${at_ms === null ? "any time" : momentText(at_ms, tz)} · compared ${comparedText(compare, tz)}`}>
      <label class="pick">New since
        <${Field} type="datetime-local" id="since" min="1970-01-01T00:00" value=${at_ms === null ? "" : localText(at_ms, tz)} onChange=${(/** @type {any} */ e) => e.target.validity.valid && go({ more: { since: e.target.value } })} />
      </label>
      ${since ? "" : momentsAgo(place.value, presentNow_ms()).map(([title, moment]) => html`<button type="button" key=${title} onClick=${() => go({ more: { since: moment } })}>${title}</button>`)}
      <span class="note">such as the moment of a release; it lies within the range</span>
      ${since ? html`<button type="button" onClick=${() => go({ more: { since: "" } })}>Clear</button>` : html`<${Compare} value=${compare} />`}
      <${Export} of="errors" params=${{ since, compare, order_by: by, order }} what="the codes of the table, and those of further pages" />
    <//>
    <section aria-labelledby="errors-title">
      <div class="section-head"><h2 id="errors-title">Errors</h2><p class="note" id="last-error">A view counts under its last fatal error alone. Earlier ones are on its own timeline.</p></div>
      <${Answered} of=${found} height=${360} draw=${(/** @type {any} */ data) => html`
        <${Pages} key=${pagesKey(params)} newest=${data} path="/v1/errors" params=${{ ...params, compare: comparedOf(data, compare) }} what="errors" draw=${(/** @type {any[]} */ pages) => html`<${Table} pages=${pages} isHeld=${isHeld} sort=${{ by, isAscending: order === "ascending" }} />`} />`} />
    </section>`;
}

/** What further pages are compared with: the range of the first one, also when a range up to now has moved on. @param {any} data @param {string} compare */
const comparedOf = (data, compare) => (data.compared && compare !== "previous" ? String(data.compared.from_ms) : compare);

/** @param {{pages: any[], isHeld: boolean, sort: import("../parts/inputs/sorting.js").Sort}} props - `isHeld`: against what was before. */
function Table({ pages, isHeld, sort }) {
  const data = pages[0];
  if (!data.errors.length) return html`<p class="empty">No view with an error among ${countText(data.n)} views of this range.</p>`;
  const head = (/** @type {string} */ name, /** @type {string} */ title, /** @type {any} */ meaning = "") => html`<${SortHead} name=${name} title=${title} sort=${sort} sortBy=${sortBy}>${meaning}<//>`;
  // Views that finish between two pages may move a code to a later one.
  const errors = once(pages.flatMap((page) => page.errors), (one) => one.code);
  const views = { screen: "views", more: {} };
  return html`
    <p class="note" id="errors-of"><${Leads} of=${data.with_error} to=${{ ...views, filters: withError(place.value.filters) }}>${countText(data.with_error)}<//> of <${Link} to=${views} title="all views on which it rests">${countText(data.n)}<//> views had an error, of ${countText(data.codes)} codes.${data.compared && html` <span id="compared">Before: ${rangeText(data.compared, place.value.tz)}</span>`}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Errors by code">
      <table id="errors">
        <thead><tr>
          <th scope="col">Code${isHeld && html` <${Meaning} title="New" term="new errors" formula=${`codes without a view from ${momentText(data.seen_from_ms, place.value.tz)} until ${data.compared ? "this range began, and none in what it is compared with" : "the moment of “New since”"}`} />`}</th>${head("views", "Views", html`<${MetricMeaning} name="views" />`)}<th scope="col"><${Term} title="Share of views" term="share of views" formula="views with the code / all views" /></th>
          ${isHeld && html`<th scope="col">Before</th><th scope="col">${data.compared ? "This range" : "Since"}</th>${head("change", "Change", html`<${Meaning} title="Change" term="change of share" formula=${`share of views ${data.compared ? "in this range" : "since"} − share before, in percentage points`} />`)}`}
          <th scope="col"><${Term} title="Viewers" term="viewers" /></th><th scope="col"><${Term} title="Failed" term="playback failures" /></th>${head("first_seen", "First seen", html`<${Meaning} title="First seen" term="first seen" formula=${`the end of the first view with the code, of all since ${momentText(data.seen_from_ms, place.value.tz)}`} />`)}${head("last_seen", "Last seen", html`<${Meaning} title="Last seen" term="last seen" formula="the end of the last view with the code in this range" />`)}<th scope="col">Where</th>
        </tr></thead>
        <tbody>${errors.map((one) => html`<${Row} key=${one.code} one=${one} spans=${isHeld ? spansOf(data) : null} />`)}</tbody>
      </table>
    </div>`;
}

/** @typedef {{from_ms: number, to_ms: number}} Span */

/** The ranges of what was before, and of what it is held against. @param {any} data @returns {{before: Span, after: Span}} */
function spansOf({ about, since_ms, compared }) {
  const { from_ms, to_ms } = about.range;
  return compared ? { before: compared, after: { from_ms, to_ms } } : { before: { from_ms, to_ms: since_ms }, after: { from_ms: since_ms, to_ms } };
}

/** A count or a share of views, which leads to them. @param {{of: any, to: any, children?: any}} props - `of`: nothing leads to no views. */
const Leads = ({ of, to, children }) => (of ? html`<${Link} to=${to} title="the views behind it">${children}<//>` : children);

/** A share of views with a code: it leads to them, and its n to all. @param {{share: any, code: any, range?: any}} props - `code`: the place of the views with the code. `range`: of another than the page's. */
const Share = ({ share, code, range }) => (share ? html`<${Leads} of=${share.value} to=${{ ...code, ...range }}>${shareText(share.value)}<//> <${Counted} n=${share.n} to=${{ screen: "views", ...range, more: {} }} />` : NONE);

/** @param {{one: any, spans: {before: Span, after: Span} | null}} props */
function Row({ one, spans }) {
  const { tz, filters } = place.value;
  const isOpen = useSignal(false);
  const word = isOpen.value ? "Hide" : "Show";
  const views = { screen: "views", filters: narrowed(filters, "error_code", one.code), more: {} };
  return html`<tr>
    <th scope="row"><${Link} to=${views}><${Label} text=${one.code} /><//>${one.is_new && html` <span class="tag is-new">new</span>`}
      <${Texts} texts=${one.texts.map((/** @type {any} */ text) => text.value)} /></th>
    <td><${Leads} of=${one.views} to=${views}>${countText(one.views)}<//></td>
    <td><${Share} share=${one.share} code=${views} /></td>
    ${spans && html`<td><${Share} share=${one.before} code=${views} range=${rangeOf(spans.before)} /></td>
      <td><${Share} share=${one.after} code=${views} range=${rangeOf(spans.after)} /></td>
      <td>${changeText("fraction", one.after?.value, one.before?.value) ?? NONE}</td>`}
    <td><${Leads} of=${one.viewers} to=${views}>${one.viewers ? countText(one.viewers) : NONE}<//></td><td><${Leads} of=${one.failed} to=${{ ...views, filters: failedOf(views.filters) }}>${countText(one.failed)}<//> <${Counted} n=${one.views} to=${views} /></td>
    <td>${momentText(one.first_ms, tz)}</td><td>${momentText(one.last_ms, tz)}</td>
    <td><button type="button" class="where-toggle" aria-expanded=${isOpen.value} aria-label=${`${word} where ${labelText(one.code)} occurs`} onClick=${() => { isOpen.value = !isOpen.value; }}>${word}</button></td>
  </tr>
  ${isOpen.value && html`<tr class="where"><td colspan=${spans ? 11 : 8}><${Where} one=${one} /></td></tr>`}`;
}

/** Where a code occurs, and views that had it. @param {{one: any}} props */
function Where({ one }) {
  const { filters } = place.value;
  const withCode = narrowed(filters, "error_code", one.code);
  return html`<dl>
      ${Object.entries(one.by).map(([name, values]) => html`<div><dt>${titleOf(name)}</dt><dd>
        ${/** @type {any[]} */ (values).map((each) => html`<span><${Link} to=${{ filters: narrowed(withCode, name, each.value) }}><${Label} text=${each.value ?? "(unknown)"} /><//> <small class="note">${countText(each.views)}</small></span>`)}</dd></div>`)}
      <div><dt>Views</dt><dd>${one.samples.map((/** @type {any} */ view) => html`<${Link} to=${{ screen: "view", customer: view.customer_id, more: { view: view.view_id, day: String(view.day) } }} title=${view.viewer ?? view.view_id}>${shortened(view.viewer ?? view.view_id)}<//> `)}</dd></div>
  </dl>`;
}

