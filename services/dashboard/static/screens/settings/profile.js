// @ts-check
// Settings: the own login, and which organisation it works in.

import { useSignal } from "@preact/signals";
import { Answered } from "../../parts/data/asking.js";
import { html } from "../../parts/html.js";
import { session } from "../../parts/data/session.js";
import { given, Listed, Once, Table, useList } from "./lists.js";

export default function Profile() {
  const { found, act, wrong } = useList("/v1/profile");
  const done = useSignal("");
  const begun = useSignal(/** @type {any} */ (null));
  const password = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const { present, password: wanted } = given(event);
    done.value = (await act("POST", "/v1/profile/password", { present, password: wanted })) ? "The password is changed; all other sessions have ended." : "";
    if (done.value) form.reset();
  };
  const begin = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    begun.value = await act("POST", "/v1/profile/second-factor", { present: given(event).present });
    // The page goes on being shown: the password does not stay in it.
    if (begun.value) form.reset();
  };
  const confirmed = async (/** @type {Event} */ event) => {
    const answer = await act("POST", "/v1/profile/second-factor/confirm", { code: given(event).code });
    if (answer) begun.value = answer;
  };
  const present = html`<label>Present password <input name="present" type="password" maxlength="256" autocomplete="current-password" /></label>`;
  const draw = (/** @type {any} */ data) => html`<p>${data.email} · ${data.organisation} · ${data.role}</p>
    <${Organisations} />
    <h3>Password</h3><form class="pick" onSubmit=${password}>${data.has_password && present}
      <label>New password, 12 characters or more <input name="password" type="password" minlength="12" maxlength="256" autocomplete="new-password" required /></label>
      <button type="submit">Change the password</button></form>
    <h3>Second factor</h3>
    ${data.has_second_factor ? html`<p>Logins ask for a code; ${data.recovery_codes} recovery codes are left.</p>
      <form class="pick" onSubmit=${(/** @type {Event} */ event) => act("POST", "/v1/profile/second-factor/end", { present: given(event).present })}>${present}<button type="submit">End it</button></form>`
      : html`<form class="pick" onSubmit=${begin}>${data.has_password && present}<button type="submit">Set up a second factor</button></form>`}
    ${begun.value?.secret && html`<p class="notice">Give this secret to an app that makes codes: <code id="secret">${begun.value.secret}</code> (<a href=${begun.value.address}>open in an app</a>)</p>
      <form class="pick" onSubmit=${confirmed}><label>Code <input name="code" inputmode="numeric" maxlength="7" required /></label><button type="submit">Confirm</button></form>`}
    ${begun.value?.codes && html`<${Once} title="Recovery codes: each works once instead of a code." text=${begun.value.codes.join(" ")} />`}`;
  return html`${wrong}${done.value && html`<p class="note" role="status">${done.value}</p>`}<${Answered} of=${found} draw=${draw} />`;
}

/** The organisations of somebody who is in several, and a way into each. */
function Organisations() {
  const list = useList("/v1/organisations?limit=500");
  const { act, wrong } = list;
  const enter = async (/** @type {string} */ id) => {
    // Everything that is shown belongs to the organisation before.
    if (await act("POST", `/v1/organisations/${id}/enter`)) location.assign("/settings");
  };
  const leave = async (/** @type {any} */ one) => {
    if (!confirm(`Leave ${one.name}? API tokens and open invitations that you made there end.`)) return;
    if (await act("POST", `/v1/organisations/${one.id}/leave`)) location.assign("/settings");
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${one.name}</th>
    <td>${one.id === session.value?.organisation_id ? "you work in it" : html`<button type="button" onClick=${() => enter(one.id)}>Work in ${one.name}</button>`} <button type="button" onClick=${() => leave(one)}>Leave ${one.name}</button></td></tr>`;
  const draw = (/** @type {any[]} */ rows) => {
    const own = rows.filter((one) => one.is_member);
    return own.length > 1 && html`<h3>Organisations</h3><${Table} label="Organisations" heads=${["Name", "Actions"]}>${own.map(row)}<//>`;
  };
  return html`${wrong}<${Listed} list=${list} name="organisations" what="organisations" draw=${draw} />`;
}
