// @ts-check
// Explore: a metric over a range, by up to two dimensions, under filters, beside another range; as lines, a table or a distribution.

import { ruleMetricOf } from "../core/alerts.js";
import { narrowed } from "../core/place/filters.js";
import { changeText, countText, NONE, shareText, valueText } from "../core/words/format.js";
import { isShown, quantileMin, viewsMin } from "../core/figures.js";
import { comparedRange, rangeText } from "../core/place/ranges.js";
import { binsBeside, linesOf, topOf } from "../core/series.js";
import { addressFor, Answered, useFetched, useQuestion } from "../parts/data/asking.js";
import { Chart } from "../parts/drawing/chart.js";
import { MixedClients } from "../parts/notable/clients.js";
import { WhoIsBehind } from "../parts/notable/who_is_behind.js";
import { Compare } from "../parts/narrowing/compare.js";
import { Controls, narrowTo } from "../parts/narrowing/controls.js";
import { BreakdownSelect } from "../parts/narrowing/dimension_select.js";
import { Export } from "../parts/exporting.js";
import { html } from "../parts/html.js";
import { capital, metricOf, metrics, titleOf } from "../parts/data/known.js";
import { go, Link, place } from "../parts/place.js";
import { classOf } from "../parts/notable/thresholds.js";
import { MetricName } from "../parts/glossary.js";

const DEFAULT = { metric: "rebuffer_fraction", as: "line" };
const LINES_MAX = 8;
const MULTIPLES_MAX = 12;
const ROWS = 20;

export default function Explore() {
  const { more } = place.value;
  const metric = more.metrics || DEFAULT.metric;
  const [by = "", second = ""] = (more.by ?? "").split(",");
  const as = more.as || DEFAULT.as;
  const compare = more.compare ?? "";
  const overall = useQuestion("/v1/overall", place.value, { metrics: metric, compare }, 30_000);
  return html`
    <${Controls} />
    <div class="controls" role="region" aria-label="What is shown">
      <label class="pick">Metric <${MetricSelect} value=${metric} /></label>
      <${BreakdownSelect} id="by" title="By" value=${by} none="nothing" choose=${(/** @type {string} */ v) => go({ more: { by: v } })} />
      ${by && html`<${BreakdownSelect} id="by-second" title="and" value=${second} none="nothing else" choose=${(/** @type {string} */ v) => go({ more: { by: v ? `${by},${v}` : by, as: "table" } })} />`}
      <${Compare} value=${compare} />
      <${Forms} as=${as} />
      <${Export} of=${by ? "breakdown" : "timeseries"} params=${by ? { metrics: metric, by: second ? `${by},${second}` : by, limit: 1000 } : { metrics: metric }} />
    </div>
    <section aria-labelledby="explore-title">
      <h2 id="explore-title"><${MetricName} name=${metric} />${by && ` by ${titleOf(by)}${second && ` and ${titleOf(second)}`}`}</h2>
      <${Overall} found=${overall} metric=${metric} />
      <${WhoIsBehind} metric=${metric} compare=${compare} />
      <${MixedClients} metrics=${[metric]} within=${place.value} />
      ${as === "multiples" && (by ? html`<${Multiples} metric=${metric} by=${by} compare=${compare} />` : html`<p class="empty">Choose a dimension: each of its values has a chart of its own.</p>`)}
      ${as === "line" && second && html`<p class="note">The lines are by ${titleOf(by)} alone; the table below has both.</p>`}
      ${as === "line" && html`<${Lines} metric=${metric} by=${by} compare=${compare} />`}
      ${as === "distribution" && html`<${Distribution} metric=${metric} compare=${compare} />`}
      ${as !== "multiples" && by && html`<${Groups} metric=${metric} by=${second ? `${by},${second}` : by} compare=${compare} />`}
    </section>`;
}

/** @param {{value: string}} props */
function MetricSelect({ value }) {
  const known = Object.values(metrics.value);
  return html`<select id="metric" value=${value} onChange=${(/** @type {any} */ e) => go({ more: { metrics: e.target.value } })}>
    ${known.map((one) => html`<option value=${one.name}>${capital(one.title)}</option>`)}
    ${!known.length && html`<option value=${value}>${value}</option>`}
  </select>`;
}

