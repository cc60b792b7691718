// @ts-check
// Integration: "Are my beacons arriving?" Lines to paste, the newest beacons as they come, what was rejected and why, and what is missing.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { adviceOf, missingOf, READ, verdictOf } from "../core/arrivals.js";
import { collectorOf, linesFor } from "../core/pasting.js";
import { CLIENTS } from "../core/words/client_lines.js";
import { ageText, countText, shareText } from "../core/words/format.js";
import { momentText } from "../core/place/ranges.js";
import { Answered, serverNow_ms, useFetched, useQuestion } from "../parts/data/asking.js";
import { Copy } from "../parts/copying.js";
import { Controls } from "../parts/narrowing/controls.js";
import { Which } from "../parts/narrowing/which.js";
import { Field } from "../parts/field.js";
import { Act } from "../parts/forms.js";
import { html } from "../parts/html.js";
import { change, may } from "../parts/data/session.js";
import { go, Link, place } from "../parts/place.js";

const AGAIN_MS = 3_000;
const VIEWS = 100;

export default function Integration() {
  const { customer } = place.value;
  if (customer === "*") return html`<${Controls} hasRange=${false} hasFilters=${false} /><section aria-labelledby="integration-title"><h2 id="integration-title">Integration</h2><${Choose} /></section>`;
  return html`
    <${Controls} hasRange=${false} hasFilters=${false} />
    <${Arriving} customer=${customer} />
    <${Paste} customer=${customer} />
    <${Missing} />`;
}

/** A customer that has neither an environment nor views is typed. */
function Choose() {
  const choose = (/** @type {any} */ event) => {
    event.preventDefault();
    const name = String(new FormData(event.target).get("name") ?? "").trim();
    if (name) go({ customer: name });
  };
  return html`<p>Whose player is it? A customer is an environment of your organisation: its write keys are in <${Link} to=${{ screen: "settings", more: { part: "environments" } }}>Settings<//>.</p>
    <${Which} id="environments" />
    <form class="pick" id="choose-customer" onSubmit=${choose}><label>Customer <input name="name" required maxlength="64" autocomplete="off" /></label><button type="submit">Show its beacons</button></form>`;
}

/** @param {{customer: string}} props */
function Arriving({ customer }) {
  const { under } = place.value.more;
  const address = `/v1/arrivals?${new URLSearchParams({ customer, ...(under && { key: under }) })}`;
  const found = useFetched(address, () => address, AGAIN_MS);
  return html`<section aria-labelledby="arriving-title">
    <div class="section-head"><h2 id="arriving-title">Are my beacons arriving?</h2></div>
    <${Answered} of=${found} height=${120} draw=${(/** @type {any} */ data) => html`<${Arrivals} data=${data} now_ms=${serverNow_ms({ server_ms: data.now_ms, came_ms: found.came_ms })} />`} />
  </section>`;
}

/** @param {{data: any, now_ms: number}} props - `now_ms`: by the server's clock, as the times of beacons are. */
function Arrivals({ data, now_ms }) {
  const verdict = verdictOf(data, now_ms);
  return html`
    <p class="status" id="verdict" data-level=${verdict.level} role="status"><span class="dot" aria-hidden="true"></span>${verdict.text}</p>
    <p class="note">${countText(data.beacons_n)} beacons of ${countText(data.views_n)} views and ${countText(data.rejected_n)} rejected inputs in the last ${data.seconds / 60} minutes${data.is_cut ? "; more came than are looked at" : ""}.</p>
    ${data.keys.length > 0 && html`<${Keys} keys=${data.keys} now_ms=${now_ms} />`}
    ${data.beacons.length > 0 && html`<${Beacons} beacons=${data.beacons} />`}
    ${data.rejected.length > 0 && html`<h3>Rejected</h3><${Rejected} id="rejected" rejected=${data.rejected} />`}
    ${data.nobodys?.length > 0 && html`<h3>Input that names no customer</h3><p class="note">Seen by those alone who run the installation: a wrong write key ends here.</p><${Rejected} id="nobodys" rejected=${data.nobodys} />`}`;
}

