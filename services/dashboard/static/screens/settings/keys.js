// @ts-check
// Settings: write keys of one environment: made, changed, replaced, revoked.

import { useSignal } from "@preact/signals";
import { now_ms } from "../../parts/data/asking.js";
import { html } from "../../parts/html.js";
import { may } from "../../parts/data/session.js";
import { given, Listed, Table, useList, when } from "./lists.js";

/** How long a key that is replaced is still taken. */
const OVERLAP_HOURS = 24;

const count = (/** @type {number} */ value) => value.toLocaleString("en-US", { maximumFractionDigits: 3 });

/** @param {{customer: string}} props */
export default function Keys({ customer }) {
  const list = useList(`/v1/keys?${new URLSearchParams({ customer, limit: "500" })}`);
  const { act, wrong } = list;
  const changed = useSignal(/** @type {string | null} */ (null));
  const make = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (await act("POST", "/v1/keys", { customer, ...termsOf(given(event)) })) form.reset();
  };
  const save = async (/** @type {Event} */ event) => {
    if (await act("PATCH", `/v1/keys/${changed.value}`, termsOf(given(event)))) changed.value = null;
  };
  const isOver = (/** @type {any} */ one) => one.revoked_ms !== null || (one.expires_ms !== null && one.expires_ms < now_ms.value);
  const row = (/** @type {any} */ one) => html`<tr key=${one.key}><th scope="row"><code>${one.key}</code></th><td>${one.name}</td><td>${one.origins.join(" ") || "as the environment"}</td>
    <td>${limitsText(one)}</td><td>${one.revoked_ms ? "revoked" : when(one.expires_ms)}</td>
    <td>${may("manage") && !isOver(one) && html`<button type="button" aria-label=${`Change: ${one.key}`} onClick=${() => { changed.value = one.key; }}>Change</button> <button type="button" aria-label=${`Replace: ${one.key}`} onClick=${() => confirm(`Make a new key in the place of ${one.key}? Players with ${one.key} are refused from ${OVERLAP_HOURS} hours on.`) && act("POST", `/v1/keys/${one.key}/replace`, { overlap_hours: OVERLAP_HOURS })}>Replace</button> <button type="button" aria-label=${`Revoke: ${one.key}`} onClick=${() => confirm(`Revoke ${one.key}?`) && act("DELETE", `/v1/keys/${one.key}`)}>Revoke</button>`}</td></tr>`;
  const draw = (/** @type {any[]} */ keys) => {
    const one = keys.find((key) => key.key === changed.value);
    return html`${keys.length === 0 ? html`<p class="empty">No key was made for ${customer}.</p>` : html`<${Table} label="Write keys" heads=${["Key", "Name", "Origins", "Limits of a collector", "End", "Actions"]}>${keys.map(row)}<//>`}
      ${one && html`<form class="pick" id="change-key" key=${one.key} onSubmit=${save}><fieldset><legend>Change <code>${one.key}</code></legend>
        <${Terms} of=${one} /><button type="submit">Save</button> <button type="button" onClick=${() => { changed.value = null; }}>Cancel</button></fieldset></form>`}`;
  };
  return html`${wrong}${may("manage") && html`<form class="pick" id="make-key" onSubmit=${make}><${Terms} of=${null} /><button type="submit">Make a key</button></form>
      <p class="note">Collectors take changes within 5 s. What is empty is as the environment has it; limits are of one collector process.</p>`}
    <${Listed} list=${list} name="keys" what="keys" draw=${draw} />`;
}

/** The fields of a key's name, origins and limits. @param {{of: any}} props */
function Terms({ of }) {
  return html`<label>Name <input name="name" maxlength="200" defaultValue=${of?.name ?? ""} required /></label>
    <label>Origins <input name="origins" placeholder="https://www.example.com" size="32" defaultValue=${of?.origins.join(" ") ?? ""} /></label>
    <label>Beacons a second <input name="beacons_per_second" type="number" min="0.001" max="1e12" step="any" defaultValue=${of?.beacons_per_second ?? ""} /></label>
    <label>Bytes a second <input name="bytes_per_second" type="number" min="0.001" max="1e12" step="any" defaultValue=${of?.bytes_per_second ?? ""} /></label>`;
}

/** What the API takes. @param {any} form */
function termsOf({ name, origins, beacons_per_second, bytes_per_second }) {
  const rate = (/** @type {string} */ text) => (text === "" ? null : Number(text));
  return { name, origins: origins.split(/\s+/).filter(Boolean), beacons_per_second: rate(beacons_per_second), bytes_per_second: rate(bytes_per_second) };
}

/** @param {any} key */
function limitsText({ beacons_per_second, bytes_per_second }) {
  const parts = [beacons_per_second !== null && `${count(beacons_per_second)} beacons/s`, bytes_per_second !== null && `${count(bytes_per_second)} B/s`];
  return parts.filter(Boolean).join(", ") || "as the environment";
}
