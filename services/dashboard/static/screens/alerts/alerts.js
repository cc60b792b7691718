// @ts-check
// Alerts: incidents that are open and those before, rules, and receivers, with what makes and tests them.

import { useSignal } from "@preact/signals";
import { allOf, figureText, hitsText, openFirst, sliceText, UP_TO_OPENING, whenText } from "../../core/alerting/alerts.js";
import { baseOf, usualBaseText } from "../../core/alerting/course.js";
import { countedAt, viewsAt } from "../../core/alerting/views.js";
import { ageText, durationText } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { Answered, newestNow_ms, useFetched } from "../../parts/data/asking.js";
import { Pages } from "../../parts/data/pages.js";
import { RuleMeaning } from "../../parts/figures/glossary.js";
import { Controls } from "../../parts/narrowing/controls.js";
import { html } from "../../parts/html.js";
import { titleOf } from "../../parts/data/known.js";
import { Base, Behind } from "../../parts/notable/behind_incident.js";
import { mayChange } from "../../parts/data/session.js";
import { Link, place } from "../../parts/place.js";
import { ReceiverForm, Receivers } from "./receivers.js";
import { NewRule, Rules } from "./rules.js";

const AGAIN_MS = 5_000;
const LISTED_MAX = 50;
const RULES_LISTED = 100;
/** An organisation has at most 100 receivers: the first page has all, so that a rule can name each. */
const RECEIVERS_PATH = "/v1/alerts/receivers?limit=100";

export default function Alerts() {
  const { customer, filters, more } = place.value;
  const of = customer === "*" ? "" : `&customer=${encodeURIComponent(customer)}`;
  const version = useSignal(0);
  const done = () => {
    version.value += 1;
  };
  const after = more.cursor ? `&cursor=${encodeURIComponent(more.cursor)}` : "";
  const incidents = useFetched(`incidents ${of}${after}`, () => `/v1/alerts/incidents?limit=${LISTED_MAX}${of}${after}`, AGAIN_MS);
  const older = incidents.data?.next;
  const open = useFetched(older && !after ? `all open incidents ${of}` : null, () => `/v1/alerts/incidents?state=open&limit=${LISTED_MAX}${of}`, AGAIN_MS);
  const rulesPath = `/v1/alerts/rules?limit=${RULES_LISTED}${of}`;
  const rules = useFetched(`rules ${of}`, () => rulesPath, 0, version.value);
  const receivers = useFetched("receivers", () => RECEIVERS_PATH, 0, version.value);
  /** Null: not known yet. A rule that is saved then would notify nobody. @type {any[] | null} */
  const listed = receivers.data?.receivers ?? null;
  return html`
    <${Controls} hasRange=${false} />
    <section aria-labelledby="incidents-title">
      <div class="section-head"><h2 id="incidents-title">Incidents</h2></div>
      ${filters.length > 0 && html`<p class="notice" id="not-narrowed" role="status">Incidents and rules are of ${customer === "*" ? "all customers" : html`customer <b>${customer}</b>`}, with filters or without: filters fill in a new rule${mayChange() ? "" : ", which an editor can make"}. <${Link} to=${{ filters: [] }}>Take the filters away<//></p>`}
      <${Answered} of=${incidents} height=${160} draw=${(/** @type {any} */ data) => html`<${Incidents} incidents=${after ? data.incidents : openFirst(open.data?.incidents ?? [], data.incidents)} />
        ${after && html`<p><${Link} to=${{ more: { cursor: "" } }}>Newest<//></p>`}
        ${data.next && html`<p><${Link} to=${{ more: { cursor: data.next } }}>Older<//></p>`}`} />
    </section>
    <section aria-labelledby="rules-title">
      <div class="section-head"><h2 id="rules-title">Rules</h2></div>
      <${Answered} of=${rules} height=${120} draw=${(/** @type {any} */ data) => html`
        <${Pages} key=${rulesPath} version=${version.value} newest=${data} what="rules" id="more-rules" addressOf=${(/** @type {string} */ cursor) => `${rulesPath}&${new URLSearchParams({ cursor })}`}
          draw=${(/** @type {any[]} */ pages) => html`<${Rules} rules=${pages.flatMap((page) => page.rules)} receivers=${listed} done=${done} />`} />`} />
      ${mayChange() && listed && html`<${NewRule} receivers=${listed} done=${done} />`}
    </section>
    <section aria-labelledby="receivers-title">
      <div class="section-head"><h2 id="receivers-title">Receivers</h2></div>
      <${Answered} of=${receivers} height=${80} draw=${() => html`<${Receivers} receivers=${listed ?? []} done=${done} />`} />
      ${mayChange() && html`<details><summary>New receiver</summary><${ReceiverForm} id="new-receiver" done=${done} /></details>`}
    </section>`;
}

/** @param {{incidents: any[]}} props */
function Incidents({ incidents }) {
  if (!incidents.length) return html`<p class="empty" id="no-incidents">No incident so far.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Incidents">
    <table id="incidents">
      <thead><tr><th scope="col">Incident</th><th scope="col">State</th><th scope="col">Customer</th><th scope="col">Figure</th><th scope="col">Usual or limit</th><th scope="col">Where</th><th scope="col">Hit at most</th><th scope="col">Since</th></tr></thead>
      <tbody>${incidents.map((one) => html`<${Row} key=${one.id} one=${one} />`)}</tbody>
    </table>
  </div>`;
}

/** @param {{one: any}} props */
function Row({ one }) {
  const { event } = one;
  const worst = event.slices[0];
  const then = worst && viewsAt(one, worst.slice, countedAt(worst));
  const since = momentText(one.opened_ms, place.value.tz, { seconds: true });
  const state = one.closed_ms ? `over, lasted ${durationText(one.closed_ms - one.opened_ms)}` : one.acknowledged_by ? `open, ${one.acknowledged_by} is on it` : "open";
  return html`<tr>
    <th scope="row"><${Link} aria-label=${`${event.rule_name}, since ${since}`} to=${{ screen: "incident", more: { id: one.id } }}>${event.rule_name}<//></th>
    <td class=${one.closed_ms ? "" : "is-warm"}>${state}</td>
    <td>${one.customer}</td>
    <td>${worst && html`<${Behind} of=${then}>${figureText(event.metric, worst.value)}<//> <span class="note"><${Base} metric=${event.metric} n=${baseOf(event.metric, worst)} of=${then} /> ${whenText(worst, event, place.value.tz)}</span> <${RuleMeaning} metric=${event.metric} />`}</td>
    <td>${worst && html`${figureText(event.metric, worst.usual)} <span class="note">${worst.probability === null ? "limit" : `usual ${usualBaseText(event.metric, worst)}`}</span>`}</td>
    <td>${worst && sliceText(worst.slice, allOf(event.metric), titleOf)}${event.slices.length > 1 ? ` and ${event.slices.length - 1 + event.further_slices} more` : ""}</td>
    <td>${event.affected_max ? html`${hitsText(event.metric, event.affected_max)}${!one.closed_ms && html` <span class="note">${UP_TO_OPENING}</span>`}` : ""}</td>
    <td>${since} (${ageText(newestNow_ms() - one.opened_ms)} ago)</td>
  </tr>`;
}
