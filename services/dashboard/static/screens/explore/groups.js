// @ts-check
// The table of Explore: groups by one or two dimensions, each with its figure and the views behind it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { narrowed } from "../../core/place/filters.js";
import { rangeOf, viewsBehind, viewsOf, whichBehind } from "../../core/figures/behind.js";
import { hiddenNote, isShown, viewsMin } from "../../core/figures/figures.js";
import { isNoneLarge, leastOf, moreRows, rowsOf, tableOf } from "../../core/answers/groups.js";
import { LENGTHS, longerThan } from "../../core/place/ranges.js";
import { changeText, countText, NONE, valueText } from "../../core/words/format.js";
import { Answered, useQuestion } from "../../parts/data/asking.js";
import { capital, metricOf, nameOf, titleOf } from "../../parts/data/known.js";
import { Figure } from "../../parts/figures/figure.js";
import { html } from "../../parts/html.js";
import { Label } from "../../parts/figures/label.js";
import { narrowTo } from "../../parts/narrowing/controls.js";
import { ViewsMin } from "../../parts/narrowing/views_min.js";
import { classOf } from "../../parts/notable/thresholds.js";
import { go, Link, place } from "../../parts/place.js";
import { SortHead, sortBy } from "../../parts/inputs/sorting.js";

/** @param {{metric: string, by: string, compare: string}} props */
export function Groups({ metric, by, compare }) {
  const table = tableOf(place.value.more, metricOf(metric));
  const sort = { by: table.order_by, isAscending: table.order === "ascending" };
  const rows = rowsOf(place.value.more.rows);
  const found = useQuestion("/v1/breakdown", place.value, { by, metrics: metric, compare, ...table }, 30_000, { limit: rows });
  const { unit, title } = metricOf(metric);
  const head = (/** @type {string} */ name, /** @type {string} */ text) => html`<${SortHead} name=${name} title=${text} sort=${sort} sortBy=${sortBy} />`;
  // Where a figure rests on all views, one column says both.
  const hasBase = (found.data?.groups ?? []).some((/** @type {any} */ group) => group.n !== group.metrics[metric].n);
  const isGrowing = useSignal(false);
  useEffect(() => {
    if (!found.isAsking) isGrowing.value = false;
  }, [found.isAsking]);
  const isNone = Boolean(found.data && !found.isAsking && table.views_min && isNoneLarge(found.data.groups));
  const more = found.data && moreRows(found.data.groups, rows);
  const grow = () => {
    isGrowing.value = true;
    go({ more: { rows: String(more) } }, { replace: true });
  };
  return html`<div class="controls" role="group" aria-label="Which groups are listed"><${ViewsMin} least=${leastOf(place.value.more, metricOf(metric))} none=${isNone && html`<${NoneLarge} least=${table.views_min} isByViews=${table.order_by === "views"} />`} /></div>
  <${Answered} of=${found} height=${320} draw=${(/** @type {any} */ data) => html`
    <div class="scroll" tabindex="0" role="region" aria-label=${`${capital(title)} by ${data.by.map(nameOf).join(" and ")}`}>
      <table id="groups">
        <thead><tr>
          ${data.by.map((/** @type {string} */ name) => html`<th scope="col" class="text">${titleOf(name)}</th>`)}
          ${head(metric, capital(title))}
          ${metric !== "views" && head("views", hasBase ? "Views" : "n (views)")}
          ${(hasBase || metric === "views") && html`<th scope="col">n</th>`}
          ${compare && html`<th scope="col">Before</th><th scope="col">Change</th>`}
        </tr></thead>
        <tbody>
          ${data.groups.map((/** @type {any} */ group) => html`<${Row} key=${group.labels.join("\n")} group=${group} by=${data.by} metric=${metric} unit=${unit} compared=${compare ? data.compared?.range : null} hasBase=${hasBase || metric === "views"} />`)}
          ${!data.groups.length && html`<tr><td class="empty" colspan="7">No view in this range.</td></tr>`}
        </tbody>
      </table>
    </div>
    <${Hidden} metric=${metric} groups=${data.groups} />
    ${(more || isGrowing.value) && html`<button type="button" id="more-rows" disabled=${isGrowing.value} onClick=${grow}>More values</button>`}`} />`;
}

