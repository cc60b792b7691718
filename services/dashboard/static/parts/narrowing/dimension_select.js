// @ts-check
// A choice among the dimensions.

import { html } from "../html.js";
import { capital, customs, dimensions, titleOf } from "../data/known.js";

/** @param {{id: string, value: string, choose: (name: string) => void, hasCustom?: boolean, none?: string}} props */
export function DimensionSelect({ id, value, choose, hasCustom = false, none = "" }) {
  const known = Object.values(dimensions.value);
  // Where dimensions are listed there are commas between them: one with a comma in its name can only be filtered by.
  const named = Object.keys(customs.value).filter((name) => hasCustom || !name.includes(","));
  const isOwn = value.startsWith("custom.") && value !== "custom." && !named.includes(value);
  return html`<select id=${id} value=${value} onChange=${(/** @type {any} */ e) => choose(e.target.value)}>
    ${none && html`<option value="">${none}</option>`}
    ${known.map((one) => html`<option value=${one.name}>${capital(one.title)}</option>`)}
    ${named.map((name) => html`<option value=${name}>${titleOf(name)}</option>`)}
    ${isOwn && html`<option value=${value}>${titleOf(value)}</option>`}
    ${hasCustom && html`<option value="custom.">A dimension of your own …</option>`}
  </select>`;
}
