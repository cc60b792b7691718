// @ts-check
// One view, open or finished: its life as a timeline, what it measured, every dimension, every event.

import { useSignal } from "@preact/signals";
import { bitrateText, countText, durationText, NONE } from "../../core/words/format.js";
import { labelText } from "../../core/words/labels.js";
import { meantByTitle } from "../../core/words/view_meanings.js";
import { addressOf } from "../../core/place/place.js";
import { momentText, rangeWith } from "../../core/place/ranges.js";
import { endText, errorsOf, errorsSaid, factsOf, playheadText, spanOf, unkeptFrom, withRead } from "../../core/view/timeline.js";
import { Answered, fetchJson, presentNow_ms, useFetched } from "../../parts/data/asking.js";
import { Field } from "../../parts/inputs/field.js";
import { Meaning } from "../../parts/figures/glossary.js";
import { useReading } from "../../parts/data/reading.js";
import { html } from "../../parts/html.js";
import { titleOf } from "../../parts/data/known.js";
import { Pages } from "../../parts/data/pages.js";
import { Lanes } from "../../parts/drawing/lanes.js";
import { joined, RequestList } from "../../parts/drawing/requests.js";
import { Later } from "../../parts/drawing/whole_timeline.js";
import { go, Link, place } from "../../parts/place.js";

/** Rows of events that are drawn at a time. */
const ROWS = 500;
/** An open view goes on: it is asked for again. */
const AGAIN_MS = 5_000;
/** Of the beacons that are read for the codes of errors: as many as a page may have, and pages. */
const BEACONS = { limit: 500, pages: 8 };

