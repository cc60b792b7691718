// @ts-check
// One incident: what was found, since when, where and who is suspected; what people did with it, and who was notified.

import { useSignal } from "@preact/signals";
import { allOf, baseText, figureText, hitOf, hitsText, metricOf, sliceText, UP_TO_OPENING, viewMetricOf, whenText } from "../../core/alerting/alerts.js";
import { viewsBehind } from "../../core/figures/behind.js";
import { aroundOf, baseOf, countedText, historyLines, historyOf, latestOf, newestOf, usualBaseText } from "../../core/alerting/course.js";
import { countedAt, viewsAt } from "../../core/alerting/views.js";
import { filtersOf, OTHER } from "../../core/place/filters.js";
import { countText, durationText, NONE, shareText } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { addressFor, Answered, newestNow_ms, useFetched } from "../../parts/data/asking.js";
import { Chart } from "../../parts/drawing/chart.js";
import { Act, Form } from "../../parts/inputs/forms.js";
import { Base, Behind } from "../../parts/notable/behind_incident.js";
import { RuleMeaning } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { capital, dimensions, titleOf } from "../../parts/data/known.js";
import { Link, place } from "../../parts/place.js";
import { change, mayChange } from "../../parts/data/session.js";

const AGAIN_MS = 5_000;
/** How long nobody is told of an incident, in hours. @type {Record<string, string>} */
const MUTES = { 1: "Mute for an hour", 24: "Mute for a day" };
/** Below it a probability is written as if it were so large. */
const PROBABILITY_MIN = 10 ** -300;

/** Whether it has the values with few viewers, which have no names. @param {Record<string, string>} slice */
const isNameless = (slice) => Object.values(slice).includes(OTHER);

export default function Incident() {
  const id = place.value.more.id ?? "";
  const version = useSignal(0);
  const found = useFetched(id ? `incident ${id}` : null, () => `/v1/alerts/incidents/${encodeURIComponent(id)}`, AGAIN_MS, version.value);
  const done = () => {
    version.value += 1;
  };
  if (!id) return html`<p class="empty">Choose an incident on <${Link} to=${{ screen: "alerts" }}>Alerts<//>.</p>`;
  return html`<${Answered} of=${found} height=${420} draw=${(/** @type {any} */ story) => html`<${Drawn} story=${story} done=${done} />`} />`;
}

