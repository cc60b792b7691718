// @ts-check
// A choice among the dimensions.

import { html } from "../html.js";
import { capital, dimensions, titleOf } from "../data/known.js";

/** @param {{id: string, value: string, choose: (name: string) => void, hasCustom?: boolean, none?: string}} props */
export function DimensionSelect({ id, value, choose, hasCustom = false, none = "" }) {
  const known = Object.values(dimensions.value);
  const isOwn = value.startsWith("custom.") && value !== "custom.";
  return html`<select id=${id} value=${value} onChange=${(/** @type {any} */ e) => choose(e.target.value)}>
    ${none && html`<option value="">${none}</option>`}
    ${known.map((one) => html`<option value=${one.name}>${capital(one.title)}</option>`)}
    ${isOwn && html`<option value=${value}>${titleOf(value)}</option>`}
    ${hasCustom && html`<option value="custom.">A dimension of your own …</option>`}
  </select>`;
}