/** @param {{as: string}} props */
function Forms({ as }) {
  const forms = { line: "Line", multiples: "Small multiples", table: "Table", distribution: "Distribution" };
  return html`<span class="forms" role="group" aria-label="Form">
    ${Object.entries(forms).map(([name, title]) => html`<button type="button" aria-pressed=${name === as} onClick=${() => go({ more: { as: name } })}>${title}</button>`)}
  </span>`;
}

/** The figure of the whole range, and of the one that it is compared with. @param {{found: import("../parts/data/asking.js").Answer, metric: string}} props */
function Overall({ found, metric }) {
  const { unit } = metricOf(metric);
  return html`<${Answered} of=${found} height=${48} draw=${(/** @type {any} */ data) => {
    const figure = data.metrics[metric];
    const before = data.compared?.metrics[metric];
    return html`<p class="figure" id="overall">
      <span class=${`value ${classOf(metric, figure)}`}>${isShown(metric, figure) ? valueText(unit, figure.value) : NONE}</span>
      <span class="note">${[`n ${countText(figure.n)}`, before && `before ${isShown(metric, before) ? valueText(unit, before.value) : NONE}, n ${countText(before.n)}`, before && isShown(metric, figure) && isShown(metric, before) && changeText(unit, figure.value, before.value)].filter(Boolean).join(" · ")}</span>
    </p>
    ${before && html`<p class="note" id="compared">Before: ${rangeText({ from_ms: data.compared.about.range.from_ms, to_ms: data.compared.about.range.to_ms }, place.value.tz)}</p>`}
    <p class="note links"><${Link} to=${{ screen: "views", more: {} }}>The views behind it<//>${ruleMetricOf(metric) && html` · <${Link} to=${{ screen: "alerts", more: { rule: metric } }}>Alert on it<//>`}</p>
    ${figure.n > 0 && !isShown(metric, figure) && html`<p class="note">Not shown below ${viewsMin(metric)} views.</p>`}
    ${!data.about.has_hot_rows && html`<p class="notice" role="status">Views of the last minutes may be missing: there are too many to read one by one.</p>`}`;
  }} />`;
}

/** @param {{metric: string, by: string, compare: string}} props */
function Lines({ metric, by, compare }) {
  const found = useQuestion("/v1/timeseries", place.value, { metrics: metric, by, compare, ...(by ? { limit: LINES_MAX } : {}) }, 30_000);
  const { unit, title } = metricOf(metric);
  return html`<${Answered} of=${found} height=${280} draw=${(/** @type {any} */ data) => {
    const { times, lines } = linesOf(data, metric, capital(title));
    if (!lines.length || lines.every((line) => line.counts.every((n) => n === 0))) return html`<p class="empty">No view in this range.</p>`;
    return html`<${Chart} times=${times} lines=${lines} unit=${unit} tz=${place.value.tz} title=${capital(title)} range=${data.about.range}
      zoom=${(/** @type {number} */ from, /** @type {number} */ to) => go({ from: String(from), to: String(to), range: "" })} />`;
  }} />`;
}

