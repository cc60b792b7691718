// @ts-check
// Who is logged in, and the ways out.

import { signal } from "@preact/signals";
import { fetchJson, toLogin } from "./asking.js";
import { html } from "../html.js";
import { Menu } from "../inputs/menu.js";

/** @type {import("@preact/signals").Signal<any>} */
export const session = signal(null);

/** Whether the person may do something: false until it is known. @param {string} permission */
export const may = (permission) => session.value?.permissions.includes(permission) ?? false;

/** Whether the person may change alerts, and what is done with incidents. */
export const mayChange = () => may("edit") || may("manage");

async function ask() {
  try {
    session.value = await fetchJson("/v1/session");
  } catch {
    // The screens say what is away.
    setTimeout(ask, 5_000);
  }
}

/**
 * A change: JSON to a path, with the session's token against forged requests.
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 */
export function change(method, path, body) {
  const headers = { "Playhead-CSRF": session.value?.csrf ?? "", "Content-Type": "application/json" };
  return fetchJson(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

/** @param {string} path */
async function leave(path) {
  const answer = await fetch(path, { method: "POST", headers: { "Playhead-CSRF": session.value.csrf } });
  if (answer.ok) location.assign("/login");
  else if (answer.status === 401) toLogin();
}

export function Account() {
  if (!session.value) return null;
  const { name, organisation } = session.value;
  return html`<${Menu} id="account" title=${name} hint="Account" draw=${() => html`<div class="menu">
      <p class="note">${name} · ${organisation}</p>
      <p><a href="/docs">API reference</a></p>
      <button type="button" id="log-out" onClick=${() => leave("/v1/logout")}>Log out</button>
      <button type="button" id="log-out-everywhere" onClick=${() => leave("/v1/logout/everywhere")}>Log out in all browsers</button>
    </div>`} />`;
}

ask();
