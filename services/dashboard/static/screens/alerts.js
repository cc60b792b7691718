// @ts-check
// Alerts: incidents that are open and those before, rules, and receivers, with what makes and tests them.

import { useSignal } from "@preact/signals";
import { figureText, METRICS, ruleMetricOf, ruleOf, ruleText, sliceOf, sliceText } from "../core/alerts.js";
import { ageText, durationText } from "../core/format.js";
import { momentText } from "../core/ranges.js";
import { Answered, now_ms, useFetched } from "../parts/asking.js";
import { Controls } from "../parts/controls.js";
import { html } from "../parts/html.js";
import { dimensions } from "../parts/known.js";
import { Link, place } from "../parts/place.js";
import { change } from "../parts/session.js";

const AGAIN_MS = 5_000;

export default function Alerts() {
  const { customer } = place.value;
  const of = customer === "*" ? "" : `&customer=${encodeURIComponent(customer)}`;
  const version = useSignal(0);
  const done = () => {
    version.value += 1;
  };
  const incidents = useFetched(`incidents ${of}`, () => `/v1/alerts/incidents?limit=50${of}`, AGAIN_MS);
  const rules = useFetched(`rules ${of} ${version.value}`, () => `/v1/alerts/rules?${of.slice(1)}`);
  const receivers = useFetched(`receivers ${version.value}`, () => "/v1/alerts/receivers");
  return html`
    <${Controls} hasRange=${false} />
    <section aria-labelledby="incidents-title">
      <div class="section-head"><h2 id="incidents-title">Incidents</h2></div>
      <${Answered} of=${incidents} height=${160} draw=${(/** @type {any} */ data) => html`<${Incidents} incidents=${data.incidents} />`} />
    </section>
    <section aria-labelledby="rules-title">
      <div class="section-head"><h2 id="rules-title">Rules</h2></div>
      <${Answered} of=${rules} height=${120} draw=${(/** @type {any} */ data) => html`<${Rules} rules=${data.rules} done=${done} />`} />
      <${NewRule} customer=${customer === "*" ? "" : customer} receivers=${receivers.data?.receivers ?? []} done=${done} />
    </section>
    <section aria-labelledby="receivers-title">
      <div class="section-head"><h2 id="receivers-title">Receivers</h2></div>
      <${Answered} of=${receivers} height=${80} draw=${(/** @type {any} */ data) => html`<${Receivers} receivers=${data.receivers} done=${done} />`} />
      <${NewReceiver} done=${done} />
    </section>`;
}

/** @param {{incidents: any[]}} props */
function Incidents({ incidents }) {
  if (!incidents.length) return html`<p class="empty" id="no-incidents">No incident so far.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Incidents">
    <table id="incidents">
      <thead><tr><th scope="col">Incident</th><th scope="col">State</th><th scope="col">Customer</th><th scope="col">Figure</th><th scope="col">Usual or limit</th><th scope="col">Where</th><th scope="col">Viewers at most</th><th scope="col">Since</th></tr></thead>
      <tbody>${incidents.map((one) => html`<${Row} key=${one.id} one=${one} />`)}</tbody>
    </table>
  </div>`;
}

/** @param {{one: any}} props */
function Row({ one }) {
  const { event } = one;
  const worst = event.slices[0];
  const state = one.closed_ms ? `over, lasted ${durationText(one.closed_ms - one.opened_ms)}` : one.acknowledged_by ? `open, ${one.acknowledged_by} is on it` : "open";
  return html`<tr>
    <th scope="row"><${Link} to=${{ screen: "incident", more: { id: one.id } }}>${event.rule_name}<//></th>
    <td class=${one.closed_ms ? "" : "is-warm"}>${state}</td>
    <td>${one.customer}</td>
    <td>${worst && figureText(event.metric, worst.value)}</td>
    <td>${worst && figureText(event.metric, worst.usual)}</td>
    <td>${worst && sliceText(worst.slice)}${event.slices.length > 1 ? ` and ${event.slices.length - 1 + event.further_slices} more` : ""}</td>
    <td>${event.affected_max || ""}</td>
    <td>${momentText(one.opened_ms, place.value.tz, { seconds: true })} (${ageText(now_ms.value - one.opened_ms)})</td>
  </tr>`;
}