/** A chart for each value, all on one scale: what differs is seen without a legend. @param {{metric: string, by: string, compare: string}} props */
function Multiples({ metric, by, compare }) {
  const found = useQuestion("/v1/timeseries", place.value, { metrics: metric, by, compare, limit: MULTIPLES_MAX }, 30_000);
  const { unit } = metricOf(metric);
  const zoom = (/** @type {number} */ from, /** @type {number} */ to) => go({ from: String(from), to: String(to), range: "" });
  return html`<${Answered} of=${found} height=${420} draw=${(/** @type {any} */ data) => {
    const { times, lines } = linesOf(data, metric, "");
    const top = topOf(lines);
    if (!lines.length) return html`<p class="empty">No view in this range.</p>`;
    // A line of earlier is drawn with its own, in its colour.
    const drawn = lines.filter((line) => line.beside === undefined).map((line, at) => ({ line, earlier: lines.filter((one) => one.beside === at).map((one) => ({ ...one, beside: 0 })) }));
    return html`<p class="note" id="multiples-note">Times are of ${place.value.tz}${compare && ". Dashed lines are of the range that is compared with"}</p>
    <div class="multiples" id="multiples">${drawn.map(({ line, earlier }) => html`<article class="card" key=${line.title}>
      <h3>${line.kind === "other" ? line.title : html`<${Link} to=${narrowTo(by, line.key[0])}>${line.title}<//>`} <span class="note">n ${countText(line.counts.reduce((sum, n) => sum + n, 0))}</span></h3>
      <${Chart} times=${times} lines=${[line, ...earlier]} unit=${unit} tz=${place.value.tz} title=${line.title} height=${120} range=${data.about.range} zoom=${zoom} top=${top} isSmall />
    </article>`)}</div>`;
  }} />`;
}

/** @param {{metric: string, by: string, compare: string}} props */
function Groups({ metric, by, compare }) {
  const { order = "", sort = "" } = place.value.more;
  const order_by = sort || (metricOf(metric).kind === "sum" ? metric : "views");
  const found = useQuestion("/v1/breakdown", place.value, { by, metrics: metric, compare, limit: ROWS, order_by, order }, 30_000);
  const { unit, title } = metricOf(metric);
  const sortBy = (/** @type {string} */ name) => go({ more: { sort: name, order: order_by === name && order !== "ascending" ? "ascending" : "" } });
  const head = (/** @type {string} */ name, /** @type {string} */ text) => html`<th scope="col" aria-sort=${order_by === name ? order || "descending" : undefined}>
    <button type="button" onClick=${() => sortBy(name)}>${text}</button></th>`;
  // Where a figure rests on all views, one column says both.
  const hasBase = (found.data?.groups ?? []).some((/** @type {any} */ group) => group.n !== group.metrics[metric].n);
  return html`<${Answered} of=${found} height=${320} draw=${(/** @type {any} */ data) => html`
    <div class="scroll" tabindex="0" role="region" aria-label=${`${capital(title)} by ${data.by.map(titleOf).join(" and ")}`}>
      <table id="groups">
        <thead><tr>
          ${data.by.map((/** @type {string} */ name) => html`<th scope="col" class="text">${titleOf(name)}</th>`)}
          ${head(metric, capital(title))}
          ${metric !== "views" && head("views", hasBase ? "Views" : "n (views)")}
          ${(hasBase || metric === "views") && html`<th scope="col">n</th>`}
          ${compare && html`<th scope="col">Before</th><th scope="col">Change</th>`}
        </tr></thead>
        <tbody>
          ${data.groups.map((/** @type {any} */ group) => html`<${Row} key=${group.labels.join("\n")} group=${group} by=${data.by} metric=${metric} unit=${unit} isCompared=${Boolean(compare)} hasBase=${hasBase || metric === "views"} />`)}
          ${!data.groups.length && html`<tr><td class="empty" colspan="7">No view in this range.</td></tr>`}
        </tbody>
      </table>
    </div>`} />`;
}

/** The place of the views behind a group. @param {string[]} by @param {(string | null)[]} key */
function viewsOf(by, key) {
  const at = by.indexOf("customer");
  const filters = by.reduce((found, name, n) => (n === at ? found : narrowed(found, name, key[n])), place.value.filters);
  return at >= 0 && key[at] !== null ? { customer: String(key[at]), filters } : { filters };
}

/** @param {{group: any, by: string[], metric: string, unit: string, isCompared: boolean, hasBase: boolean}} props */
function Row({ group, by, metric, unit, isCompared, hasBase }) {
  const figure = group.metrics[metric];
  const before = group.compared?.[metric];
  const isShownNow = isShown(metric, figure);
  return html`<tr>
    ${by.map((name, at) => html`<th scope="row">
      ${group.kind === "other" ? html`${group.labels[at]} <span class="note">${countText(group.groups)} more</span>` : html`<${Link} to=${narrowTo(name, group.key[at])}>${group.labels[at]}<//>`}
    </th>`)}
    <td class=${classOf(metric, figure)} title=${isShownNow ? "" : `not shown below ${viewsMin(metric)} views`}>${isShownNow ? valueText(unit, figure.value) : NONE}</td>
    ${metric !== "views" && html`<td>${group.kind === "other" ? countText(group.n) : html`<${Link} to=${{ screen: "views", ...viewsOf(by, group.key), more: {} }} title="the views behind it">${countText(group.n)}<//>`}</td>`}
    ${hasBase && html`<td class="note">${countText(figure.n)}</td>`}
    ${isCompared && html`<td>${before && isShown(metric, before) ? valueText(unit, before.value) : NONE}${before && html` <span class="note">n ${countText(before.n)}</span>`}</td>
      <td>${isShownNow && before ? (changeText(unit, figure.value, before.value) ?? NONE) : NONE}</td>`}
  </tr>`;
}

/** Of the field of a view that the metric is made of; only measured values have a distribution. @param {{metric: string, compare: string}} props */
function Distribution({ metric, compare }) {
  const of = metric.replace(/_p\d\d$/, "").replace("live_latency_ms", "live_latency_ms_avg").replace("view_watch_ms", "watch_ms");
  const has = metricOf(metric).kind === "percentile" || metric === "rebuffer_ms" || metric === "watch_ms";
  const found = useQuestion(has ? "/v1/distribution" : null, place.value, { of }, 30_000);
  const earlier = useEarlier(has && compare !== "", of, compare);
  if (!has) return html`<p class="empty">This metric has no distribution: choose a start-up time, a duration or a latency.</p>`;
  if (!compare) return html`<${Answered} of=${found} height=${280} draw=${(/** @type {any} */ data) => html`<${Distributed} data=${data} before=${null} />`} />`;
  return html`<${Answered} of=${found} height=${280} draw=${(/** @type {any} */ data) => html`
    <${Answered} of=${earlier} height=${280} draw=${(/** @type {any} */ before) => html`<${Distributed} data=${data} before=${before} />`} />`} />`;
}

/** The distribution in the range that is compared with: the API answers one range at a time. @param {boolean} isAsked @param {string} of @param {string} compare */
function useEarlier(isAsked, of, compare) {
  const { customer, range, from, to, tz, filters } = place.value;
  const key = JSON.stringify(["/v1/distribution", customer, range, from, to, tz, filters, of, compare]);
  const address = () => {
    const earlier = comparedRange(compare, place.value, Date.now());
    return addressFor("/v1/distribution", { ...place.value, range: "", from: String(earlier?.from_ms), to: String(earlier?.to_ms) }, { of });
  };
  return useFetched(isAsked ? key : null, address, 30_000);
}

/** Counts of views, and beside another range shares of them: the two need not have as many. @param {{data: any, before: any}} props */
function Distributed({ data, before }) {
  if (!data.n && !before?.n) return html`<p class="empty">${data.unknown ? `No view in this range has a value: ${countText(data.unknown)} have none.` : "No view in this range."}</p>`;
  const bins = binsBeside(data.bins, before?.bins ?? []);
  const [n, before_n] = [Math.max(1, data.n), Math.max(1, before?.n ?? 0)];
  const most = Math.max(...bins.map((bin) => Math.max(bin.n / n, bin.before / before_n)));
  const width = (/** @type {number} */ share) => ({ width: `${(100 * share) / most}%` });
  const ranks = Object.entries(data.quantiles).filter(([name]) => Math.max(data.n, before?.n ?? 0) >= quantileMin(name));
  const quantile = (/** @type {any} */ one, /** @type {string} */ name) => (one.n >= quantileMin(name) ? valueText("ms", one.quantiles[name]) : NONE);
  return html`<p class="note">n ${countText(data.n)}${before && `, before ${countText(before.n)}`} · ${countText(data.unknown)} views without a value · quantiles within 1 %</p>
    <ul class="quantiles">${ranks.map(([name]) => html`<li><b>${quantile(data, name)}</b> <span class="note">${name}${before && `, before ${quantile(before, name)}`}</span></li>`)}</ul>
    ${before && html`<p class="note">A bar is the share of the range's views; its dashed outline is that of the range that is compared with.</p>`}
    <div class="scroll plain" tabindex="0" role="region" aria-label="Views by value"><table class="bins" id="bins"><thead><tr><th scope="col">From</th><th scope="col">To below</th><th scope="col">Views</th>${before && html`<th scope="col">Before</th>`}</tr></thead>
      <tbody>${bins.map((bin) => html`<tr key=${bin.from_value}><th scope="row">${valueText("ms", bin.from_value)}</th><td>${valueText("ms", bin.to_value)}</td>
        <td class="bar-cell"><span class="bar" style=${width(bin.n / n)}></span>${before && html`<span class="bar before" style=${width(bin.before / before_n)}></span>`}<span class="count">${countText(bin.n)}${before && ` · ${shareText(bin.n / n)}`}</span></td>
        ${before && html`<td>${countText(bin.before)} · ${shareText(bin.before / before_n)}</td>`}</tr>`)}</tbody></table></div>`;
}
