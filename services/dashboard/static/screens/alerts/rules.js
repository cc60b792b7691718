// @ts-check
// Rules: listed, tried, made and changed.

import { useSignal } from "@preact/signals";
import { allOf, clockText, DAY_MINUTES, dayNames, dimensionsOf, figureOf, figureText, limitOf, METRICS, metricOf, quietText, ruleMetricOf, ruleOf, ruleText, sliceOf, sliceText, triedText } from "../../core/alerting/alerts.js";
import { durationText } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { useFetched } from "../../parts/data/asking.js";
import { Act, Form } from "../../parts/inputs/forms.js";
import { RuleMeaning } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { dimensions, nameOf, titleOf } from "../../parts/data/known.js";
import { place } from "../../parts/place.js";
import { change, mayChange } from "../../parts/data/session.js";

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone")];
const NEW = { name: "", metric: "rebuffering", condition: "anomaly", direction: "above", ratio: 1.5, threshold: null, filter: {}, by: "", for_seconds: 0, viewers_min: 50, severity: "warning", is_enabled: true, quiet: { time_zone: "UTC", spans: [] }, receivers: [] };
/** Of what is typed, by the unit of a metric. @type {Record<string, string>} */
const UNITS = { share: "percent", ms: "ms", bps: "bits a second", count: "a number" };
/** What a number is typed as. */
const NUMBER = "\\d*[.]?\\d+";
const ALL_DAYS = [0, 1, 2, 3, 4, 5, 6];

/** A rule among those of several customers. @param {any} one */
const named = ({ rule }) => `${rule.name}, ${rule.customer}`;

