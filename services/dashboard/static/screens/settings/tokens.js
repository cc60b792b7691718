// @ts-check
// Settings: tokens of programs.

import { useSignal } from "@preact/signals";
import { html } from "../../parts/html.js";
import { Environments, given, Listed, Once, Table, useList, when } from "./lists.js";

/** What a token may do, in words. @type {Record<string, string>} */
const SCOPES = { read_metrics: "read figures", read_views: "read single views", ingest: "send beacons", manage: "manage people, tokens and keys" };

export default function Tokens() {
  const list = useList("/v1/tokens?limit=500");
  const { act, wrong } = list;
  const text = useSignal("");
  const make = async (/** @type {Event} */ event) => {
    const { name, days, customers: typed, ...scopes } = given(event);
    const named = String(typed).split(/[\s,]+/).filter(Boolean);
    const body = { name, scopes: Object.keys(scopes), customers: named.length ? named : null, days: days ? Number(days) : null };
    text.value = (await act("POST", "/v1/tokens", body))?.token ?? "";
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${one.name}</th><td>${one.scopes.map((/** @type {string} */ scope) => SCOPES[scope] ?? scope).join(", ")}</td><td>${one.customers?.join(", ") ?? "all"}</td>
    <td>${one.made_by}</td><td>${when(one.used_ms)}</td><td>${one.revoked_ms ? "revoked" : when(one.expires_ms)}</td>
    <td>${!one.revoked_ms && html`<button type="button" aria-label=${`Revoke: ${one.name}, ${one.id}`} onClick=${() => confirm(`Revoke the token ${one.name}? Programs that use it are refused then.`) && act("DELETE", `/v1/tokens/${one.id}`)}>Revoke</button>`}</td></tr>`;
  return html`${wrong}<form class="pick" onSubmit=${make}>
      <label>Name <input name="name" maxlength="200" required /></label>
      <fieldset class="boxes"><legend>It may</legend>${Object.entries(SCOPES).map(([scope, title]) => html`<label title=${scope}><input type="checkbox" name=${scope} defaultChecked=${scope === "read_metrics"} /> ${title}</label>`)}</fieldset>
      <label>Of customers <input name="customers" list="environments" maxlength="65000" autocomplete="off" spellcheck=${false} placeholder="all, or some: a, b" /></label><${Environments} />
      <label>Ends after days <input name="days" type="number" min="1" max="3650" placeholder="no end" /></label>
      <button type="submit">Make a token</button></form>
    <p class="note">What programs can ask is in the <a href="/docs">API reference</a>.</p>
    ${text.value && html`<${Once} title="Keep this token." text=${text.value} />`}
    <${Listed} list=${list} name="tokens" what="tokens" draw=${(/** @type {any[]} */ rows) => html`<${Table} label="API tokens" heads=${["Name", "May", "Customers", "Made by", "Last use", "End", "Actions"]}>${rows.map(row)}<//>`} />`;
}
