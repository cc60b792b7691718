// @ts-check
// How many views a row must have to be listed: small groups have the most extreme figures, and say the least.

import { Field } from "../field.js";
import { html } from "../html.js";
import { go, place } from "../place.js";

/** @param {{least?: string}} props - `least`: what holds while nothing is typed, as smaller groups have no figure to be sorted by. */
export function ViewsMin({ least = "" }) {
  const typed = place.value.more.views_min ?? "";
  const choose = (/** @type {any} */ event) => go({ more: { views_min: event.target.value } });
  return html`<label class="pick">At least <${Field} id="views-min" type="number" min="0" value=${typed} placeholder=${least} size="6" onChange=${choose} aria-describedby=${least && !typed ? "views-min-why" : undefined} /> views</label>
    ${least && !typed && html`<span class="note" id="views-min-why">${least} unless you type another number: a smaller group shows no value to sort by.</span>`}`;
}
