// @ts-check
// Explore: a metric over a range, by up to two dimensions, under filters, beside another range; as lines, a table or a distribution.

import { metricsAsked } from "../../core/answers/asked.js";
import { ruleMetricOf } from "../../core/alerting/alerts.js";
import { changeText, countText, NONE, valueText } from "../../core/words/format.js";
import { distributedBy, rangeOf, viewsBehind, viewsOf, whichBehind } from "../../core/figures/behind.js";
import { exportOf, LINES_MAX, MULTIPLES_MAX } from "../../core/answers/exported.js";
import { hiddenNote, isShown, viewsMin } from "../../core/figures/figures.js";
import { tableOf } from "../../core/answers/groups.js";
import { BUCKETS, bucketsFor, momentText, rangeText, resolved } from "../../core/place/ranges.js";
import { linesOf, partialOf, topOf, unfinishedFrom } from "../../core/answers/series.js";
import { Answered, presentNow_ms, useQuestion } from "../../parts/data/asking.js";
import { Chart } from "../../parts/drawing/chart.js";
import { MixedClients } from "../../parts/notable/clients.js";
import { WhoIsBehind } from "../../parts/notable/who_is_behind.js";
import { Compare } from "../../parts/narrowing/compare.js";
import { Controls, narrowTo } from "../../parts/narrowing/controls.js";
import { BreakdownSelect } from "../../parts/narrowing/dimension_select.js";
import { Folded } from "../../parts/narrowing/folded.js";
import { Figure } from "../../parts/figures/figure.js";
import { Export } from "../../parts/exporting.js";
import { html } from "../../parts/html.js";
import { capital, metricOf, metrics, nameOf } from "../../parts/data/known.js";
import { go, Link, place } from "../../parts/place.js";
import { classOf } from "../../parts/notable/thresholds.js";
import { MetricName } from "../../parts/figures/glossary.js";
import { Distribution } from "./distribution.js";
import { Groups } from "./groups.js";

const DEFAULT = { metric: "rebuffer_fraction", as: "line" };
/** @type {Record<string, string>} */
const FORMS = { line: "Line", multiples: "Small multiples", table: "Table", distribution: "Distribution" };

export default function Explore() {
  const { more } = place.value;
  const { metric, others } = metricsAsked(more.metrics, metrics.value, DEFAULT.metric);
  const [by = "", second = ""] = (more.by ?? "").split(",");
  const as = more.as || DEFAULT.as;
  const compare = more.compare ?? "";
  const allowed = bucketsFor(resolved(place.value, presentNow_ms()));
  const bucket = allowed.includes(more.bucket) ? more.bucket : "";
  const byWhat = by && ` by ${nameOf(by)}${second && ` and ${nameOf(second)}`}`;
  const overall = useQuestion("/v1/overall", place.value, { metrics: metric, compare }, 30_000);
  return html`
    <${Controls} />
    <${Folded} id="shown" label="What is shown" summary=${`${capital(metricOf(metric).title)}${byWhat} · ${FORMS[as] ?? as}`}>
      <label class="pick">Metric <${MetricSelect} value=${metric} /></label>
      <${BreakdownSelect} id="by" title="By" value=${by} none="nothing" choose=${(/** @type {string} */ v) => go({ more: { by: v, rows: "" } })} />
      ${by && html`<${BreakdownSelect} id="by-second" title="and" value=${second} none="nothing else" choose=${(/** @type {string} */ v) => go({ more: { by: v ? `${by},${v}` : by, as: "table", rows: "" } })} />`}
      <${Compare} value=${compare} />
      <${Forms} as=${as} />
      ${(as === "line" || as === "multiples") && html`<${BucketSelect} value=${bucket} allowed=${allowed} />`}
      <${Export} ...${exportOf({ metric, as, by, second, compare, bucket, table: tableOf(more, metricOf(metric)) })} />
    <//>
    <section aria-labelledby="explore-title">
      <h2 id="explore-title"><${MetricName} name=${metric} />${byWhat}</h2>
      <${Others} others=${others} />
      <${Overall} found=${overall} metric=${metric} />
      <${WhoIsBehind} metric=${metric} compare=${compare} />
      <${MixedClients} metrics=${[metric]} within=${place.value} />
      <${Apart} as=${as} metric=${metric} by=${by} second=${second} />
      ${as === "multiples" && (by ? html`<${Multiples} metric=${metric} by=${by} compare=${compare} bucket=${bucket} />` : html`<p class="empty">Choose a dimension: each of its values has a chart of its own.</p>`)}
      ${as === "line" && html`<${Lines} metric=${metric} by=${by} compare=${compare} bucket=${bucket} />`}
      ${as === "distribution" && html`<${Distribution} metric=${metric} compare=${compare} />`}
      ${by && html`<${Groups} metric=${metric} by=${second ? `${by},${second}` : by} compare=${compare} />`}
    </section>`;
}

