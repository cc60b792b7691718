// @ts-check
// How many views a row must have to be listed: small groups have the most extreme figures, and say the least.

import { Field } from "../inputs/field.js";
import { html } from "../html.js";
import { go, place } from "../place.js";

/** @param {{least?: string, none?: any}} props - `least`: what holds while nothing is typed, as smaller groups have no figure to be sorted by. `none`: what is said where no group has as many. */
export function ViewsMin({ least = "", none = null }) {
  const typed = place.value.more.views_min ?? "";
  const choose = (/** @type {any} */ event) => go({ more: { views_min: event.target.value } });
  return html`<label class="pick">At least <${Field} id="views-min" type="number" min="0" value=${typed} placeholder=${least} size="6" onChange=${choose} aria-describedby=${none || (least && !typed) ? "views-min-why" : undefined} /> views</label>
    ${none ? html`<span class="note" id="views-min-why">${none}</span>` : least && !typed && html`<span class="note" id="views-min-why">${least} unless you type another number: a smaller group shows no value to sort by.</span>`}`;
}
