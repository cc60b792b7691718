// @ts-check
// The form of a new filter: values of a dimension, a part of its text, or a bound of a number of views.

import { useSignal } from "@preact/signals";
import { BOUNDED, bounded, BOUNDS, CONDITIONS, containing, filterOf, typedValues, UNKNOWN } from "../../core/place/filters.js";
import { countText } from "../../core/words/format.js";
import { labelText } from "../../core/words/labels.js";
import { useQuestion } from "../data/asking.js";
import { nameOf } from "../data/known.js";
import { html } from "../html.js";
import { place } from "../place.js";
import { DimensionSelect } from "./dimension_select.js";

/** Values that are listed to be clicked; all others are typed. */
const LISTED = 20;

/** What a filter is called by how it is joined to another one. */
const JOINTS = { filter: { title: "A filter", of: "Dimension" }, or: { title: "Or where", of: "Or where" }, and: { title: "And where", of: "And where" } };

/** @param {{joint: keyof typeof JOINTS, add: (text: string) => void, within: string[]}} props - `within`: the filters whose values are offered. */
export default function NewFilter({ joint, add, within }) {
  const dimension = useSignal("cdn");
  const condition = useSignal("is");
  const custom = useSignal("");
  const picked = useSignal(/** @type {(string | null)[]} */ ([]));
  const number = BOUNDED[dimension.value];
  const conditions = number ? BOUNDS : CONDITIONS;
  const chosen = condition.value in conditions ? condition.value : Object.keys(conditions)[0];
  const isPart = chosen === "contains" || chosen === "lacks";
  const name = dimension.value === "custom." ? `custom.${custom.value}` : dimension.value;
  const choose = (/** @type {string} */ to) => {
    picked.value = [];
    dimension.value = to;
  };
  const toggle = (/** @type {string | null} */ value) => {
    picked.value = picked.value.includes(value) ? picked.value.filter((one) => one !== value) : [...picked.value, value];
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const typed = new FormData(event.target).get("value")?.toString() ?? "";
    if (name === "custom.") return;
    if (number) return add(bounded(name, chosen, Number(typed)));
    if (isPart) return add(containing(name, typed, chosen === "lacks"));
    const known = [...event.target.querySelectorAll("#filter-values option")].map((one) => one.value);
    const values = [...new Set([...picked.value, ...typedValues(typed, known)])];
    if (values.length) add(filterOf(name, values, chosen === "not"));
  };
  return html`<form class="new-filter" id="new-filter" onSubmit=${submit} aria-label=${JOINTS[joint].title}>
    <label>${JOINTS[joint].of} <${DimensionSelect} id="filter-dimension" value=${dimension.value} choose=${choose} numbers=${Object.keys(BOUNDED)} /></label>
    ${dimension.value === "custom." && html`<label>Name <input value=${custom.value} onInput=${(/** @type {any} */ e) => { custom.value = e.target.value; }} size="12" maxlength="100" required /></label>`}
    <label>Condition <select id="filter-condition" value=${chosen} onChange=${(/** @type {any} */ e) => { condition.value = e.target.value; }}>
      ${Object.entries(conditions).map(([value, title]) => html`<option value=${value}>${title}</option>`)}
    </select></label>
    ${number
      ? html`<label>Value <input name="value" id="filter-value" key="number" type="number" step="any" min="0" size="8" required autocomplete="off" /> ${number.unit}</label>`
      : html`<label>Value <input name="value" id="filter-value" key="text" list=${isPart ? undefined : "filter-values"} required=${isPart || !picked.value.length} maxlength="2000" autocomplete="off" placeholder=${isPart ? "a part of the text" : "a value, or several: a | b"} /></label>`}
    <button type="submit">Add</button>
    ${!number && name !== "custom." && html`<${Values} dimension=${name} within=${within} picked=${picked.value} toggle=${isPart ? null : toggle} />`}
  </form>`;
}

/** The values of a dimension in the range, those with the most views first. @param {{dimension: string, within: string[], picked: (string | null)[], toggle: ((value: string | null) => void) | null}} props - Without `toggle` nothing is picked. */
function Values({ dimension, within, picked, toggle }) {
  const found = useQuestion("/v1/breakdown", { ...place.value, filters: within }, { by: dimension, limit: 100 });
  const groups = (found.data?.groups ?? []).filter((/** @type {any} */ one) => one.kind !== "other");
  // A name that nobody sends is a name that is mistyped.
  const isNobodys = found.data && groups.every((/** @type {any} */ one) => one.labels[0] === UNKNOWN);
  if (isNobodys) return html`<p class="notice" id="no-values" role="status">No view of this range${within.length ? " and these filters" : ""} has a value of ${nameOf(dimension)}.${dimension.startsWith("custom.") && " Is the name as players send it?"}</p>`;
  return html`<datalist id="filter-values">${groups.map((/** @type {any} */ one) => html`<option value=${one.labels[0]}>${one.n} views</option>`)}</datalist>
    ${toggle && groups.length > 0 && html`<fieldset class="values" id="filter-listed"><legend class="unseen">Values with the most views</legend>
      ${groups.slice(0, LISTED).map((/** @type {any} */ one) => html`<label key=${one.labels[0]}><input type="checkbox" checked=${picked.includes(one.key[0])} onChange=${() => toggle(one.key[0])} /> ${labelText(one.labels[0])} <span class="note">${countText(one.n)}</span></label>`)}
    </fieldset>`}`;
}
