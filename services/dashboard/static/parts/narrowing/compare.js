// @ts-check
// Which other range the figures of a screen are compared with: one as long, before it or anywhere.

import { comparedFrom, COMPARED, localText, msOf, resolved } from "../../core/place/ranges.js";
import { Field } from "../inputs/field.js";
import { presentNow_ms } from "../data/asking.js";
import { html } from "../html.js";
import { go, place } from "../place.js";

const OWN = "own";

/** @param {{value: string}} props - As the address has it. */
export function Compare({ value }) {
  const { tz } = place.value;
  const isNamed = value === "" || Boolean(COMPARED[value]);
  const own = isNamed ? null : msOf(value, tz);
  const choose = (/** @type {any} */ event) => {
    if (event.target.value !== OWN) return go({ more: { compare: event.target.value } });
    const range = resolved(place.value, presentNow_ms());
    if (!range) return undefined;
    const from = comparedFrom("week", place.value, presentNow_ms());
    return go({ more: { compare: localText(Number(from), tz) } });
  };
  return html`<label class="pick">Compare
      <select id="compare" value=${isNamed ? value : OWN} onChange=${choose}>
        <option value="">with nothing</option>
        ${Object.entries(COMPARED).map(([name, { title }]) => html`<option value=${name}>${title}</option>`)}
        <option value=${OWN}>with the range from …</option>
      </select>
    </label>
    ${!isNamed && html`<label class="pick">from
      <${Field} type="datetime-local" id="compare-from" min="1970-01-01T00:00" value=${own === null ? "" : localText(own, tz)} onChange=${(/** @type {any} */ e) => e.target.value && e.target.validity.valid && go({ more: { compare: e.target.value } })} />
    </label>`}`;
}
