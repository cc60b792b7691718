// @ts-check
// One view: its life as a timeline, what it measured, every dimension, every event.

import { bitrateText, durationText, NONE } from "../core/format.js";
import { momentText } from "../core/ranges.js";
import { dimensionsOf, factsOf, spanOf } from "../core/timeline.js";
import { Answered, useFetched } from "../parts/asking.js";
import { html } from "../parts/html.js";
import { dimensions, titleOf } from "../parts/known.js";
import { Lanes } from "../parts/lanes.js";
import { go, Link, place } from "../parts/place.js";

/** An open view goes on: it is asked for again. */
const AGAIN_MS = 5_000;

export default function View() {
  const { customer, more } = place.value;
  const view = more.view ?? "";
  const isNamed = customer !== "*" && view !== "";
  const address = `/api/view?${new URLSearchParams({ customer, view })}`;
  const found = useFetched(isNamed ? address : null, () => address, AGAIN_MS);
  return html`<section aria-labelledby="view-head">
    <div class="section-head"><h2 id="view-head">One view</h2><${Form} customer=${customer === "*" ? "" : customer} view=${view} /></div>
    ${isNamed && html`<${Answered} of=${found} height=${420} draw=${(/** @type {any} */ data) => html`<${Drawn} row=${data.found?.row} answer=${data} />`} />`}
    ${!isNamed && html`<p class="empty">Name a customer and a view, or find one on <${Link} to=${{ screen: "views" }}>Views<//>.</p>`}
  </section>`;
}

/** @param {{customer: string, view: string}} props */
function Form({ customer, view }) {
  const show = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    go({ customer: String(given.get("customer")).trim(), more: { view: String(given.get("view")).trim() } });
  };
  return html`<form class="pick" id="view-form" onSubmit=${show}>
    <label>Customer <input id="view-customer" name="customer" value=${customer} required maxlength="64" size="12" autocomplete="off" /></label>
    <label>View id <input id="view-id" name="view" value=${view} required maxlength="68" size="36" autocomplete="off" /></label>
    <button type="submit">Show</button>
  </form>`;
}

/** @param {{row: any, answer: any}} props */
function Drawn({ row, answer }) {
  if (!row) return html`<p class="notice" id="view-notice" role="status">This view is closed: its row is in the warehouse.</p>`;
  const { tz } = place.value;
  const span_ms = spanOf(row);
  const state = answer.found?.state === "open" ? "still open" : ENDS[row.end_reason] ?? row.end_reason;
  return html`<article class="card view" id="view-card">
    <h3 id="view-title">${row.video_title ?? row.video_id ?? "A view"} · ${row.source} · ${state}${answer.stale ? " · from a copy" : ""}</h3>
    <dl id="view-facts">${factsOf(row).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <${Lanes} row=${row} span_ms=${span_ms} tz=${tz} />
    <${Events} row=${row} tz=${tz} />
    <${Dimensions} row=${row} />
    ${row.session_id && html`<p><a href=${`/replay?${new URLSearchParams({ customer: row.customer_id, session: row.session_id })}`}>Recording of this session</a> <span class="note">where one was made</span></p>`}
  </article>`;
}

/** @type {Record<string, string>} */
const ENDS = {
  clean: "ended by the viewer",
  timeout: "ended in silence",
  error: "ended with an error",
  long_rebuffer: "given up while it rebuffered",
  superseded: "ended by the next view",
};

/** @param {{row: any, tz: string}} props */
function Events({ row, tz }) {
  const events = row.events ?? [];
  return html`<details open=${events.length <= 12}><summary>Every event (${events.length})</summary>
    <div class="scroll plain" tabindex="0" role="region" aria-label="Every event">
      <table>
        <thead><tr><th scope="col">At</th><th scope="col">Clock</th><th scope="col">Event</th><th scope="col">Playhead</th><th scope="col">Bitrate</th></tr></thead>
        <tbody id="view-events">${events.map((/** @type {any} */ one) => html`<tr>
          <th scope="row">${durationText(one.at_ms)}</th>
          <td>${momentText(row.view_start_ms + one.at_ms, tz, { seconds: true })}</td>
          <td>${one.event}</td>
          <td>${one.playhead_ms === undefined ? NONE : durationText(one.playhead_ms)}</td>
          <td>${one.bitrate_bps === undefined ? NONE : bitrateText(one.bitrate_bps)}</td>
        </tr>`)}</tbody>
      </table>
    </div>
  </details>`;
}

/** Each value leads to all views that share it. @param {{row: any}} props */
function Dimensions({ row }) {
  const found = dimensionsOf(row, Object.keys(dimensions.value));
  return html`<h4>Dimensions</h4>
    <dl class="dimensions" id="view-dimensions">${found.map(([name, value]) => html`<div><dt>${titleOf(name)}</dt>
      <dd><${Link} to=${{ screen: "explore", filters: [JSON.stringify({ dimension: name, in: [value] })], more: {} }}>${value}<//></dd></div>`)}</dl>`;
}
