// @ts-check
// Views: search by viewer, title, error, score, time and any dimension; columns of one's choice; CSV.

import { shortened } from "../../core/words/format.js";
import { LONG } from "../../core/words/labels.js";
import { meantOf } from "../../core/words/view_meanings.js";
import { fieldText, fieldTitle, openText, SEARCHED, VIEW_COLUMNS } from "../../core/words/view_fields.js";
import { Answered, useQuestion } from "../../parts/data/asking.js";
import { Controls } from "../../parts/narrowing/controls.js";
import { Export } from "../../parts/exporting.js";
import { Which } from "../../parts/narrowing/which.js";
import { Field } from "../../parts/inputs/field.js";
import { Meaning, MetricMeaning } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { customs, dimensions, metricOfField, titleOf } from "../../parts/data/known.js";
import { once, Pages, pagesKey } from "../../parts/data/pages.js";
import { go, Link, place } from "../../parts/place.js";
import { SortHead, sortBy } from "../../parts/inputs/sorting.js";

const ROWS = 50;
/** When a view finished, by which a list is ordered by time. */
const FINISHED = "counted_ms";
/** Whether an open view may have a value of a column. @param {string} name */
const isOfOpen = (name) => name !== FINISHED && !dimensions.value[name]?.by_end;

export default function Views() {
  const { customer, more } = place.value;
  // Of several customers the first question is whose view it is.
  const columns = more.columns ? more.columns.split(",") : [...(customer === "*" ? ["customer"] : []), ...VIEW_COLUMNS];
  const asked = Object.fromEntries(SEARCHED.map(({ name }) => [name, more[name] ?? ""]));
  const params = { ...asked, columns: columns.join(","), order_by: more.sort || "time", order: more.order || "descending", limit: ROWS };
  const found = useQuestion("/v1/views", place.value, params, 30_000);
  const hasOpen = more.open === "1" && customer !== "*";
  return html`
    <${Controls} />
    <${Search} />
    <${OpenViews} asked=${asked} columns=${columns} />
    <section aria-labelledby="views-title">
      <div class="section-head"><h2 id="views-title">Views</h2>${params.order_by === "time" && html`<p class="note">by when they finished, the ${params.order === "ascending" ? "first" : "last"} first</p>`}
        <${Export} of="views" params=${exported(params)} what=${hasOpen ? "finished views alone" : "everything"} />
        ${hasOpen && html`<p class="note" id="exports-finished">Files have finished views alone.</p>`}
        <${Columns} columns=${columns} />
      </div>
      <${Answered} of=${found} height=${420} draw=${(/** @type {any} */ data) => html`
        <${Pages} key=${pagesKey(params)} newest=${data} path="/v1/views" params=${params} what="views" draw=${(/** @type {any[]} */ pages) => html`<${Found} pages=${pages} columns=${columns} />`} />`} />
      <p class="note">Finished views. Any view is found <${Link} to=${{ screen: "view", more: {} }}>by its id<//>.</p>
    </section>`;
}

/** Views that are still open: they have no row yet, and are looked up. @param {{asked: Record<string, string>, columns: string[]}} props */
function OpenViews({ asked, columns }) {
  const { customer, more } = place.value;
  const isOpen = more.open === "1";
  const isWithin = more.began === "range";
  const params = { ...asked, limit: ROWS, ...(isWithin ? {} : { from: "", to: "" }) };
  const path = isOpen && customer !== "*" ? "/v1/open-views" : null;
  const found = useQuestion(path, place.value, params, 10_000);
  const draw = (/** @type {any} */ data) => html`<${Pages} key=${pagesKey(params)} newest=${data} path="/v1/open-views" params=${params} what="open views" id="more-open"
    draw=${(/** @type {any[]} */ pages) => {
      // A view whose older beacons are no longer read may come again.
      const rows = once(pages.flatMap((page) => page.views), (row) => `${row.customer_id} ${row.view_id}`);
      const looked = pages.reduce((sum, page) => sum + page.looked_up_n, 0);
      return html`<p class="note" id="open-count">${openText(rows.length, looked, pages[0])}</p>
        ${rows.length ? html`<${Rows} id="open-views" rows=${rows} columns=${columns.filter(isOfOpen)} />` : html`<p class="empty">${pages.at(-1).next ? "No open view among these matches." : "No open view matches."}</p>`}`;
    }} />`;
  return html`<section aria-labelledby="open-title">
    <div class="section-head"><h2 id="open-title">Open now</h2>
      <button type="button" id="show-open" aria-expanded=${isOpen} onClick=${() => go({ more: { open: isOpen ? "" : "1" } })}>${isOpen ? "Hide" : "Show open views"}</button>
      ${isOpen && html`<label>Began <select id="open-began" value=${isWithin ? "range" : ""} onChange=${(/** @type {any} */ event) => go({ more: { began: event.target.value } })}>
        <option value="">at any time</option><option value="range">in the range above</option></select></label>`}</div>
    ${isOpen && (customer === "*" ? html`<p class="note" id="open-of-whom">Open views are looked up for one customer. Whose?</p><${Which} id="open-customers" />` : html`<${Answered} of=${found} draw=${draw} />`)}
  </section>`;
}

