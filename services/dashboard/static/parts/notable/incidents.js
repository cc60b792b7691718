// @ts-check
// Incidents that are open, or were within the last hour: what the alerting rules found, and where.

import { allOf, figureText, openFirst, sliceText, whenText } from "../../core/alerting/alerts.js";
import { baseOf, nowOf } from "../../core/alerting/course.js";
import { countedAt, viewsAt } from "../../core/alerting/views.js";
import { ageText } from "../../core/words/format.js";
import { HOUR_MS, momentText } from "../../core/place/ranges.js";
import { newestNow_ms, useFetched } from "../data/asking.js";
import { RuleMeaning } from "../figures/glossary.js";
import { html } from "../html.js";
import { titleOf } from "../data/known.js";
import { Link, place } from "../place.js";
import { Base, Behind } from "./behind_incident.js";

const AGAIN_MS = 5_000;
const LISTED_MAX = 5;

/** Nothing is drawn where there are none. @param {{picture: any}} props - The live figures, if they have come. */
export function RecentIncidents({ picture }) {
  const { customer } = place.value;
  const of = customer === "*" ? "" : `&customer=${encodeURIComponent(customer)}`;
  const newest = useFetched(`recent incidents ${of}`, () => `/v1/alerts/incidents?limit=${LISTED_MAX}${of}`, AGAIN_MS);
  // Behind as many that are over may be one that has been open for longer.
  const isFull = newest.data?.incidents.length === LISTED_MAX;
  const open = useFetched(isFull ? `open incidents ${of}` : null, () => `/v1/alerts/incidents?state=open&limit=${LISTED_MAX + 1}${of}`, AGAIN_MS);
  const recent = openFirst(open.data?.incidents ?? [], newest.data?.incidents ?? []).filter((one) => !one.closed_ms || newestNow_ms() - one.closed_ms < HOUR_MS);
  if (!recent.length) return null;
  return html`<ul class="recent" id="recent-incidents" aria-label="Incidents of this hour">${recent.slice(0, LISTED_MAX).map((one) => html`<${One} key=${one.id} one=${one} picture=${picture} />`)}
    ${recent.length > LISTED_MAX && html`<li class="note"><${Link} to=${{ screen: "alerts", more: {} }}>All incidents<//></li>`}</ul>`;
}

/** @param {{one: any, picture: any}} props */
function One({ one, picture }) {
  const { event } = one;
  const worst = event.slices[0];
  const now = one.closed_ms ? null : nowOf(picture, one);
  const then = worst && viewsAt(one, worst.slice, countedAt(worst));
  const open = now && viewsAt(one, worst.slice, { from_ms: picture.shown_until_ms - picture.bucket_ms, to_ms: picture.shown_until_ms });
  const state = one.closed_ms ? `ended ${ageText(newestNow_ms() - one.closed_ms)} ago` : `open for ${ageText(newestNow_ms() - one.opened_ms)}`;
  return html`<li class=${one.closed_ms ? "notice is-over" : "notice"}>
    <${Link} aria-label=${`${event.rule_name}, since ${momentText(one.opened_ms, place.value.tz, { seconds: true })}`} to=${{ screen: "incident", customer: one.customer, more: { id: one.id } }}><b>${event.rule_name}</b><//>
    ${worst && html` <${Behind} of=${then}>${figureText(event.metric, worst.value)}<//> ${whenText(worst, event, place.value.tz)} <span class="note"><${Base} metric=${event.metric} n=${baseOf(event.metric, worst)} of=${then} /></span>${now && html`, now <b><${Behind} of=${open}>${figureText(event.metric, now.value)}<//></b> <span class="note"><${Base} metric=${event.metric} n=${now.n} of=${open} /></span>`} <${RuleMeaning} metric=${event.metric} />, ${sliceText(worst.slice, allOf(event.metric), titleOf)}${event.slices.length > 1 ? ` and ${event.slices.length - 1 + event.further_slices} more` : ""}`}
    <span class="note"> ${one.customer} · ${state}</span>
  </li>`;
}