/** @param {{rules: any[], receivers: any[] | null, done: () => void}} props - `receivers`: null while they are not known. */
export function Rules({ rules, receivers, done }) {
  const edited = useSignal("");
  if (!rules.length) return html`<p class="empty" id="no-rules">No rule yet: nobody is notified of anything.</p>`;
  const changed = rules.find((one) => one.id === edited.value);
  const finish = () => {
    edited.value = "";
    done();
  };
  const names = Object.fromEntries((receivers ?? []).map((one) => [one.id, one.name]));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Rules">
    <table id="rules">
      <thead><tr><th scope="col">Rule</th><th scope="col">Customer</th><th scope="col">Finds</th><th scope="col">Severity</th><th scope="col">Notifies</th><th scope="col">Changed by</th><th scope="col">Actions</th></tr></thead>
      <tbody>${rules.map((one) => html`<tr key=${one.id}>
        <th scope="row">${one.rule.name}${one.rule.is_enabled ? "" : " (off)"}</th><td>${one.rule.customer}</td><td>${ruleText(one.rule, nameOf)} <${RuleMeaning} metric=${one.rule.metric} /></td><td>${one.rule.severity}</td>
        <td>${[one.rule.receivers.map((/** @type {string} */ id) => names[id] ?? (receivers ? "another team's" : "…")).join(", ") || "nobody", quietText(one.rule.quiet)].filter(Boolean).join("; ")}</td>
        <td>${one.changed_by}, version ${one.version}</td>
        <td>${mayChange() && html`<button type="button" aria-label=${`Change: ${named(one)}`} onClick=${() => { edited.value = edited.value === one.id ? "" : one.id; }}>Change</button>
          <${Act} title="Delete" of=${named(one)} asks=${`Delete the rule ${one.rule.name}?`} act=${() => change("DELETE", `/v1/alerts/rules/${one.id}`)} done=${done} />`}</td>
      </tr>`)}</tbody>
    </table>
  </div>
  ${changed && receivers && html`<${RuleForm} key=${`${changed.id} ${changed.version}`} id="change-rule" stored=${changed} customer=${changed.rule.customer} receivers=${receivers} done=${finish} />`}`;
}

/** A rule of what the page's filters name, and of the metric that one comes from. @param {{receivers: any[], done: () => void}} props */
export function NewRule({ receivers, done }) {
  const { customer, filters, more } = place.value;
  const asked = ruleMetricOf(more.rule ?? "");
  const filter = sliceOf(filters);
  const chosen = useSignal(/** @type {any} */ (null));
  const made = useSignal(0);
  const finish = () => {
    // Another form: a reset takes the first of each list, so that the next rule would be of the least severity.
    made.value += 1;
    done();
  };
  const suggested = useFetched(customer === "*" ? null : `suggested ${customer}`, () => `/v1/alerts/rules/suggested?customer=${encodeURIComponent(customer)}`);
  const begun = chosen.value ?? { ...NEW, filter, ...(asked ? { metric: asked, condition: "threshold" } : {}) };
  const offers = suggested.data?.rules ?? [];
  return html`<details open=${asked !== null}><summary>New rule</summary>
    ${offers.length > 0 && html`<p id="suggested-rules">Suggested: ${offers.map((/** @type {any} */ one) => html`<button type="button" key=${one.name} onClick=${() => { chosen.value = one; }}>${one.name}</button> `)}</p>`}
    <p class="note" id="rule-where">${filters.length ? `Within: ${sliceText(filter, "all views", titleOf)}. The filters above say it.` : "Of all views, unless the filters above or the form narrow it: by single values of at most two dimensions."}</p>
    <${RuleForm} key=${JSON.stringify([customer, begun, made.value])} id="new-rule" begun=${begun} customer=${customer === "*" ? "" : customer} receivers=${receivers} done=${finish} />
  </details>`;
}

/** Makes a rule, or changes one; either can be tried before. @param {{id: string, stored?: any, begun?: any, customer: string, receivers: any[], done: () => void}} props */
export function RuleForm({ id, stored, begun, customer, receivers, done }) {
  const rule = stored?.rule ?? begun;
  const condition = useSignal(rule.condition);
  const metric = useSignal(rule.metric);
  const send = (/** @type {FormData} */ form) => {
    const body = ruleOf(form);
    return stored ? change("PUT", `/v1/alerts/rules/${stored.id}`, { version: stored.version, rule: body }) : change("POST", "/v1/alerts/rules", body);
  };
  const named = dimensionsOf(metric.value, Object.keys(dimensions.value));
  const found = METRICS.filter((one) => condition.value === "threshold" || one.anomaly);
  const unit = UNITS[metricOf(metric.value).unit];
  return html`<${Form} id=${id} send=${send} done=${done} title=${stored ? "Save the change" : "Save"}>
    <label>Name <input name="name" required maxlength="200" defaultValue=${rule.name} /></label>
    <label>Customer <input name="customer" defaultValue=${customer} required maxlength="64" size="12" readonly=${Boolean(stored)} /></label>
    <label>Condition <select name="condition" value=${condition.value} onChange=${(/** @type {any} */ e) => { condition.value = e.target.value; }}>
      <option value="anomaly">unlike what is usual</option><option value="threshold">beyond a limit</option></select></label>
    <label>Metric <select name="metric" value=${metric.value} onChange=${(/** @type {any} */ e) => { metric.value = e.target.value; }}>
      ${found.map((one) => html`<option value=${one.name}>${one.title}</option>`)}</select></label>
    ${condition.value === "threshold" && html`<label>Side <select name="direction"><option selected=${rule.direction === "above"}>above</option><option selected=${rule.direction === "below"}>below</option></select></label>`}
    <label>Figure (${condition.value === "anomaly" ? "times what is usual" : unit}) <input name="figure" required inputmode="decimal" pattern=${NUMBER} title="a number, such as 2.5" size="6" defaultValue=${figureOf(rule)} /></label>
    ${condition.value === "anomaly" && html`<label>And beyond, if given (${unit}) <input name="least" inputmode="decimal" pattern=${NUMBER} title="a number, such as 2.5" size="6" defaultValue=${rule.condition === "anomaly" ? limitOf(rule) : ""} /></label>`}
    <${Filters} rule=${rule} named=${named} />
    <label>Judged <select name="by"><option value="">as a whole</option>${named.map((name) => html`<option value=${name} selected=${rule.by === name}>each ${nameOf(name)} alone</option>`)}</select></label>
    <label>For seconds <input name="for_seconds" inputmode="numeric" size="5" defaultValue=${rule.for_seconds} /></label>
    <label>${metricOf(metric.value).dimensions ? "Beacons in 5 s" : "Viewers"} at least <input name="viewers_min" inputmode="numeric" size="6" defaultValue=${rule.viewers_min} /></label>
    <label>Severity <select name="severity">${["info", "warning", "critical"].map((one) => html`<option selected=${one === rule.severity}>${one}</option>`)}</select></label>
    <fieldset class="boxes"><legend>Notify</legend>${receivers.map((one) => html`<label key=${one.id}><input type="checkbox" name="receivers" value=${one.id} defaultChecked=${rule.receivers.includes(one.id)} /> ${one.name}</label>`)}
      ${!receivers.length && html`<span>nobody: there is no receiver yet</span>`}</fieldset>
    <label><input type="checkbox" name="is_enabled" defaultChecked=${rule.is_enabled} /> In force</label>
    <${Quiet} quiet=${rule.quiet} />
    <${Trial} formId=${id} />
  <//>`;
}