/** @param {{story: any, done: () => void}} props */
function Drawn({ story, done }) {
  const { incident } = story;
  const { event } = incident;
  const { tz } = place.value;
  const path = `/v1/alerts/incidents/${incident.id}`;
  const lasted = durationText((incident.closed_ms ?? newestNow_ms()) - incident.opened_ms);
  const isMuted = incident.muted_until_ms > newestNow_ms();
  return html`<section aria-labelledby="incident-title">
    <p><${Link} to=${{ screen: "alerts", more: {} }}>All incidents<//></p>
    <div class="section-head"><h2 id="incident-title">${event.rule_name} · ${incident.customer}</h2>
      <p class="note" id="incident-state">${incident.closed_ms ? `over, lasted ${lasted}` : `open for ${lasted}`} · ${event.severity}</p></div>
    <ul class="facts" id="incident-facts">
      <li><span class="note">Since</span><b>${momentText(incident.opened_ms, tz, { seconds: true })}</b></li>
      ${incident.closed_ms && html`<li><span class="note">Until</span><b>${momentText(incident.closed_ms, tz, { seconds: true })}</b></li>`}
      <${Figures} incident=${incident} />
      ${event.affected_max > 0 && html`<li><span class="note">Hit at a time, at most</span><b>${hitsText(event.metric, event.affected_max)}</b>${!incident.closed_ms && html`<span class="note">${UP_TO_OPENING}</span>`}</li>`}
      ${!metricOf(event.metric).dimensions && !isNameless(event.slices[0]?.slice ?? {}) && html`<${Views} incident=${incident} />`}
      <li><span class="note">Acknowledged</span><b>${incident.acknowledged_by ? `by ${incident.acknowledged_by}` : "by nobody"}</b>
        ${incident.acknowledged_ms && html`<span class="note">${momentText(incident.acknowledged_ms, tz)}</span>`}</li>
      <li><span class="note">Messages</span><b>${isMuted ? `muted by ${incident.muted_by}` : "on"}</b>
        ${isMuted && html`<span class="note">until ${momentText(incident.muted_until_ms, tz)}</span>`}</li>
    </ul>
    ${mayChange() && html`<p>${!incident.acknowledged_by && html`<${Act} key="acknowledge" title="Acknowledge" act=${() => change("POST", `${path}/acknowledge`)} done=${done} />`}
      ${(isMuted ? [0] : Object.keys(MUTES)).map((hours) => html`<${Act} key=${`mute ${hours}`} title=${MUTES[hours] ?? "Messages again"} act=${() => change("POST", `${path}/mute`, { hours: Number(hours) })} done=${done} /> `)}</p>`}
  </section>
  <${Course} incident=${incident} />
  <${Found} incident=${incident} />
  <${Suspects} incident=${incident} />
  <${History} story=${story} />
  <section aria-labelledby="comments-title"><div class="section-head"><h2 id="comments-title">Comments</h2></div>
    <ul id="comments">${story.comments.map((/** @type {any} */ one) => html`<li key=${one.id}><b>${one.author}</b> <span class="note">${momentText(one.at_ms, tz)}</span><br />${one.text}</li>`)}</ul>
    ${mayChange() && html`<${Form} id="new-comment" send=${(/** @type {FormData} */ form) => change("POST", `${path}/comments`, { text: String(form.get("text")) })} done=${done}>
      <label>Comment <input name="text" required maxlength="4000" size="60" /></label>
    <//>`}
  </section>`;
}

/** The figure of the worst slice when it was found, and where the incident is open the one of the newest minute. @param {{incident: any}} props */
function Figures({ incident }) {
  const { event } = incident;
  const { tz } = place.value;
  const worst = event.slices[0];
  const { parameters, value } = newestOf(incident, worst?.slice ?? {}, newestNow_ms(), Object.keys(dimensions.value));
  const found = useFetched(worst && !incident.closed_ms ? `incident now ${incident.id} ${parameters.dimension} ${value}` : null, () => historyAddress(parameters), 0, parameters.until_ms);
  if (!worst) return null;
  const usualBase = usualBaseText(event.metric, worst);
  const newest = found.data && latestOf(found.data, event.metric, value);
  const behind = viewsAt(incident, worst.slice, countedAt(worst));
  const now = newest && viewsAt(incident, worst.slice, { from_ms: newest.to_ms - parameters.step_ms, to_ms: newest.to_ms });
  return html`<li id="figure-then"><span class="note">${capital(whenText(worst, event, tz))} <${RuleMeaning} metric=${event.metric} /></span><b><${Behind} of=${behind}>${figureText(event.metric, worst.value)}<//></b><span class="note"><${Based} metric=${event.metric} n=${baseOf(event.metric, worst)} of=${behind} />${worst.probability === null ? "limit" : "usually"} ${figureText(event.metric, worst.usual)}${usualBase && `, ${usualBase}`}</span></li>
    ${newest && html`<li id="figure-now"><span class="note">Now</span><b><${Behind} of=${now}>${figureText(event.metric, newest.value)}<//></b><span class="note"><${Based} metric=${event.metric} n=${newest.n} of=${now} />minute to ${momentText(newest.to_ms, tz)}</span></li>`}`;
}

/** An n before what else is said of its figure. @param {{metric: string, n: number | null, of: ReturnType<typeof viewsAt>}} props */
const Based = (props) => baseText(props.metric, props.n) && html`<${Base} ...${props} />, `;

/** @param {any} parameters */
const historyAddress = (parameters) => `/v1/live/history?${new URLSearchParams(parameters)}`;

/** Views that finished in the slice while it lasted, and those of them that were hit. @param {{incident: any}} props */
function Views({ incident }) {
  const { event } = incident;
  const to_ms = incident.closed_ms ?? newestNow_ms() - (newestNow_ms() % 60_000);
  const where = { ...place.value, customer: incident.customer, range: "", from: String(incident.opened_ms - 60_000), to: String(Math.max(to_ms, incident.opened_ms) + 60_000), filters: filtersOf(event.slices[0]?.slice ?? {}) };
  const found = useFetched(`incident views ${incident.id} ${where.filters}`, () => addressFor("/v1/overall", where, { metrics: "views,playback_failures" }), 0, to_ms);
  const figures = found.data?.metrics;
  const { customer, range, from, to, filters } = where;
  const views = { customer, range, from, to, filters };
  const failed = { ...views, ...viewsBehind("playback_failures", views) };
  return html`<li id="incident-views"><span class="note">Views that finished there</span><b>${figures ? html`<${Link} to=${{ screen: "views", ...views, more: {} }} title="the views behind it">${countText(figures.views.value)}<//>` : "…"}</b>
    ${figures?.playback_failures && html`<span class="note"><${Link} to=${failed} title="the views behind it">${countText(figures.playback_failures.value)} failed<//>, n ${countText(figures.playback_failures.n)}</span>`}</li>`;
}

/** The metric and the viewers of the worst slice, from half an hour before. @param {{incident: any}} props */
function Course({ incident }) {
  const { event } = incident;
  const slice = event.slices[0]?.slice ?? {};
  const minute_ms = newestNow_ms() - (newestNow_ms() % 60_000);
  const { parameters, value } = historyOf(incident, slice, minute_ms, Object.keys(dimensions.value));
  const found = useFetched(`incident course ${incident.id} ${parameters.dimension} ${value}`, () => historyAddress(parameters), 0, parameters.until_ms);
  const { title, unit } = metricOf(event.metric);
  const step = parameters.step_ms < 60_000 ? "by 5 s" : "by minute";
  const counted = capital(hitOf(event.metric));
  const marks = [{ at_s: incident.opened_ms / 1_000, title: "began" }, ...(incident.closed_ms ? [{ at_s: incident.closed_ms / 1_000, title: "over" }] : [])];
  const drawn = (/** @type {any} */ picture) => {
    const { times, values, counts, beside } = historyLines(picture, event.metric, value);
    if (!times.length) return html`<p class="empty">Nothing has been landed of this time yet.</p>`;
    const line = (/** @type {string} */ name, /** @type {any[]} */ numbers, /** @type {number[]} */ of = [], /** @type {any} */ words = undefined) => [{ title: name, kind: "value", key: [], values: numbers, counts: of, name: words }];
    const named = html`${title} <${RuleMeaning} metric=${event.metric} />`;
    return html`<div class="charts">
      <${Chart} times=${times} lines=${line(title, values, counts ?? [], named)} unit=${unit === "share" ? "fraction" : unit} tz=${place.value.tz} height=${180} marks=${marks} title=${`${title} ${step}`} hasCounts=${counts !== null} />
      <${Chart} times=${times} lines=${line(counted, beside)} unit="count" tz=${place.value.tz} height=${140} marks=${marks} title=${`${counted} ${step}`} hasCounts=${false} /></div>`;
  };
  return html`<section aria-labelledby="course-title">
    <div class="section-head"><h2 id="course-title">Course</h2><p class="note">${sliceText(slice, allOf(event.metric), titleOf)}, ${step}; dashed: when the incident began${incident.closed_ms ? " and was over" : ""}</p></div>
    <div id="course"><${Answered} of=${found} height=${340} draw=${drawn} /></div>
  </section>`;
}

/** @param {{incident: any}} props */
function Found({ incident }) {
  const { event } = incident;
  return html`<section aria-labelledby="found-title">
    <div class="section-head"><h2 id="found-title">${metricOf(event.metric).title}: where <${RuleMeaning} metric=${event.metric} /></h2></div>
    <div class="scroll" tabindex="0" role="region" aria-label="Where">
      <table id="found">
        <thead><tr><th scope="col">Where</th><th scope="col">Figure then</th><th scope="col">Usual or limit</th><th scope="col">Counted</th><th scope="col">If nothing had changed</th><th scope="col"></th></tr></thead>
        <tbody>${event.slices.map((/** @type {any} */ one) => ({ one, behind: viewsAt(incident, one.slice, countedAt(one)) })).map((/** @type {any} */ { one, behind }) => html`<tr>
          <th scope="row">${sliceText(one.slice, allOf(event.metric), titleOf)}</th>
          <td><${Behind} of=${behind}>${figureText(event.metric, one.value)}<//> <span class="note"><${Base} metric=${event.metric} n=${baseOf(event.metric, one)} of=${behind} /> ${whenText(one, event, place.value.tz)}</span></td>
          <td>${figureText(event.metric, one.usual)} <span class="note">${one.probability === null ? "limit" : usualBaseText(event.metric, one)}</span></td>
          <td>${countedText(event.metric, one)}</td>
          <td>${one.probability === null ? NONE : `1 in ${Number(1 / Math.max(one.probability, PROBABILITY_MIN)).toExponential(0)} (${one.season.replaceAll("_", " ")})`}</td>
          <td><${Around} incident=${incident} slice=${one.slice} /></td>
        </tr>`)}</tbody>
      </table>
    </div>
  </section>`;
}

/** @param {{incident: any}} props */
function Suspects({ incident }) {
  const { suspects } = incident.event;
  if (!suspects.length) return html`<p class="note" id="no-suspects">No single dimension stands out: none has much more of it than its share of ${hitOf(incident.event.metric)}.</p>`;
  return html`<section aria-labelledby="suspects-title">
    <div class="section-head"><h2 id="suspects-title">Suspects</h2></div>
    <ol id="suspects">${suspects.map((/** @type {any} */ one) => html`<li>
      <b>${sliceText(one.slice, "all views", titleOf)}</b>: ${shareText(one.explains)} of the excess, ${shareText(one.share)} of ${hitOf(incident.event.metric)}${one.of_all ? html` <span class="note">n ${countText(one.of_all)}</span>` : ""}. <${Around} incident=${incident} slice=${one.slice} /></li>`)}</ol>
  </section>`;
}

/** @param {{incident: any, slice: Record<string, string>}} props */
function Around({ incident, slice }) {
  const { from_ms, to_ms } = aroundOf(incident, newestNow_ms());
  // What was rejected is no view.
  const where = sliceText(slice, allOf(incident.event.metric), titleOf);
  if (metricOf(incident.event.metric).dimensions) return html`<${Link} aria-label=${`See what is rejected: ${where}`} to=${{ screen: "integration", customer: incident.customer, range: "", filters: [], more: {} }}>See what is rejected<//>`;
  if (isNameless(slice)) return html`<span class="note">values with few viewers, which no filter names</span>`;
  const to = { screen: "explore", customer: incident.customer, range: "", from: String(from_ms), to: String(to_ms), filters: filtersOf(slice), more: { metrics: viewMetricOf(incident.event.metric) } };
  const errors = { ...to, screen: "errors", more: { since: String(incident.opened_ms) } };
  return html`<${Link} aria-label=${`Explore its views: ${where}`} to=${to}>Explore its views<//> · <${Link} aria-label=${`Errors since then: ${where}`} to=${errors}>Errors since then<//>`;
}

/** @param {{story: any}} props */
function History({ story }) {
  const { tz } = place.value;
  return html`<section aria-labelledby="changes-title">
    <div class="section-head"><h2 id="changes-title">What happened</h2></div>
    <ol id="changes">${story.changes.map((/** @type {any} */ one) => html`<li key=${one.revision}>${momentText(one.at_ms, tz, { seconds: true })}: ${one.change}
      ${story.deliveries.filter((/** @type {any} */ sent) => sent.revision === one.revision).map((/** @type {any} */ sent) => html`<span class="note"> · ${sent.receiver}: ${sent.state}${sent.problem ? ` (${sent.problem})` : ""}</span>`)}</li>`)}</ol>
  </section>`;
}