/** All rows instead of a page. @param {Record<string, string | number>} params */
const exported = ({ limit: _limit, ...params }) => params;

function Search() {
  const { more } = place.value;
  const search = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    go({ more: Object.fromEntries(SEARCHED.map(({ name }) => [name, String(given.get(name) ?? "").trim()])) });
  };
  return html`<form class="new-filter search" id="search" role="search" onSubmit=${search} key=${SEARCHED.map(({ name }) => more[name]).join("\n")}>
    ${SEARCHED.map(({ name, title, type }) => html`<label>${title} <${Field} name=${name} type=${type} value=${more[name] ?? ""} autocomplete="off" step="any" /></label>`)}
    <button type="submit">Search</button>
  </form>`;
}

/** @param {{columns: string[]}} props */
function Columns({ columns }) {
  const names = [...new Set(["customer", ...VIEW_COLUMNS, ...Object.keys(dimensions.value), ...Object.keys(customs.value).filter((name) => !name.includes(",")), "rebuffer_count", "playing_ms", "seek_count", "avg_bitrate_bps", "beacon_count", ...columns])];
  const toggle = (/** @type {string} */ name) => go({ more: { columns: (columns.includes(name) ? columns.filter((one) => one !== name) : [...columns, name]).join(",") } }, { replace: true });
  return html`<details class="where columns"><summary>Columns</summary>
    <div class="checks">${names.map((name) => html`<label><input type="checkbox" checked=${columns.includes(name)} onChange=${() => toggle(name)} /> ${fieldTitle(name) ?? titleOf(name)}</label>`)}</div>
  </details>`;
}

/** Whether a column is sorted by, and stands at the right. @param {string} name */
const isNumber = (name) => !name.startsWith("custom.") && /_ms(_avg)?$|_count$|^score|_bps$|_integral$|^dropped_frames$/.test(name);

/** What the API sorts by for a column. @param {string} name */
const sortOf = (name) => (name === FINISHED ? "time" : name);

/** @param {{pages: any[], columns: string[]}} props */
function Found({ pages, columns }) {
  const rows = pages.flatMap((page) => page.views);
  if (!rows.length) return html`<p class="empty">No view matches. A wider range or fewer filters may find some.</p>`;
  const { sort = "time", order = "descending" } = place.value.more;
  return html`<${Rows} id="views" rows=${rows} columns=${columns} sort=${{ by: sort || "time", isAscending: order === "ascending" }} />`;
}

/** What a column has, where its name does not say it. @param {{name: string, title: string}} props */
function ColumnMeaning({ name, title }) {
  const meant = meantOf(name);
  if (meant) return html`<${Meaning} title=${title} term=${meant.term} formula=${meant.formula} />`;
  const metric = isNumber(name) && metricOfField(name);
  return metric ? html`<${MetricMeaning} name=${metric.name} />` : null;
}

/** @param {{id: string, rows: any[], columns: string[], sort?: import("../../parts/inputs/sorting.js").Sort}} props - Without `sort` the list has an order of its own. */
function Rows({ id, rows, columns, sort }) {
  const head = (/** @type {string} */ name) => {
    const title = fieldTitle(name) ?? titleOf(name);
    const meaning = html`<${ColumnMeaning} name=${name} title=${title} />`;
    if (sort && isNumber(name)) return html`<${SortHead} name=${sortOf(name)} title=${title} sort=${sort} sortBy=${sortBy}>${meaning}<//>`;
    return html`<th scope="col" class=${isNumber(name) ? "" : "text"}>${title} ${meaning}</th>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${id === "views" ? "Views" : "Open views"}>
    <table id=${id}>
      <thead><tr><th scope="col">View</th>${columns.map(head)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${`${row.customer_id}/${row.view_id}/${row.day}`}>
        <th scope="row"><${Link} to=${{ screen: "view", customer: row.customer_id, more: { view: row.view_id, day: String(row.day) } }} title=${row.view_id}>${shortened(row.view_id)}<//></th>
        ${columns.map((name) => html`<${Cell} name=${name} value=${row[name]} />`)}
      </tr>`)}</tbody>
    </table>
  </div>`;
}

/** Of an id or a long text a part is shown; all of it is in the tooltip, and on the screen of the view. @param {{name: string, value: any}} props */
function Cell({ name, value }) {
  const text = fieldText(name, value, place.value.tz);
  if (isNumber(name)) return html`<td>${text}</td>`;
  const isId = name === "viewer";
  return html`<td class="text" title=${(isId && value) || text.length > LONG ? text : undefined}>${isId ? shortened(text) : text}</td>`;
}
