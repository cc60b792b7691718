// @ts-check
// Lines for a player, with the collector's address and a write key.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { collectorOf, keysFor, linesFor } from "../../core/arriving/pasting.js";
import { CLIENTS } from "../../core/words/client_lines.js";
import { Copy } from "../inputs/copying.js";
import { useFetched } from "../data/asking.js";
import { customers, hasCustomers } from "../data/known.js";
import { change, may } from "../data/session.js";
import { Field } from "../inputs/field.js";
import { Act } from "../inputs/forms.js";
import { html } from "../html.js";
import { go, Link, place } from "../place.js";
import { LISTED_MAX, useListed } from "./choose.js";

/** Lines for one's player, with the write key: none where no key is known that collectors take. @param {{customer: string}} props */
export function Paste({ customer }) {
  const { more } = place.value;
  const address = `/v1/keys?${new URLSearchParams({ customer, limit: "500" })}`;
  const version = useSignal(0);
  const made = useSignal("");
  const found = useFetched(address, () => address, 0, version.value);
  const { keys, key, isMissing } = keysFor(found, { customer, chosen: more.key ?? "", made: made.value }, Date.now());
  const copying = useRef(/** @type {HTMLButtonElement | null} */ (null));
  // The button that was pressed goes: the next step has the focus then.
  useLayoutEffect(() => {
    if (made.value) copying.current?.focus();
  }, [made.value]);
  const make = async () => {
    made.value = (await change("POST", "/v1/keys", { customer, name: "Made on Integration" })).key;
  };
  // The screen says above that the customer is refused.
  if (found.problem?.way === "customer") return null;
  return html`<section aria-labelledby="paste-title">
    <div class="section-head"><h2 id="paste-title">Lines for your player</h2></div>
    ${found.problem && html`<p class="notice" id="no-keys" role="status">${found.problem.title}. ${found.problem.detail}${key === customer && html` The lines have the id <code>${customer}</code>.`}</p>`}
    ${(isMissing || (found.problem && key === customer)) && html`<${Unknown} customer=${customer} />`}
    ${isMissing && html`<${NoKey} make=${make} done=${() => { version.value += 1; }} />`}
    ${key && html`<${Lines} keys=${keys} of=${key} copying=${copying} />`}
    ${made.value === key && key && html`<p class="note" role="status">The key <code>${made.value}</code> is made and stands in the lines. Collectors take it within 5 s.</p>`}
    <p class="note">${key && html`Put the host of your videos in place of <code>media.example.com</code>, and your own element in place of <code>#my-player</code>. `}<${Link} to=${{ screen: "settings", more: { part: "environments", of: customer } }}>Write keys<//></p>
  </section>`;
}

/** Who may, makes one. @param {{make: () => Promise<any>, done: () => void}} props */
const NoKey = ({ make, done }) => html`<div id="no-key"><p>Make a key first: the lines for your player have it.</p>
  ${may("manage") ? html`<p><${Act} title="Make a key" act=${make} done=${done} /></p>` : html`<p class="note">An admin or owner of your organisation makes one.</p>`}</div>`;

/** A name that nothing is known of may be mistyped. @param {{customer: string}} props */
function Unknown({ customer }) {
  const listed = useListed();
  if (!listed || listed.length === LISTED_MAX || !hasCustomers.value) return null;
  if (customers.value.includes(customer) || listed.some(({ id }) => id === customer)) return null;
  return html`<p class="notice" id="unknown-name">No environment has the name <code>${customer}</code>, and no view of it came in the last 30 days. Is the name right?</p>`;
}

/** @param {{keys: any[], of: string, copying: any}} props - `of`: the key that the lines have; `copying`: a reference to the button. */
function Lines({ keys, of: key, copying }) {
  const { more } = place.value;
  const typed = more.collector || `${location.hostname}:8080`;
  const collector = collectorOf(typed, location);
  const player = CLIENTS.find((one) => one.name === more.player) ?? CLIENTS[0];
  const text = collector ? linesFor(player, collector, key) : "";
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => go({ more: { [name]: event.target.value.trim() } }, { replace: true });
  return html`<div class="controls">
      <label class="pick">Player <select id="player" value=${player.name} onChange=${set("player")}>${CLIENTS.map(({ name, title }) => html`<option value=${name}>${title}</option>`)}</select></label>
      <label class="pick">Collector <${Field} id="collector" value=${typed} maxlength="253" size="24" onChange=${set("collector")} autocomplete="off" spellcheck=${false} /></label>
      ${keys.length > 1 && html`<label class="pick">Write key <select id="key" value=${key} onChange=${set("key")}>${keys.map((/** @type {any} */ one) => html`<option value=${one.key}>${one.name || one.key}</option>`)}</select></label>`}
      <${Copy} text=${text} of="snippet" button=${copying} />
    </div>
    ${text ? html`<pre class="code" id="snippet" tabindex="0"><code>${text}</code></pre>` : html`<p class="notice" id="no-collector" role="status">${typed} is no address of a collector: write a name or an IP address, and a port if it has one.</p>`}
    ${player.note && html`<p class="note" id="snippet-note">${player.note}</p>`}
    ${collector && html`<${OtherPrograms} at=${`${collector.scheme}://${collector.host}`} writeKey=${key} />`}`;
}

/** Addresses for any other client. @param {{at: string, writeKey: string}} props */
function OtherPrograms({ at, writeKey }) {
  return html`<p class="note" id="other-programs">Any other player with CMCD version 2 sends its events to <code>${at}/cmcd/${writeKey}</code>. Any other program posts beacons as JSON to <code>${at}/v1/beacons?key=${writeKey}</code>, whose <a href=${`${at}/v1/beacons/schema.json`}>schema</a> the collector has.</p>`;
}
