// @ts-check
// Saved views: what the page shows now, kept under a name for oneself or for the whole organisation.

import { useSignal } from "@preact/signals";
import { addressOf } from "../core/place/place.js";
import { Answered, useFetched } from "./data/asking.js";
import { html } from "./html.js";
import { Menu } from "./inputs/menu.js";
import { goTo, place } from "./place.js";
import { change, session } from "./data/session.js";

export function Saved() {
  if (!session.value) return null;
  return html`<${Menu} id="saved" title="Saved views" draw=${(/** @type {boolean} */ isOpen, /** @type {() => void} */ close) => isOpen && html`<${Views} close=${close} />`} />`;
}

/** @param {{close: () => void}} props */
function Views({ close }) {
  const version = useSignal(0);
  const problem = useSignal("");
  const found = useFetched("saved", () => "/v1/saved-views", 0, version.value);
  const act = async (/** @type {string} */ method, /** @type {string} */ path, /** @type {any} */ body = undefined) => {
    try {
      await change(method, path, body);
      problem.value = "";
      version.value += 1;
      return true;
    } catch (error) {
      const { title, detail } = /** @type {any} */ (error);
      problem.value = `${title}. ${detail}`;
      return false;
    }
  };
  const save = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = event.target;
    const given = new FormData(form);
    const body = { name: String(given.get("name")).trim(), address: addressOf(place.value), is_shared: given.has("is_shared") };
    if (await act("POST", "/v1/saved-views", body)) form.reset();
  };
  const mayShare = session.value.permissions.includes("edit");
  return html`<div class="menu">
    <${Answered} of=${found} height=${40} draw=${(/** @type {any} */ data) => html`<${Listed} views=${data.saved_views} mayShare=${mayShare} act=${act} close=${close} />`} />
    <form id="save-view" onSubmit=${save}>
      <label>Name <input name="name" maxlength="200" pattern=".*\\S.*" required autocomplete="off" /></label>
      ${mayShare && html`<label class="check"><input type="checkbox" name="is_shared" /> for everybody in ${session.value.organisation}</label>`}
      <button type="submit">Save what is shown</button>
    </form>
    ${problem.value && html`<p class="notice" role="alert">${problem.value}</p>`}
  </div>`;
}

/** @param {{views: any[], mayShare: boolean, act: Function, close: () => void}} props */
function Listed({ views, mayShare, act, close }) {
  if (!views.length) return html`<p class="note">Nothing is saved yet.</p>`;
  const follow = (/** @type {MouseEvent} */ event, /** @type {string} */ address) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    goTo(address);
    close();
  };
  return html`<ul class="saved">${views.map((one) => html`<li key=${one.id}>
    <a href=${one.address} onClick=${(/** @type {MouseEvent} */ event) => follow(event, one.address)}>${one.name}</a>
    <span class="note">${one.is_shared ? `everybody's, by ${one.made_by}` : "yours"}</span>
    ${(!one.is_shared || mayShare) && html`<button type="button" aria-label=${`Delete ${one.name}`} onClick=${() => act("DELETE", `/v1/saved-views/${one.id}`)}>×</button>`}
  </li>`)}</ul>`;
}