/** @param {{rules: any[], done: () => void}} props */
function Rules({ rules, done }) {
  if (!rules.length) return html`<p class="empty" id="no-rules">No rule yet: nobody is notified of anything.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Rules">
    <table id="rules">
      <thead><tr><th scope="col">Rule</th><th scope="col">Customer</th><th scope="col">Finds</th><th scope="col">Severity</th><th scope="col">Changed by</th><th scope="col"></th></tr></thead>
      <tbody>${rules.map((one) => html`<tr key=${one.id}>
        <th scope="row">${one.rule.name}</th><td>${one.rule.customer}</td><td>${ruleText(one.rule)}</td><td>${one.rule.severity}</td><td>${one.changed_by}</td>
        <td><${Act} title="Delete" act=${() => change("DELETE", `/v1/alerts/rules/${one.id}`)} done=${done} /></td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

/** @param {{customer: string, receivers: any[], done: () => void}} props */
function NewRule({ customer, receivers, done }) {
  const { filters, more } = place.value;
  const asked = ruleMetricOf(more.rule ?? "");
  const filter = sliceOf(filters);
  const condition = useSignal(asked ? "threshold" : "anomaly");
  const metric = useSignal(asked ?? "rebuffering");
  const found = METRICS.filter((one) => condition.value === "threshold" || one.anomaly);
  const isShare = METRICS.find((one) => one.name === metric.value)?.unit === "share";
  const figure = condition.value === "anomaly" ? "times what is usual" : isShare ? "percent" : "its unit";
  return html`<details open=${asked !== null}><summary>New rule</summary>
    <p class="note" id="rule-where">${filters.length ? `Within: ${sliceText(filter)}. The filters above say it.` : "Of all views. Filters above narrow it, by single values of at most two dimensions."}</p>
    <${Form} id="new-rule" send=${(/** @type {FormData} */ form) => change("POST", "/v1/alerts/rules", ruleOf(form, filter))} done=${done}>
      <label>Name <input name="name" required maxlength="200" /></label>
      <label>Customer <input name="customer" value=${customer} required maxlength="64" size="12" /></label>
      <label>Condition <select name="condition" value=${condition.value} onChange=${(/** @type {any} */ e) => { condition.value = e.target.value; }}>
        <option value="anomaly">unlike what is usual</option><option value="threshold">beyond a limit</option></select></label>
      <label>Metric <select name="metric" value=${metric.value} onChange=${(/** @type {any} */ e) => { metric.value = e.target.value; }}>
        ${found.map((one) => html`<option value=${one.name}>${one.title}</option>`)}</select></label>
      ${condition.value === "threshold" && html`<label>Side <select name="direction"><option>above</option><option>below</option></select></label>`}
      <label>Figure (${figure}) <input name="figure" required inputmode="decimal" size="6" value=${condition.value === "anomaly" ? "1.5" : ""} /></label>
      <label>By <select name="by"><option value="">the whole</option>${Object.keys(dimensions.value).map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label>For seconds <input name="for_seconds" inputmode="numeric" size="5" value="0" /></label>
      <label>Viewers at least <input name="viewers_min" inputmode="numeric" size="6" value="50" /></label>
      <label>Severity <select name="severity"><option>info</option><option selected>warning</option><option>critical</option></select></label>
      <label>Notify <select name="receivers" multiple>${receivers.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select></label>
    <//>
  </details>`;
}

/** @param {{receivers: any[], done: () => void}} props */
function Receivers({ receivers, done }) {
  if (!receivers.length) return html`<p class="empty" id="no-receivers">No receiver yet.</p>`;
  return html`<table id="receivers">
    <thead><tr><th scope="col">Receiver</th><th scope="col">Kind</th><th scope="col"></th><th scope="col"></th></tr></thead>
    <tbody>${receivers.map((one) => html`<tr key=${one.id}>
      <th scope="row">${one.name}</th><td>${one.kind}</td>
      <td><${Act} title="Send a test" act=${() => change("POST", `/v1/alerts/receivers/${one.id}/test`)} done=${done} /></td>
      <td><${Act} title="Delete" act=${() => change("DELETE", `/v1/alerts/receivers/${one.id}`)} done=${done} /></td>
    </tr>`)}</tbody>
  </table>`;
}

/** @type {Record<string, [string, string][]>} */
const PARTS = {
  webhook: [["url", "Address"], ["secret", "Secret"]],
  slack: [["url", "Address"]],
  teams: [["url", "Address"]],
  pagerduty: [["routing_key", "Integration key"]],
  email: [["to", "Addresses, with commas"]],
};

/** @param {{done: () => void}} props */
function NewReceiver({ done }) {
  const kind = useSignal("email");
  const send = (/** @type {FormData} */ form) => {
    const target = Object.fromEntries(PARTS[kind.value].map(([name]) => [name, String(form.get(name))]));
    const to = target.to && { to: target.to.split(",").map((one) => one.trim()) };
    return change("POST", "/v1/alerts/receivers", { name: String(form.get("name")), kind: kind.value, target: to || target });
  };
  return html`<details><summary>New receiver</summary>
    <${Form} id="new-receiver" send=${send} done=${done}>
      <label>Name <input name="name" required maxlength="200" /></label>
      <label>Kind <select value=${kind.value} onChange=${(/** @type {any} */ e) => { kind.value = e.target.value; }}>
        ${Object.keys(PARTS).map((name) => html`<option>${name}</option>`)}</select></label>
      ${PARTS[kind.value].map(([name, title]) => html`<label key=${name}>${title} <input name=${name} required maxlength="2000" autocomplete="off" /></label>`)}
    <//>
  </details>`;
}

/** A form whose answer is waited for. @param {{id: string, send: (form: FormData) => Promise<any>, done: () => void, children?: any}} props */
export function Form({ id, send, done, children }) {
  const problem = useSignal("");
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    try {
      await send(new FormData(event.target));
      problem.value = "";
      event.target.reset();
      done();
    } catch (wrong) {
      const found = /** @type {any} */ (wrong);
      problem.value = `${found.title}. ${found.detail}`;
    }
  };
  return html`<form class="pick" id=${id} onSubmit=${submit}>${children}<button type="submit">Save</button>
    ${problem.value && html`<p class="notice" role="alert">${problem.value}</p>`}</form>`;
}

/** A button that does one thing. @param {{title: string, act: () => Promise<any>, done: () => void}} props */
export function Act({ title, act, done }) {
  const state = useSignal("");
  const press = async () => {
    try {
      await act();
      state.value = "done";
      done();
    } catch (wrong) {
      state.value = /** @type {any} */ (wrong).title;
    }
  };
  return html`<button type="button" onClick=${press}>${title}</button> <span class="note" role="status">${state.value}</span>`;
}
