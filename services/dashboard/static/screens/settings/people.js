// @ts-check
// Settings: who is in the organisation, as what, and who is invited.

import { useSignal } from "@preact/signals";
import { html } from "../../parts/html.js";
import { may } from "../../parts/data/session.js";
import { given, Listed, Once, ROLES, Table, useList, when } from "./lists.js";

export default function People() {
  const people = useList("/v1/people?limit=500");
  const { act, wrong } = people;
  const link = useSignal("");
  const invitations = useList(may("manage") ? "/v1/invitations?limit=500" : null);
  const invite = async (/** @type {Event} */ event) => {
    const { email, role } = given(event);
    link.value = (await invitations.act("POST", "/v1/invitations", { email, role }))?.link ?? "";
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${one.email}</th><td>${one.name}</td>
    <td>${may("manage") ? html`<select aria-label=${`Role of ${one.email}`} title="As editor or viewer, a person loses the API tokens and open invitations that it made" value=${one.role} onChange=${(/** @type {any} */ event) => act("PATCH", `/v1/people/${one.id}`, { role: event.target.value })}>${ROLES.map((role) => html`<option>${role}</option>`)}</select>` : one.role}</td>
    <td>${one.has_second_factor ? "yes" : "no"}</td><td>${when(one.seen_ms)}</td>
    <td>${may("manage") && html`<button type="button" aria-label=${`Log out: ${one.email}`} onClick=${() => act("POST", `/v1/people/${one.id}/end-sessions`)} title="Ends all sessions of this person">Log out</button> <button type="button" aria-label=${`Remove: ${one.email}`} onClick=${() => confirm(`Remove ${one.email}? API tokens and open invitations that this person made end too.`) && act("DELETE", `/v1/people/${one.id}`)}>Remove</button>`}</td></tr>`;
  return html`${wrong}${invitations.wrong}
    ${may("manage") && html`<form class="pick" onSubmit=${invite}>
      <label>E-mail address <input name="email" type="email" maxlength="254" required /></label>
      <label>Role <select name="role">${ROLES.map((role) => html`<option>${role}</option>`)}</select></label>
      <button type="submit">Invite</button></form>`}
    ${link.value && html`<${Once} title="Send this link to who is invited." text=${link.value} />`}
    <${Listed} list=${people} name="people" what="people" draw=${(/** @type {any[]} */ rows) => html`<${Table} label="People" heads=${["Address", "Name", "Role", "Second factor", "Last seen", "Actions"]}>${rows.map(row)}<//>`} />
    ${may("manage") && html`<h3>Open invitations</h3><${Listed} list=${invitations} name="invitations" what="invitations" draw=${(/** @type {any[]} */ rows) => (rows.length === 0 ? html`<p class="empty">None is open.</p>` : html`<${Table} label="Invitations" heads=${["Address", "Role", "By", "Until", "Actions"]}>${rows.map((one) => html`<tr key=${one.id}><th scope="row">${one.email}</th><td>${one.role}</td><td>${one.made_by}</td><td>${when(one.expires_ms)}</td><td><button type="button" aria-label=${`Withdraw: ${one.email}`} onClick=${() => confirm(`Withdraw the invitation of ${one.email}?`) && invitations.act("DELETE", `/v1/invitations/${one.id}`)}>Withdraw</button></td></tr>`)}<//>`)} />`}`;
}
