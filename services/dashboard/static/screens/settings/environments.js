// @ts-check
// Settings: environments of the organisation, and the write keys of one.

import { html } from "../../parts/html.js";
import { go, Link, place } from "../../parts/place.js";
import { may, session } from "../../parts/data/session.js";
import Keys from "./keys.js";
import { Environments as Known, given, Listed, Table, useList, when } from "./lists.js";

export default function Environments() {
  const list = useList("/v1/customers?limit=500");
  const { act, wrong } = list;
  const { more } = place.value;
  const make = (/** @type {Event} */ event) => {
    const { id, name } = given(event);
    act("POST", "/v1/customers", id ? { id, name } : { name });
  };
  const show = (/** @type {Event} */ event) => go({ more: { ...more, of: String(given(event).of).trim() } });
  return html`${wrong}
    ${may("manage") && html`<form class="pick" onSubmit=${make}>
      <label>Name <input name="name" maxlength="200" required /></label>
      ${session.value?.operates && html`<label>Id <input name="id" maxlength="64" pattern="[A-Za-z0-9_\\-]+" placeholder="chosen for you" /></label>`}
      <button type="submit">Make an environment</button></form>`}
    <${Listed} list=${list} name="customers" what="environments" draw=${(/** @type {any[]} */ rows) => (rows.length === 0 ? html`<p class="empty">${session.value?.runs_installation ? "No environment is listed: every customer that no other organisation owns is yours." : "Your organisation has no environment yet."}</p>` : html`<${Table} label="Environments" heads=${["Id", "Name", "Since"]}>${rows.map((one) => html`<tr key=${one.id}><th scope="row"><${Link} to=${{ more: { ...more, of: one.id } }}>${one.id}<//></th><td>${one.name}</td><td>${when(one.created_ms)}</td></tr>`)}<//>`)} />
    <h3>Write keys</h3>
    <form class="pick" key=${`of-${more.of}`} onSubmit=${show}><label>Of environment <input name="of" list="environments" autocomplete="off" defaultValue=${more.of ?? ""} maxlength="64" required /></label><${Known} /><button type="submit">Show</button></form>
    ${more.of && html`<${Keys} key=${more.of} customer=${more.of} />`}`;
}
