// @ts-check
// Settings: what the organisation calls the custom dimensions that its players send.

import { Answered } from "../../parts/data/asking.js";
import { askCustoms } from "../../parts/data/known.js";
import { html } from "../../parts/html.js";
import { may } from "../../parts/data/session.js";
import { Link } from "../../parts/place.js";
import { given, Table, useList } from "./lists.js";

const PATH = "/v1/custom-dimensions";

export default function CustomDimensions() {
  const { found, act, wrong } = useList(PATH);
  const set = async (/** @type {string} */ name, /** @type {string | null} */ title) => {
    const answer = await act("PATCH", PATH, { name, title });
    if (answer) askCustoms();
    return answer;
  };
  const add = async (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const { name, title } = given(event);
    if (await set(String(name).trim(), String(title))) form.reset();
  };
  const row = (/** @type {any} */ one) => html`<tr key=${one.name}><th scope="row"><code>${one.name}</code></th><td>${one.title}</td>
    <td>${!one.name.includes(",") && html`<${Link} aria-label=${`Explore by it: ${one.title}`} to=${{ screen: "explore", more: { by: `custom.${one.name}` } }}>Explore by it<//>`}</td>
    <td>${may("edit") && html`<button type="button" aria-label=${`Remove: ${one.name}`} onClick=${() => set(one.name, null)}>Remove</button>`}</td></tr>`;
  return html`${wrong}
    <p class="note">What players send as custom data can be filtered and broken down by. A title here names it on every screen, and puts it into the lists of dimensions.</p>
    ${may("edit") && html`<form class="pick" id="name-dimension" onSubmit=${add}>
      <label>Name as players send it <input name="name" maxlength="100" pattern=".*\\S.*" required autocomplete="off" /></label>
      <label>Title <input name="title" maxlength="200" pattern=".*\\S.*" required autocomplete="off" /></label>
      <button type="submit">Save</button></form>`}
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => (data.custom_dimensions.length === 0 ? html`<p class="empty">No custom dimension has a title.</p>` : html`<${Table} label="Custom dimensions" heads=${["Name", "Title", "Use", "Actions"]}>${data.custom_dimensions.map(row)}<//>`)} />`;
}