export default function View() {
  const { customer, more } = place.value;
  const view = more.view ?? "";
  const isNamed = customer !== "*" && view !== "";
  const asked = new URLSearchParams({ customer, ...(more.day ? { day: more.day } : {}) });
  const address = `/v1/views/${encodeURIComponent(view)}`;
  const found = useFetched(isNamed ? `${address}?${asked}` : null, () => `${address}?${asked}`, AGAIN_MS);
  return html`<section aria-labelledby="view-head">
    <div class="section-head"><h2 id="view-head">One view</h2><${Form} customer=${customer === "*" ? "" : customer} view=${view} /></div>
    ${isNamed && html`<${Answered} of=${found} height=${420} draw=${(/** @type {any} */ data) => html`<${Drawn} key=${`${address}?${asked}`} answer=${data} beacons=${`${address}/beacons?${asked}`} requests=${`${address}/requests?${asked}`} timeline=${`${address}/timeline?${asked}`} />`} />`}
    ${!isNamed && html`<p class="empty">Name a customer and a view, or find one on <${Link} to=${{ screen: "views" }}>Views<//>.</p>`}
  </section>`;
}

/** @param {{customer: string, view: string}} props */
function Form({ customer, view }) {
  const show = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    go({ customer: String(given.get("customer")).trim(), more: { view: String(given.get("view")).trim(), day: "" } });
  };
  return html`<form class="pick" id="view-form" onSubmit=${show}>
    <label>Customer <${Field} id="view-customer" name="customer" value=${customer} required maxlength="64" size="12" autocomplete="off" /></label>
    <label>View id <${Field} id="view-id" name="view" value=${view} required maxlength="68" size="36" autocomplete="off" /></label>
    <button type="submit">Show</button>
  </form>`;
}

/** @param {{answer: any, beacons: string, requests: string, timeline: string}} props */
function Drawn({ answer, beacons, requests, timeline }) {
  const { tz } = place.value;
  const isOpen = answer.state === "open";
  const later = /** @type {import("../../parts/drawing/whole_timeline.js").Reading} */ (useReading(timeline));
  const kept = { ...answer.row, events: answer.events };
  const row = withRead(kept, later.read);
  const span_ms = spanOf(row);
  const said = useSignal(/** @type {import("../../core/view/timeline.js").Said[] | undefined} */ (undefined));
  const errors = errorsOf(row, said.value);
  const reading = useReading(requests, joined);
  return html`<article class="card view" id="view-card">
    <h3 id="view-title">${row.video_title?.trim() || row.video_id?.trim() || "A view"} · ${row.source} · ${endText(row, isOpen)}</h3>
    ${answer.away?.length > 0 && html`<p class="notice" role="status">No answer from ${answer.away.join(", ")}: something may be missing here.</p>`}
    <dl id="view-facts">${factsOf(row, isOpen).map(([name, value]) => html`<div><dt>${name} <${FactMeaning} title=${name} /></dt><dd>${value}</dd></div>`)}</dl>
    <${Lanes} row=${row} span_ms=${span_ms} tz=${tz} errors=${errors} requests=${reading} />
    <${RequestList} row=${row} of=${reading} tz=${tz} />
    <${Later} row=${kept} of=${later} />
    ${errors.some((one) => !one.text) && html`<${ErrorTexts} key=${errors.length} address=${beacons} take=${(/** @type {any[]} */ read) => { said.value = errorsSaid(read); }} />`}
    ${answer.recording && html`<p><a id="recording" href=${`${answer.recording.href}&${new URLSearchParams({ view: addressOf(place.value) })}`}>Play the recording of this session</a> <span class="note">${answer.recording.payloads} parts</span></p>`}
    <${Events} row=${row} tz=${tz} errors=${errors} />
    <${Beacons} address=${beacons} tz=${tz} />
    <${Dimensions} of=${answer.dimensions} at_ms=${row.view_end_ms ?? row.view_start_ms} isOpen=${isOpen} />
  </article>`;
}

/** What a fact means, as the column of that name. @param {{title: string}} props */
function FactMeaning({ title }) {
  const meant = meantByTitle(title);
  return meant && html`<${Meaning} title=${title} term=${meant.term} formula=${meant.formula} />`;
}

/** Codes and texts of the errors of which the row has none are read from the beacons, by a click: each look at beacons is noted. @param {{address: string, take: (beacons: any[]) => void}} props */
function ErrorTexts({ address, take }) {
  const state = useSignal("");
  const read = async () => {
    state.value = "reading";
    try {
      const found = [];
      let cursor = "";
      for (let page = 0; page < BEACONS.pages; page += 1) {
        const answer = await fetchJson(`${address}&${new URLSearchParams({ limit: String(BEACONS.limit), ...(cursor ? { cursor } : {}) })}`);
        found.push(...answer.beacons);
        cursor = answer.next ?? "";
        if (!cursor) break;
      }
      take(found);
      // Where they are found, this is drawn no longer.
      state.value = "Their beacons do not say which is which: see them below.";
    } catch (problem) {
      state.value = /** @type {any} */ (problem).title;
    }
  };
  if (state.value && state.value !== "reading") return html`<p class="notice" role="status">${state.value}</p>`;
  return html`<p><button type="button" id="read-errors" disabled=${state.value === "reading"} onClick=${read}>${state.value ? "Reading …" : "Read the codes of all errors"}</button> <span class="note">The view itself keeps that of its last error.</span></p>`;
}

/** @param {{row: any, tz: string, errors: import("../../core/view/timeline.js").Mark[]}} props */
function Events({ row, tz, errors }) {
  const events = row.events ?? [];
  const texts = new Map(errors.map((one) => [one.at, one.text]));
  const shown = useSignal(ROWS);
  const title = unkeptFrom(row) === null ? `Every event (${countText(events.length)})` : `The first ${countText(events.length)} events`;
  return html`<details id="events" open=${events.length <= 12}><summary>${title}</summary>
    <div class="scroll plain" tabindex="0" role="region" aria-label=${title}>
      <table>
        <thead><tr><th scope="col">At</th><th scope="col">Clock</th><th scope="col" class="text">Event</th><th scope="col">Playhead</th><th scope="col">Bitrate</th></tr></thead>
        <tbody id="view-events">${events.slice(0, shown.value).map((/** @type {any} */ one, /** @type {number} */ at) => html`<tr>
          <th scope="row">${durationText(one.at_ms)}</th>
          <td>${momentText(row.view_start_ms + one.at_ms, tz, { seconds: true })}</td>
          <td class="text">${one.event}${texts.has(at) && html`<span class="texts">${texts.get(at) || "Its code is in its beacon."}</span>`}</td>
          <td>${one.playhead_ms === undefined ? NONE : playheadText(one.playhead_ms)}</td>
          <td>${one.bitrate_bps === undefined ? NONE : bitrateText(one.bitrate_bps)}</td>
        </tr>`)}</tbody>
      </table>
    </div>
    ${events.length > shown.value && html`<button type="button" id="more-events" onClick=${() => { shown.value += ROWS; }}>More events</button>`}
  </details>`;
}

/** What happened, and what the client calls it where that is something else. @param {any} beacon */
const namesOf = ({ event, source_event }) => (source_event && source_event !== event ? `${event} (${source_event})` : event);

/** The beacons behind the view, as they came: asked for when they are looked at. @param {{address: string, tz: string}} props */
function Beacons({ address, tz }) {
  const isOpen = useSignal(false);
  const found = useFetched(isOpen.value ? address : null, () => address);
  return html`<details id="view-beacons" onToggle=${(/** @type {any} */ e) => { isOpen.value = e.target.open; }}><summary>Beacons behind it</summary>
    ${isOpen.value && html`<${Answered} of=${found} draw=${(/** @type {any} */ data) => html`
      ${!data.beacons.length && html`<p class="note">The warehouse has none yet: beacons reach it about a minute after they came.</p>`}
      <${Pages} key=${address} newest=${data} what="beacons" addressOf=${(/** @type {string} */ cursor) => `${address}&${new URLSearchParams({ cursor })}`} draw=${(/** @type {any[]} */ pages) => html`
        <div class="beacons" tabindex="0" role="region" aria-label="Beacons behind it"><ol>${pages.flatMap((page) => page.beacons).map((/** @type {any} */ one) => html`<li key=${`${one.partition}/${one.offset}`}><span class="note">${momentText(one.appended_ms, tz, { seconds: true })}</span> ${one.beacon && html`<b>${namesOf(one.beacon)}</b> `}<code>${JSON.stringify(one.beacon ?? one.bytes)}</code></li>`)}</ol></div>`} />`} />`}
  </details>`;
}

/** Each value leads to the figures of all views that share it, the viewer to their list: of a range that has this view. @param {{of: Record<string, string | null>, at_ms: number, isOpen: boolean}} props */
function Dimensions({ of, at_ms, isOpen }) {
  const range = rangeWith(place.value, at_ms, presentNow_ms());
  const found = Object.entries(of).filter(([, value]) => value !== null && value !== "");
  return html`<h4>Dimensions</h4>
    ${isOpen && html`<p class="note" id="undecided">The view is open: what its end decides, such as why it ended, is not known yet.</p>`}
    <dl class="dimensions" id="view-dimensions">${found.map(([name, value]) => html`<div><dt>${titleOf(name)}</dt>
      <dd><${Link} to=${name === "viewer" ? { ...range, screen: "views", filters: [], more: { viewer: value ?? "" } } : { ...range, screen: "explore", filters: [JSON.stringify({ dimension: name, in: [value] })], more: {} }}>${labelText(value ?? "")}<//></dd></div>`)}</dl>`;
}