/** The write keys that beacons came under: one of them can be looked at alone. @param {{keys: any[], now_ms: number}} props */
function Keys({ keys, now_ms }) {
  const { under } = place.value.more;
  return html`<ul class="recent" id="arrived-keys" aria-label="Write keys">${keys.map((one) => html`<li key=${one.key}>
      <${Link} to=${{ more: { under: one.key === under ? "" : one.key } }} aria-current=${one.key === under ? "true" : undefined}><code>${one.key}</code><//> <span class="note">${countText(one.beacons_n)} ${one.beacons_n === 1 ? "beacon" : "beacons"}, the newest ${ageText(Math.max(0, now_ms - one.newest_ms))} ago</span>
    </li>`)}${under && html`<li><${Link} to=${{ more: { under: "" } }}>All write keys<//></li>`}</ul>`;
}

/** @param {{beacons: any[]}} props */
function Beacons({ beacons }) {
  const { customer, tz } = place.value;
  return html`<div class="scroll short" tabindex="0" role="region" aria-label="The newest beacons">
    <table id="beacons">
      <thead><tr><th scope="col">Came at</th><th scope="col" class="text">Event</th><th scope="col" class="text">Client's own name</th><th scope="col" class="text">View</th><th scope="col" class="text">Write key</th><th scope="col">Number</th><th scope="col" class="text">Client</th><th scope="col" class="text">Browser</th><th scope="col" class="text">Country</th><th scope="col">Fields</th></tr></thead>
      <tbody>${beacons.map((one) => html`<tr key=${`${one.view_id}/${one.appended_ms}/${one.seq}/${one.source_event}`}>
        <th scope="row">${momentText(one.appended_ms, tz, { seconds: true })}</th><td class="text">${one.event}</td><td class="text">${one.source_event}</td>
        <td class="text"><${Link} to=${{ screen: "view", customer, more: { view: one.view_id } }}>${one.view_id.slice(0, 12)}<//></td><td class="text"><code>${one.write_key.slice(0, 12)}</code></td><td>${one.seq ?? "–"}</td><td class="text">${one.source}</td><td class="text">${one.browser ?? "–"}</td><td class="text">${one.country ?? "–"}</td>
        <td><details class="where"><summary>${one.fields.length}</summary><span class="note">${one.fields.join(", ")}</span></details></td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

/** @param {{id: string, rejected: any[]}} props */
function Rejected({ id, rejected }) {
  const { tz } = place.value;
  return html`<div class="scroll short" tabindex="0" role="region" aria-label="What was rejected">
    <table id=${id}>
      <thead><tr><th scope="col">Came at</th><th scope="col" class="text">Why</th><th scope="col" class="text">Where</th><th scope="col" class="text">What to do</th><th scope="col" class="text">Its beginning</th></tr></thead>
      <tbody>${rejected.map((one) => html`<tr>
        <th scope="row">${momentText(one.appended_ms, tz, { seconds: true })}</th>
        <td class="text"><b>${one.reason}</b><span class="texts">${one.detail}</span></td><td class="text">${one.origin}</td><td class="text advice">${adviceOf(one.reason)}</td><td class="text"><code>${one.text.slice(0, 120)}</code></td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

/** Lines for one's player, with the write key. @param {{customer: string}} props */
function Paste({ customer }) {
  const { more } = place.value;
  const address = `/v1/keys?${new URLSearchParams({ customer, limit: "500" })}`;
  const version = useSignal(0);
  const found = useFetched(address, () => address, 0, version.value);
  const keys = (found.data?.keys ?? []).filter((/** @type {any} */ one) => one.revoked_ms === null && (one.expires_ms ?? Infinity) > Date.now());
  const key = keys.find((/** @type {any} */ one) => one.key === more.key)?.key ?? keys[0]?.key ?? customer;
  const typed = more.collector || `${location.hostname}:8080`;
  const collector = collectorOf(typed, location);
  const player = CLIENTS.find((one) => one.name === more.player) ?? CLIENTS[0];
  const text = collector ? linesFor(player, collector, key) : "";
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => go({ more: { [name]: event.target.value.trim() } }, { replace: true });
  const made = useSignal("");
  const copying = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const make = async () => {
    made.value = (await change("POST", "/v1/keys", { customer, name: "Made on Integration" })).key;
    // The button that was pressed goes: the next step has the focus then.
    copying.current?.focus();
  };
  return html`<section aria-labelledby="paste-title">
    <div class="section-head"><h2 id="paste-title">Lines for your player</h2></div>
    <div class="controls">
      <label class="pick">Player <select id="player" value=${player.name} onChange=${set("player")}>${CLIENTS.map(({ name, title }) => html`<option value=${name}>${title}</option>`)}</select></label>
      <label class="pick">Collector <${Field} id="collector" value=${typed} maxlength="253" size="24" onChange=${set("collector")} autocomplete="off" spellcheck=${false} /></label>
      ${keys.length > 1 && html`<label class="pick">Write key <select id="key" value=${key} onChange=${set("key")}>${keys.map((/** @type {any} */ one) => html`<option value=${one.key}>${one.name || one.key}</option>`)}</select></label>`}
      <${Copy} text=${text} of="snippet" button=${copying} />
    </div>
    ${text ? html`<pre class="code" id="snippet" tabindex="0"><code>${text}</code></pre>` : html`<p class="notice" id="no-collector" role="status">${typed} is no address of a collector: write a name or an IP address, and a port if it has one.</p>`}
    ${player.note && html`<p class="note" id="snippet-note">${player.note}</p>`}
    ${found.data && !keys.length && may("manage") && html`<p><${Act} title="Make a key" act=${make} done=${() => { version.value += 1; }} /></p>`}
    ${found.problem && html`<p class="notice" id="no-keys" role="status">${found.problem.title}. ${found.problem.detail} The lines have the id <code>${customer}</code>.</p>`}
    ${made.value && html`<p class="note" role="status">The key <code>${made.value}</code> is made and stands in the lines. Collectors take it within 5 s.</p>`}
    <p class="note">${found.data && !keys.length ? "No write key was made: the customer's own id is one where it is not switched off. " : ""}Put the host of your videos in place of <code>media.example.com</code>, and your own element in place of <code>#my-player</code>. <${Link} to=${{ screen: "settings", more: { part: "environments", of: customer } }}>Write keys<//></p>
    ${collector && html`<${OtherPrograms} at=${`${collector.scheme}://${collector.host}`} writeKey=${key} />`}
  </section>`;
}

/** Addresses for what is none of the clients above. @param {{at: string, writeKey: string}} props */
function OtherPrograms({ at, writeKey }) {
  return html`<p class="note" id="other-programs">Any other player with CMCD version 2 sends its events to <code>${at}/cmcd/${writeKey}</code>. Any other program posts beacons as JSON to <code>${at}/v1/beacons?key=${writeKey}</code>, whose <a href=${`${at}/v1/beacons/schema.json`}>schema</a> the collector has.</p>`;
}

/** What finished views of the last hour do not say. */
function Missing() {
  const within = { ...place.value, range: "1h", from: "", to: "", filters: [] };
  const found = useQuestion("/v1/views", within, { columns: READ.join(","), limit: VIEWS }, 10_000);
  return html`<section aria-labelledby="missing-title">
    <div class="section-head"><h2 id="missing-title">What is missing for which figure</h2></div>
    <${Answered} of=${found} height=${200} draw=${(/** @type {any} */ data) => html`<${Fields} rows=${data.views} />`} />
  </section>`;
}

/** @param {{rows: any[]}} props */
function Fields({ rows }) {
  if (!rows.length) return html`<p class="empty" id="none-finished">No view finished in the last hour. A view finishes a minute after its end, or five minutes after its last beacon.</p>`;
  return html`<p class="note">Of the newest ${countText(rows.length)} views of the last hour. What none of their clients can report is not listed.</p>
    <div class="scroll plain" tabindex="0" role="region" aria-label="What is missing"><table id="missing">
      <thead><tr><th scope="col">Field</th><th scope="col">Views that have it</th><th scope="col" class="text">Without it</th></tr></thead>
      <tbody>${missingOf(rows).map((one) => html`<tr key=${one.name}><th scope="row">${one.title}</th><td class=${one.has ? "" : "is-bad"}>${shareText(one.has / one.of)} <span class="note">n ${countText(one.of)}</span></td><td class="text">${one.has === one.of ? "" : one.loses}</td></tr>`)}</tbody>
    </table></div>`;
}
