// @ts-check
// A choice among the dimensions, and what figures are broken down by.

import { useSignal } from "@preact/signals";
import { html } from "../html.js";
import { capital, customs, dimensions, titleOf } from "../data/known.js";

/** What is chosen until its name is typed. */
const CUSTOM = "custom.";

/** @param {{id: string, value: string, choose: (name: string) => void, isListed?: boolean, none?: string, numbers?: string[]}} props - `numbers` of a view are offered too. */
export function DimensionSelect({ id, value, choose, isListed = false, none = "", numbers }) {
  const known = Object.values(dimensions.value);
  // Where dimensions are listed there are commas between them: one with a comma in its name can only be filtered by.
  const named = Object.keys(customs.value).filter((name) => !isListed || !name.includes(","));
  const isOwn = value.startsWith(CUSTOM) && value !== CUSTOM && !named.includes(value);
  return html`<select id=${id} value=${value} onChange=${(/** @type {any} */ e) => choose(e.target.value)}>
    ${none && html`<option value="">${none}</option>`}
    ${known.map((one) => html`<option value=${one.name}>${capital(one.title)}</option>`)}
    ${named.map((name) => html`<option value=${name}>${titleOf(name)}</option>`)}
    ${isOwn && html`<option value=${value}>${titleOf(value)}</option>`}
    <option value=${CUSTOM}>A dimension of your own …</option>
    ${numbers && html`<optgroup label="Numbers of a view">${numbers.map((name) => html`<option value=${name}>${titleOf(name)}</option>`)}</optgroup>`}
  </select>`;
}

/** What figures are broken down by: one of the list, or a custom dimension whose name is typed. @param {{id: string, title: string, value: string, none: string, choose: (name: string) => void}} props */
export function BreakdownSelect({ id, title, value, none, choose }) {
  const isTyping = useSignal(false);
  const chosen = (/** @type {string} */ name) => {
    isTyping.value = name === CUSTOM;
    if (!isTyping.value) choose(name);
  };
  const named = (/** @type {any} */ event) => {
    const name = event.target.value.trim();
    if (name && event.target.validity.valid) chosen(CUSTOM + name);
  };
  return html`<label class="pick">${title} <${DimensionSelect} id=${id} value=${isTyping.value ? CUSTOM : value} none=${none} choose=${chosen} isListed /></label>
    ${isTyping.value && html`<label class="pick">named <input id=${`${id}-name`} size="14" maxlength="100" pattern="[^,]+" title="a name as players send it, without a comma" autocomplete="off" onChange=${named} /></label>`}`;
}
