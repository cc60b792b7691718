// @ts-check
// Settings: people and invitations, API tokens, environments with their write keys, the audit log, and the own login.

import { useSignal } from "@preact/signals";
import { momentText } from "../core/ranges.js";
import { Answered, useFetched } from "../parts/asking.js";
import { html } from "../parts/html.js";
import { go, Link, place } from "../parts/place.js";
import { change, session } from "../parts/session.js";

/** @type {Record<string, {title: string, needs: string | null, draw: Function}>} */
const PARTS = {
  profile: { title: "Profile", needs: null, draw: Profile },
  people: { title: "People", needs: null, draw: People },
  environments: { title: "Environments", needs: null, draw: Environments },
  tokens: { title: "API tokens", needs: "manage", draw: Tokens },
  audit: { title: "Audit log", needs: "manage", draw: Audit },
};
const ROLES = ["viewer", "editor", "admin", "owner"];
const SCOPES = ["read_metrics", "read_views", "ingest", "manage"];

const may = (/** @type {string} */ permission) => session.value?.permissions.includes(permission) ?? false;
const when = (/** @type {number | null} */ at_ms) => (at_ms === null ? "–" : momentText(at_ms, place.value.tz));

export default function Settings() {
  const part = PARTS[place.value.more.part ?? ""] ? place.value.more.part : "profile";
  const open = Object.entries(PARTS).filter(([, { needs }]) => needs === null || may(needs));
  return html`<section aria-labelledby="settings-head">
    <div class="section-head"><h2 id="settings-head">Settings</h2>
      <nav aria-label="Settings" class="chips">${open.map(([name, { title }]) => html`<${Link} to=${{ more: { part: name } }} aria-current=${name === part ? "page" : undefined}>${title}<//> `)}</nav></div>
    <${PARTS[part].draw} />
  </section>`;
}

/** A list of the API that is read again after each change, and the changes: what went wrong is said beside it. @param {string | null} path */
function useList(path) {
  const version = useSignal(0);
  const problem = useSignal("");
  const found = useFetched(path && `${path} ${version.value}`, () => /** @type {string} */ (path));
  const act = async (/** @type {string} */ method, /** @type {string} */ to, /** @type {any} */ body = undefined) => {
    try {
      problem.value = "";
      const answer = await change(method, to, body);
      version.value += 1;
      return answer;
    } catch (error) {
      const { title, detail } = /** @type {any} */ (error);
      problem.value = `${title}. ${detail}`;
      return null;
    }
  };
  const wrong = problem.value && html`<p class="notice" role="alert">${problem.value}</p>`;
  return { found, act, wrong };
}

/** What a form holds, by name. @param {Event} event */
function given(event) {
  event.preventDefault();
  return Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target)));
}

/** What is shown once. @param {{title: string, text: string}} props */
function Once({ title, text }) {
  return html`<p class="notice" role="status">${title} It is shown this once: <code id="once">${text}</code></p>`;
}

/** @param {{heads: string[], label: string, children?: any}} props */
function Table({ heads, label, children }) {
  return html`<div class="scroll plain" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>${children}</tbody></table></div>`;
}

function People() {
  const { found, act, wrong } = useList("/v1/people?limit=500");
  const link = useSignal("");
  const invitations = useList(may("manage") ? "/v1/invitations?limit=500" : null);
  const invite = async (/** @type {Event} */ event) => {
    const { email, role } = given(event);
    link.value = (await invitations.act("POST", "/v1/invitations", { email, role }))?.link ?? "";
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${one.email}</th><td>${one.name}</td>
    <td>${may("manage") ? html`<select aria-label=${`Role of ${one.email}`} value=${one.role} onChange=${(/** @type {any} */ event) => act("PATCH", `/v1/people/${one.id}`, { role: event.target.value })}>${ROLES.map((role) => html`<option>${role}</option>`)}</select>` : one.role}</td>
    <td>${one.has_second_factor ? "yes" : "no"}</td><td>${when(one.seen_ms)}</td>
    <td>${may("manage") && html`<button type="button" onClick=${() => act("POST", `/v1/people/${one.id}/end-sessions`)}>Log out</button> <button type="button" onClick=${() => confirm(`Remove ${one.email}?`) && act("DELETE", `/v1/people/${one.id}`)}>Remove</button>`}</td></tr>`;
  return html`${wrong}${invitations.wrong}
    ${may("manage") && html`<form class="pick" onSubmit=${invite}>
      <label>E-mail address <input name="email" type="email" maxlength="254" required /></label>
      <label>Role <select name="role">${ROLES.map((role) => html`<option>${role}</option>`)}</select></label>
      <button type="submit">Invite</button></form>`}
    ${link.value && html`<${Once} title="Send this link to who is invited." text=${link.value} />`}
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => html`<${Table} label="People" heads=${["Address", "Name", "Role", "Second factor", "Last seen", ""]}>${data.people.map(row)}<//>`} />
    ${may("manage") && html`<h3>Open invitations</h3><${Answered} of=${invitations.found} draw=${(/** @type {any} */ data) => (data.invitations.length === 0 ? html`<p class="empty">None is open.</p>` : html`<${Table} label="Invitations" heads=${["Address", "Role", "By", "Until", ""]}>${data.invitations.map((/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${one.email}</th><td>${one.role}</td><td>${one.made_by}</td><td>${when(one.expires_ms)}</td><td><button type="button" onClick=${() => invitations.act("DELETE", `/v1/invitations/${one.id}`)}>Withdraw</button></td></tr>`)}<//>`)} />`}`;
}

function Tokens() {
  const { found, act, wrong } = useList("/v1/tokens?limit=500");
  const text = useSignal("");
  const make = async (/** @type {Event} */ event) => {
    const { name, days, ...scopes } = given(event);
    const body = { name, scopes: Object.keys(scopes), days: days ? Number(days) : null };
    text.value = (await act("POST", "/v1/tokens", body))?.token ?? "";
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${one.name}</th><td>${one.scopes.join(", ")}</td><td>${one.customers?.join(", ") ?? "all"}</td>
    <td>${one.made_by}</td><td>${when(one.used_ms)}</td><td>${one.revoked_ms ? "revoked" : when(one.expires_ms)}</td>
    <td>${!one.revoked_ms && html`<button type="button" onClick=${() => act("DELETE", `/v1/tokens/${one.id}`)}>Revoke</button>`}</td></tr>`;
  return html`${wrong}<form class="pick" onSubmit=${make}>
      <label>Name <input name="name" maxlength="200" required /></label>
      ${SCOPES.map((scope) => html`<label><input type="checkbox" name=${scope} /> ${scope}</label>`)}
      <label>Days <input name="days" type="number" min="1" max="3650" placeholder="no end" /></label>
      <button type="submit">Make a token</button></form>
    ${text.value && html`<${Once} title="Keep this token." text=${text.value} />`}
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => html`<${Table} label="API tokens" heads=${["Name", "Scopes", "Customers", "By", "Last use", "End", ""]}>${data.tokens.map(row)}<//>`} />`;
}

function Environments() {
  const { found, act, wrong } = useList("/v1/customers?limit=500");
  const { more } = place.value;
  const make = (/** @type {Event} */ event) => {
    const { id, name } = given(event);
    act("POST", "/v1/customers", id ? { id, name } : { name });
  };
  const show = (/** @type {Event} */ event) => go({ more: { ...more, of: String(given(event).of).trim() } });
  return html`${wrong}
    ${may("manage") && html`<form class="pick" onSubmit=${make}>
      <label>Name <input name="name" maxlength="200" required /></label>
      ${session.value?.operates && html`<label>Id <input name="id" maxlength="64" pattern="[A-Za-z0-9_\\-]+" placeholder="chosen" /></label>`}
      <button type="submit">Make an environment</button></form>`}
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => (data.customers.length === 0 ? html`<p class="empty">No environment is listed: every customer that no other organisation owns is yours.</p>` : html`<${Table} label="Environments" heads=${["Id", "Name", "Since"]}>${data.customers.map((/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row"><${Link} to=${{ more: { ...more, of: one.id } }}>${one.id}<//></th><td>${one.name}</td><td>${when(one.created_ms)}</td></tr>`)}<//>`)} />
    <h3>Write keys</h3>
    <form class="pick" onSubmit=${show}><label>Of environment <input name="of" value=${more.of ?? ""} maxlength="64" required /></label><button type="submit">Show</button></form>
    ${more.of && html`<${Keys} key=${more.of} customer=${more.of} />`}`;
}

/** @param {{customer: string}} props */
function Keys({ customer }) {
  const { found, act, wrong } = useList(`/v1/keys?${new URLSearchParams({ customer, limit: "500" })}`);
  const make = (/** @type {Event} */ event) => {
    const { name, origins } = given(event);
    act("POST", "/v1/keys", { customer, name, origins: String(origins).split(/\s+/).filter(Boolean) });
  };
  const isOver = (/** @type {any} */ one) => one.revoked_ms !== null || (one.expires_ms ?? Infinity) < Date.now();
  const row = (/** @type {any} */ one) => html`<tr key=${one.key}><th scope="row"><code>${one.key}</code></th><td>${one.name}</td><td>${one.origins.join(" ") || "as the environment"}</td>
    <td>${one.revoked_ms ? "revoked" : when(one.expires_ms)}</td>
    <td>${may("manage") && !isOver(one) && html`<button type="button" onClick=${() => act("POST", `/v1/keys/${one.key}/replace`, {})}>Replace</button> <button type="button" onClick=${() => confirm(`Revoke ${one.key}?`) && act("DELETE", `/v1/keys/${one.key}`)}>Revoke</button>`}</td></tr>`;
  return html`${wrong}${may("manage") && html`<form class="pick" onSubmit=${make}>
      <label>Name <input name="name" maxlength="200" required /></label>
      <label>Origins <input name="origins" placeholder="https://www.example.com" size="32" /></label>
      <button type="submit">Make a key</button></form>`}
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => (data.keys.length === 0 ? html`<p class="empty">No key was made for ${customer}.</p>` : html`<${Table} label="Write keys" heads=${["Key", "Name", "Origins", "End", ""]}>${data.keys.map(row)}<//>`)} />`;
}

function Audit() {
  const { more } = place.value;
  const { found } = useList(`/v1/audit?${new URLSearchParams({ limit: "100", cursor: more.cursor ?? "" })}`);
  return html`<p><a href="/v1/audit/export?format=csv">CSV</a> · <a href="/v1/audit/export?format=jsonl">JSON lines</a></p>
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => html`<${Table} label="Audit log" heads=${["When", "Who", "From", "What", "Of what"]}>${data.entries.map((/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${when(one.at_ms)}</th><td>${one.actor}</td><td>${one.address ?? "–"}</td><td>${one.action}</td><td>${one.target}</td></tr>`)}<//>
      ${data.next && html`<p><${Link} to=${{ more: { ...more, cursor: data.next } }}>Older<//></p>`}`} />`;
}

