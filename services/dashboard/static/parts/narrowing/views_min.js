// @ts-check
// How many views a row must have to be listed: small groups have the most extreme figures, and say the least.

import { Field } from "../field.js";
import { html } from "../html.js";
import { go, place } from "../place.js";

export function ViewsMin() {
  const choose = (/** @type {any} */ event) => go({ more: { views_min: event.target.value } });
  return html`<label class="pick">At least <${Field} id="views-min" type="number" min="0" value=${place.value.more.views_min ?? ""} size="6" onChange=${choose} /> views</label>`;
}
