// @ts-check
// Lines for a player, with the collector's address and a write key.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { collectorOf, linesFor } from "../../core/pasting.js";
import { CLIENTS } from "../../core/words/client_lines.js";
import { Copy } from "../copying.js";
import { useFetched } from "../data/asking.js";
import { change, may } from "../data/session.js";
import { Field } from "../field.js";
import { Act } from "../forms.js";
import { html } from "../html.js";
import { go, Link, place } from "../place.js";

/** Lines for one's player, with the write key. @param {{customer: string}} props */
export function Paste({ customer }) {
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

/** Addresses for any other client. @param {{at: string, writeKey: string}} props */
function OtherPrograms({ at, writeKey }) {
  return html`<p class="note" id="other-programs">Any other player with CMCD version 2 sends its events to <code>${at}/cmcd/${writeKey}</code>. Any other program posts beacons as JSON to <code>${at}/v1/beacons?key=${writeKey}</code>, whose <a href=${`${at}/v1/beacons/schema.json`}>schema</a> the collector has.</p>`;
}