/** Says that one metric is shown of several that the address asks for. @param {{others: string[]}} props */
function Others({ others }) {
  return others.length > 0 && html`<p class="note" id="other-metrics">The address asks for several metrics. One is shown at a time. Show instead: ${others.map((name, at) => html`${at > 0 && " · "}<${Link} to=${{ more: { metrics: name } }}>${capital(metricOf(name).title)}<//>`)}</p>`;
}

/** Says which part of the heading the drawing leaves to the table. @param {{as: string, metric: string, by: string, second: string}} props */
function Apart({ as, metric, by, second }) {
  if (as === "distribution" && by && distributedBy(metric)) return html`<p class="note" id="apart">The distribution is of all views; the table below is by ${nameOf(by)}${second && ` and ${nameOf(second)}`}.</p>`;
  if (!second || (as !== "line" && as !== "multiples")) return null;
  return html`<p class="note" id="apart">The ${as === "line" ? "lines" : "charts"} are by ${nameOf(by)} alone; the table below has both.</p>`;
}

/** @param {{value: string}} props */
function MetricSelect({ value }) {
  const known = Object.values(metrics.value);
  return html`<select id="metric" value=${value} onChange=${(/** @type {any} */ e) => go({ more: { metrics: e.target.value } })}>
    ${known.map((one) => html`<option value=${one.name}>${capital(one.title)}</option>`)}
    ${!known.length && html`<option value=${value}>${value}</option>`}
  </select>`;
}

/** How long the time of a point is. @param {{value: string, allowed: string[]}} props - Empty: what fits the range. */
function BucketSelect({ value, allowed }) {
  return html`<label class="pick">A point each <select id="bucket" value=${value} onChange=${(/** @type {any} */ e) => go({ more: { bucket: e.target.value } })}>
    <option value="">what fits the range</option>
    ${allowed.map((name) => html`<option value=${name}>${BUCKETS[name].title}</option>`)}
  </select></label>`;
}

/** @param {{as: string}} props */
function Forms({ as }) {
  return html`<span class="forms" role="group" aria-label="Form">
    ${Object.entries(FORMS).map(([name, title]) => html`<button type="button" aria-pressed=${name === as} onClick=${() => go({ more: { as: name } })}>${title}</button>`)}
  </span>`;
}

/** The figure of the whole range, and of the one that it is compared with. @param {{found: import("../../parts/data/asking.js").Answer, metric: string}} props */
function Overall({ found, metric }) {
  const { unit } = metricOf(metric);
  return html`<${Answered} of=${found} height=${48} draw=${(/** @type {any} */ data) => {
    const figure = data.metrics[metric];
    const before = data.compared?.metrics[metric];
    const which = whichBehind(metric);
    const earlier = before && { ...place.value, ...rangeOf(data.compared.about.range) };
    const beside = [before && html`before <${Figure} metric=${metric} figure=${before} within=${earlier} between=", " />`, before && isShown(metric, figure) && isShown(metric, before) && changeText(unit, figure.value, before.value)];
    return html`<p class="figure" id="overall">
      <span class=${`value ${classOf(metric, figure)}`}>${isShown(metric, figure) ? valueText(unit, figure.value) : NONE}</span>
      <span class="note"><${Link} to=${viewsOf(metric, place.value)} title="all views on which it rests">n ${countText(figure.n)}<//>${beside.filter(Boolean).map((text) => html` · ${text}`)}</span>
    </p>
    ${before && html`<p class="note" id="compared">Before: ${rangeText({ from_ms: data.compared.about.range.from_ms, to_ms: data.compared.about.range.to_ms }, place.value.tz)}</p>`}
    <p class="note links"><${Link} to=${viewsBehind(metric, place.value)}>The views behind it${which && `: ${which}`}<//>${ruleMetricOf(metric) && html` · <${Link} to=${{ screen: "alerts", more: { rule: metric } }}>Alert on it<//>`}</p>
    ${figure.n > 0 && !isShown(metric, figure) && html`<p class="note">Not shown below ${viewsMin(metric)} views.</p>`}
    ${!data.about.has_hot_rows && html`<p class="notice" role="status">Views of the last minutes may be missing: there are too many to read one by one.</p>`}`;
  }} />`;
}

