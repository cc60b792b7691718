// @ts-check
// Settings, for who runs the installation: its organisations, and the environments that each one owns.

import { useSignal } from "@preact/signals";
import { customers, seen } from "../../parts/data/known.js";
import { session } from "../../parts/data/session.js";
import { html } from "../../parts/html.js";
import { go, Link, place } from "../../parts/place.js";
import { Environments, given, Listed, Once, Table, useList, when } from "./lists.js";

const NOBODY = { to: "", link: "" };

export default function Organisations() {
  const list = useList("/v1/organisations?limit=500");
  const { act, wrong, again } = list;
  const invited = useSignal(NOBODY);
  const make = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const { name, owner } = given(event);
    const made = await act("POST", "/v1/organisations", { name, owner });
    invited.value = made ? { to: String(name), link: made.link } : NOBODY;
    if (!made) return;
    form.reset();
    go({ more: { organisation: made.id } });
  };
  const opened = place.value.more.organisation;
  const forget = () => {
    invited.value = NOBODY;
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row"><${Link} to=${{ more: { organisation: one.id } }} aria-current=${one.id === opened ? "true" : undefined}>${one.name}<//></th>
    <td>${one.customers}${one.runs_installation && ", and all that no other has"}</td><td>${one.people || "none yet"}</td><td>${when(one.created_ms)}</td></tr>`;
  const draw = (/** @type {any[]} */ rows) => html`<${Table} label="Organisations" heads=${["Name", "Environments", "People", "Since"]}>${rows.map(row)}<//>
    ${opened && html`<${Owned} key=${opened} id=${opened} one=${rows.find((one) => one.id === opened)} again=${again} forget=${forget} />`}`;
  return html`${wrong}<p class="note">People of an organisation see its environments and no others.</p>
    <form class="pick" id="make-organisation" onSubmit=${make}>
      <label>Name <input name="name" maxlength="200" pattern=".*\\S.*" required autocomplete="off" /></label>
      <label>E-mail address of its owner <input name="owner" type="email" maxlength="254" required autocomplete="off" /></label>
      <button type="submit">Make an organisation</button></form>
    ${invited.value.link && html`<${Once} title=${`Send this link to the owner of ${invited.value.to}.`} text=${invited.value.link} />`}
    <${Listed} list=${list} name="organisations" what="organisations" draw=${draw} />`;
}

/** What one organisation owns. @param {{id: string, one: any, again: () => void, forget: () => void}} props - `one`: as it is listed, if its page is there; `again` reads the list again, `forget` takes an earlier link away. */
function Owned({ id, one, again, forget }) {
  const list = useList(`/v1/customers?${new URLSearchParams({ organisation_id: id, limit: "500" })}`);
  const { act, wrong } = list;
  const name = one?.name ?? "this organisation";
  const link = useSignal("");
  const own = session.value?.organisation_id;
  const move = async (/** @type {string} */ customer, /** @type {string} */ to) => {
    const answer = await act("PATCH", `/v1/customers/${encodeURIComponent(customer)}`, { organisation_id: to });
    if (!answer) return false;
    again();
    if (to === own) seen([customer]);
    else customers.value = customers.value.filter((known) => known !== customer);
    return true;
  };
  const give = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const customer = String(given(event).environment).trim();
    if (confirm(`Give ${customer} to ${name}? Only people of ${name} see it from then on.`) && (await move(customer, id))) form.reset();
  };
  const takeBack = (/** @type {string} */ customer) => confirm(`Take back ${customer}? People of ${name} do not see it any more.`) && move(customer, own);
  const invite = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const made = await act("POST", `/v1/organisations/${id}/invitations`, given(event));
    link.value = made?.link ?? "";
    if (!made) return;
    forget();
    form.reset();
  };
  const row = (/** @type {any} */ owned) => html`<tr key=${owned.id}><th scope="row">${owned.id}</th><td>${owned.name}</td><td>${when(owned.created_ms)}</td>
    <td>${id !== own && html`<button type="button" aria-label=${`Take back: ${owned.id}`} onClick=${() => takeBack(owned.id)}>Take back</button>`}</td></tr>`;
  return html`<h3>Environments of ${name}</h3>${wrong}
    <form class="pick" id="give-environment" onSubmit=${give}>
      <label>Environment <input name="environment" list="environments" maxlength="64" pattern="[A-Za-z0-9_\\-]+" required autocomplete="off" /></label><${Environments} />
      <button type="submit">Give it to this organisation</button></form>
    <p class="note">An environment moves with its data, write keys, alert rules and incidents. Then replace its write keys: who had it before knows them.</p>
    <${Listed} list=${list} name="customers" what="environments" draw=${(/** @type {any[]} */ rows) => (rows.length === 0 ? html`<p class="empty">${id === own ? "No environment is listed: every one that no other organisation has is yours." : "It has no environment yet."}</p>` : html`<${Table} label="Its environments" heads=${["Id", "Name", "Since", "Actions"]}>${rows.map(row)}<//>`)} />
    ${one?.people === 0 && html`<h3>Nobody has joined yet</h3><p class="note">Another link ends the one before.</p>
      <form class="pick" id="invite-owner" onSubmit=${invite}>
      <label>E-mail address of its owner <input name="email" type="email" maxlength="254" required autocomplete="off" /></label>
      <button type="submit">Make another link</button></form>
      ${link.value && html`<${Once} title=${`Send this link to the owner of ${name}.`} text=${link.value} />`}`}`;
}