/** Says that no group has as many views as are asked for, and where some may. @param {{least: string, isByViews: boolean}} props */
function NoneLarge({ least, isByViews }) {
  const range = longerThan(place.value.range);
  const ways = [
    range && html`<${Link} to=${{ range, from: "", to: "" }}>${LENGTHS[range].title}<//>`,
    !isByViews && html`<${Link} to=${{ more: { sort: "views", order: "", views_min: "" } }}>sort by views<//>`,
  ].filter(Boolean);
  return html`No group has ${countText(Number(least))} views in this range.${ways.length > 0 && html` Try: ${ways.map((way, at) => html`${at > 0 && " · "}${way}`)}`}`;
}

/** Says why some cells have a dash. @param {{metric: string, groups: any[]}} props */
function Hidden({ metric, groups }) {
  const note = hiddenNote(metric, groups.flatMap((one) => [one.metrics[metric]?.n, one.compared?.[metric]?.n]), "Dash");
  return note && html`<p class="note" id="hidden-cells">${note}</p>`;
}

/** What a group is of. @param {string[]} by @param {(string | null)[]} key @returns {{customer: string, filters: string[]}} */
function withinOf(by, key) {
  const at = by.indexOf("customer");
  const filters = by.reduce((found, name, n) => (n === at ? found : narrowed(found, name, key[n])), place.value.filters);
  return { customer: at >= 0 && key[at] !== null ? String(key[at]) : place.value.customer, filters };
}

/** @param {{group: any, by: string[], metric: string, unit: string, compared: {from_ms: number, to_ms: number} | null, hasBase: boolean}} props - `compared`: the range that it is compared with. */
function Row({ group, by, metric, unit, compared, hasBase }) {
  const figure = group.metrics[metric];
  const before = group.compared?.[metric];
  const isShownNow = isShown(metric, figure);
  const isOther = group.kind === "other";
  const within = withinOf(by, group.key);
  const which = whichBehind(metric);
  const leads = (/** @type {any} */ to, /** @type {string} */ title, /** @type {string} */ text) => (isOther ? text : html`<${Link} to=${to} title=${title}>${text}<//>`);
  return html`<tr>
    ${by.map((name, at) => html`<th scope="row">
      ${isOther ? html`${group.labels[at]} <span class="note">${countText(group.groups)} more</span>` : html`<${Link} to=${narrowTo(name, group.key[at])}><${Label} text=${group.labels[at]} /><//>`}
    </th>`)}
    <td class=${classOf(metric, figure)} title=${isShownNow ? "" : `not shown below ${viewsMin(metric)} views`}>${isShownNow ? leads(viewsBehind(metric, within), `the views behind it${which && `: ${which}`}`, valueText(unit, figure.value)) : NONE}</td>
    ${metric !== "views" && html`<td>${leads({ screen: "views", ...within, more: {} }, "its views", countText(group.n))}</td>`}
    ${hasBase && html`<td class="note">${leads(viewsOf(metric, within), "all views on which it rests", countText(figure.n))}</td>`}
    ${compared && html`<td>${before && isOther ? html`${isShown(metric, before) ? valueText(unit, before.value) : NONE} <span class="note">n ${countText(before.n)}</span>` : html`<${Figure} metric=${metric} figure=${before} within=${{ ...within, ...rangeOf(compared) }} />`}</td>
      <td>${isShownNow && isShown(metric, before) ? (changeText(unit, figure.value, before.value) ?? NONE) : NONE}</td>`}
  </tr>`;
}