/** One value of a dimension, or a pair. @param {{rule: any, named: string[]}} props */
function Filters({ rule, named }) {
  const given = Object.entries(rule.filter ?? {});
  return html`${[0, 1].map((at) => html`<span class="pair" key=${at}>
    <label>${at ? "and" : "Only where"} <select name="filter_dimension"><option value="">any</option>${named.map((name) => html`<option value=${name} selected=${given[at]?.[0] === name}>${titleOf(name)}</option>`)}</select></label>
    <label>is <input name="filter_value" maxlength="64" size="10" defaultValue=${given[at]?.[1] ?? ""} aria-label=${`Value ${at + 1}`} /></label></span>`)}`;
}

/** Times of the week in which nobody is notified. @param {{quiet: any}} props */
function Quiet({ quiet }) {
  const spans = useSignal(quiet?.spans?.length ? quiet.spans : []);
  const add = () => {
    spans.value = [...spans.value, { from_minute: 22 * 60, to_minute: 6 * 60, days: ALL_DAYS }];
  };
  return html`<fieldset class="quiet"><legend>Quiet hours</legend>
    <label>Time zone <select name="time_zone">${ZONES.map((zone) => html`<option selected=${zone === (quiet?.time_zone ?? "UTC")}>${zone}</option>`)}</select></label>
    ${spans.value.map((/** @type {any} */ one, /** @type {number} */ at) => html`<span class="pair" key=${at}>
      <label>from <input type="time" name="quiet_from" defaultValue=${clockText(one.from_minute)} /></label>
      <label>to <input type="time" name="quiet_to" defaultValue=${clockText(one.to_minute % DAY_MINUTES)} /></label>
      ${dayNames().map((name, day) => html`<label><input type="checkbox" name=${`quiet_days_${at}`} value=${day} defaultChecked=${one.days.includes(day)} /> ${name}</label>`)}
    </span>`)}
    <button type="button" onClick=${add}>Add quiet hours</button>
    ${spans.value.length > 0 && html`<button type="button" onClick=${() => { spans.value = spans.value.slice(0, -1); }}>Remove the last</button>`}
  </fieldset>`;
}

/** What the rule of a form would have found. @param {{formId: string}} props */
function Trial({ formId }) {
  const state = useSignal(/** @type {any} */ (null));
  const ask = async () => {
    const form = /** @type {HTMLFormElement} */ (document.getElementById(formId));
    if (!form.reportValidity()) return;
    state.value = { isAsking: true };
    try {
      state.value = { tried: await change("POST", "/v1/alerts/rules/trial", ruleOf(new FormData(form))) };
    } catch (wrong) {
      const found = /** @type {any} */ (wrong);
      state.value = { problem: `${found.title}. ${found.detail}` };
    }
  };
  const found = state.value;
  return html`<div class="trial" id=${`${formId}-trial`}>
    <button type="button" onClick=${ask} disabled=${Boolean(found?.isAsking)}>Try it</button>
    <div role="status">${found?.isAsking && "Judging the last 7 days…"}${found?.tried && triedText(found.tried)}</div>
    ${found?.problem && html`<p class="notice" role="alert">${found.problem}</p>`}
    ${found?.tried?.incidents.length > 0 && html`<ol>${found.tried.incidents.map((/** @type {any} */ one) => html`<li>${triedIncident(one)}</li>`)}</ol>`}
  </div>`;
}

/** @param {any} one */
function triedIncident(one) {
  const { event } = one;
  const worst = event.slices[0];
  const lasted = one.closed_ms ? `lasted ${durationText(one.closed_ms - one.opened_ms)}` : "still open";
  const more = event.slices.length + event.further_slices - 1;
  return `${momentText(one.opened_ms, place.value.tz)}, ${lasted}: ${figureText(event.metric, worst.value)} in ${sliceText(worst.slice, allOf(event.metric), nameOf)}${more ? ` and ${more} more` : ""}`;
}