/** @param {{metric: string, by: string, compare: string, bucket: string}} props */
function Lines({ metric, by, compare, bucket }) {
  const found = useQuestion("/v1/timeseries", place.value, { metrics: metric, by, compare, bucket, ...(by ? { limit: LINES_MAX } : {}) }, 30_000);
  const { unit, title } = metricOf(metric);
  return html`<${Answered} of=${found} height=${280} draw=${(/** @type {any} */ data) => {
    const { times, lines } = linesOf(data, metric, capital(title));
    if (isEmpty(lines)) return html`<${Empty} of=${data} title=${title} />`;
    return html`<${Chart} times=${times} lines=${lines} unit=${unit} tz=${place.value.tz} title=${capital(title)} range=${data.about.range}
      zoom=${(/** @type {number} */ from, /** @type {number} */ to) => go({ from: String(from), to: String(to), range: "" })} />
      <${OfPoints} of=${data} metric=${metric} lines=${lines} />`;
  }} />`;
}

/** @param {import("../../core/answers/series.js").Line[]} lines */
const isEmpty = (lines) => lines.every((line) => line.counts.every((n) => n === 0));

/** Says whether there is no view, or none with a value of the metric. @param {{of: any, title: string}} props */
function Empty({ of, title }) {
  const parts = [of, of.compared].flatMap((one) => (one ? [one, ...(one.groups ?? [])] : []));
  const hasViews = parts.some((part) => part.points?.some((/** @type {any} */ point) => point.n > 0));
  return html`<p class="empty">${hasViews ? `No view in this range has a value of ${title}.` : "No view in this range."}</p>`;
}

/** What is to be known of the points of a chart. @param {{of: any, metric: string, lines: import("../../core/answers/series.js").Line[]}} props */
function OfPoints({ of, metric, lines }) {
  const unfinished_ms = unfinishedFrom(of);
  const hidden = hiddenNote(metric, lines.flatMap((line) => line.counts), "Gap");
  return html`${hidden && html`<p class="note" id="hidden-points">${hidden}</p>`}
    <${Partial} of=${of} />
    ${unfinished_ms !== null && html`<p class="note" id="unfinished">The last point, from ${momentText(unfinished_ms, place.value.tz)} on, is not complete yet: it rests on fewer views, and still changes.</p>`}`;
}

/** Says which points are lower because the range has a part of their time alone. @param {{of: any}} props */
function Partial({ of }) {
  const partial = partialOf(of);
  return partial.length > 0 && html`<p class="note" id="partial">Not ${/^\d/.test(of.bucket) ? `the whole ${BUCKETS[of.bucket].title}` : `a whole ${of.bucket}`}: ${partial.map((point) => rangeText(point, place.value.tz)).join(", and ")}. Counts there are of this part alone.</p>`;
}

/** A chart for each value, all on one scale: what differs is seen without a legend. @param {{metric: string, by: string, compare: string, bucket: string}} props */
function Multiples({ metric, by, compare, bucket }) {
  const found = useQuestion("/v1/timeseries", place.value, { metrics: metric, by, compare, bucket, limit: MULTIPLES_MAX }, 30_000);
  const { unit, title } = metricOf(metric);
  const zoom = (/** @type {number} */ from, /** @type {number} */ to) => go({ from: String(from), to: String(to), range: "" });
  return html`<${Answered} of=${found} height=${420} draw=${(/** @type {any} */ data) => {
    const { times, lines } = linesOf(data, metric, "");
    const top = topOf(lines);
    if (isEmpty(lines)) return html`<${Empty} of=${data} title=${title} />`;
    // A line of earlier is drawn with its own, in its colour.
    const drawn = lines.filter((line) => line.beside === undefined).map((line, at) => ({ line, earlier: lines.filter((one) => one.beside === at).map((one) => ({ ...one, beside: 0 })) }));
    return html`<p class="note" id="multiples-note">Times are of ${place.value.tz}${compare && ". Dashed lines are of the range that is compared with"}</p>
    <div class="multiples" id="multiples">${drawn.map(({ line, earlier }) => html`<article class="card" key=${line.title}>
      <h3>${line.kind === "other" ? line.title : html`<${Link} to=${narrowTo(by, line.key[0])}>${line.title}<//>`} <span class="note">n ${countText(line.counts.reduce((sum, n) => sum + n, 0))}</span></h3>
      <${Chart} times=${times} lines=${[line, ...earlier]} unit=${unit} tz=${place.value.tz} title=${line.title} height=${120} range=${data.about.range} zoom=${zoom} top=${top} isSmall />
    </article>`)}</div>
    <${OfPoints} of=${data} metric=${metric} lines=${lines} />`;
  }} />`;
}