function Profile() {
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
    begun.value = await act("POST", "/v1/profile/second-factor", { present: given(event).present });
  };
  const confirmed = async (/** @type {Event} */ event) => {
    const answer = await act("POST", "/v1/profile/second-factor/confirm", { code: given(event).code });
    if (answer) begun.value = answer;
  };
  const present = html`<label>Present password <input name="present" type="password" maxlength="256" autocomplete="current-password" /></label>`;
  const draw = (/** @type {any} */ data) => html`<p>${data.email} · ${data.organisation} · ${data.role}</p>
    <h3>Password</h3><form class="pick" onSubmit=${password}>${data.has_password && present}
      <label>New password <input name="password" type="password" minlength="12" maxlength="256" autocomplete="new-password" required /></label>
      <button type="submit">Change the password</button></form>
    <h3>Second factor</h3>
    ${data.has_second_factor ? html`<p>Logins ask for a code; ${data.recovery_codes} recovery codes are left.</p>
      <form class="pick" onSubmit=${(/** @type {Event} */ event) => act("POST", "/v1/profile/second-factor/end", { present: given(event).present })}>${present}<button type="submit">End it</button></form>`
      : html`<form class="pick" onSubmit=${begin}>${data.has_password && present}<button type="submit">Begin a second factor</button></form>`}
    ${begun.value?.secret && html`<p class="notice">Give this secret to an app that makes codes: <code id="secret">${begun.value.secret}</code> (<a href=${begun.value.address}>open in an app</a>)</p>
      <form class="pick" onSubmit=${confirmed}><label>Code <input name="code" inputmode="numeric" maxlength="7" required /></label><button type="submit">Confirm</button></form>`}
    ${begun.value?.codes && html`<${Once} title="Recovery codes: each works once instead of a code." text=${begun.value.codes.join(" ")} />`}`;
  return html`${wrong}${done.value && html`<p class="note" role="status">${done.value}</p>`}<${Answered} of=${found} draw=${draw} />`;
}
