// @ts-check
// Filters as chips: all of them hold. A chip may be turned into its opposite, or given an alternative.

import { useSignal } from "@preact/signals";
import { either, filterOf, filterText, inverted, typedValues } from "../../core/place/filters.js";
import { countText } from "../../core/words/format.js";
import { useQuestion } from "../data/asking.js";
import { DimensionSelect } from "./dimension_select.js";
import { html } from "../html.js";
import { titleOf } from "../data/known.js";
import { go, place } from "../place.js";

/** Values that are listed to be clicked; all others are typed. */
const LISTED = 20;

export function Filters() {
  /** The chip whose menu is open, and what is being added: a filter, or an alternative to the chip. */
  const chosen = useSignal("");
  const adding = useSignal(/** @type {"" | "filter" | "or"} */ (""));
  const { filters } = place.value;
  const close = () => {
    chosen.value = "";
    adding.value = "";
  };
  const escape = (/** @type {any} */ event) => {
    if (event.key !== "Escape") return;
    // What has the focus goes: what opened it has it then.
    event.currentTarget.querySelector("[aria-expanded=true]")?.focus();
    close();
  };
  const put = (/** @type {string} */ text, /** @type {string} */ by) => {
    go({ filters: filters.map((one) => (one === text ? by : one)).filter(Boolean) });
    close();
  };
  const add = (/** @type {string} */ made) => (adding.value === "or" ? put(chosen.value, either(chosen.value, made)) : (go({ filters: [...filters, made] }), close()));
  const choose = (/** @type {string} */ text) => {
    adding.value = "";
    chosen.value = chosen.value === text ? "" : text;
  };
  const open = filters.includes(chosen.value) ? chosen.value : "";
  return html`<span class="filters" role="group" aria-label="Filters" onKeyDown=${escape}>
    ${filters.map((text, at) => {
      const words = filterText(text, titleOf, place.value.tz);
      return html`${at > 0 && html`<span class="note">and</span>`}<span class="chip"><button type="button" class="chip-text" aria-expanded=${text === open} onClick=${() => choose(text)}>${words}</button>
        <button type="button" aria-label=${`Remove the filter ${words}`} onClick=${() => put(text, "")}>×</button>
      </span>`;
    })}
    <button type="button" id="add-filter" aria-expanded=${adding.value === "filter"} onClick=${() => { chosen.value = ""; adding.value = adding.value ? "" : "filter"; }}>+ Filter</button>
    ${open && wordsIfJson(open) && html`<span class="chip-menu" role="group" aria-label=${`Change the filter ${filterText(open, titleOf, place.value.tz)}`}>
      <button type="button" id="invert-filter" onClick=${() => put(open, inverted(open))}>Turn into: ${wordsIfJson(open)}</button>
      <button type="button" id="or-filter" aria-expanded=${adding.value === "or"} onClick=${() => { adding.value = adding.value === "or" ? "" : "or"; }}>or …</button>
    </span>`}
    ${(adding.value === "filter" || (adding.value === "or" && open)) && html`<${NewFilter} isAlternative=${adding.value === "or"} add=${add} />`}
  </span>`;
}

/** The opposite in words; nothing for what is no JSON: the API says what is wrong. @param {string} text */
function wordsIfJson(text) {
  try {
    return filterText(inverted(text), titleOf, place.value.tz);
  } catch {
    return "";
  }
}

/** @param {{isAlternative: boolean, add: (text: string) => void}} props */
function NewFilter({ isAlternative, add }) {
  const dimension = useSignal("cdn");
  const isNot = useSignal(false);
  const custom = useSignal("");
  const picked = useSignal(/** @type {(string | null)[]} */ ([]));
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
    const known = [...event.target.querySelectorAll("#filter-values option")].map((one) => one.value);
    const values = [...new Set([...picked.value, ...typedValues(typed, known)])];
    if (values.length && name !== "custom.") add(filterOf(name, values, isNot.value));
  };
  return html`<form class="new-filter" id="new-filter" onSubmit=${submit} aria-label=${isAlternative ? "Or where" : "A filter"}>
    <label>${isAlternative ? "Or where" : "Dimension"} <${DimensionSelect} id="filter-dimension" value=${dimension.value} choose=${choose} /></label>
    ${dimension.value === "custom." && html`<label>Name <input value=${custom.value} onInput=${(/** @type {any} */ e) => { custom.value = e.target.value; }} size="12" maxlength="100" required /></label>`}
    <label>Condition <select id="filter-condition" value=${isNot.value ? "not" : "is"} onChange=${(/** @type {any} */ e) => { isNot.value = e.target.value === "not"; }}>
      <option value="is">is</option><option value="not">is not</option>
    </select></label>
    <label>Value <input name="value" id="filter-value" list="filter-values" required=${!picked.value.length} maxlength="2000" autocomplete="off" placeholder="a value, or several: a | b" /></label>
    <button type="submit">Add</button>
    ${name !== "custom." && html`<${Values} dimension=${name} picked=${picked.value} toggle=${toggle} />`}
  </form>`;
}

/** The values of a dimension in the range, those with the most views first. @param {{dimension: string, picked: (string | null)[], toggle: (value: string | null) => void}} props */
function Values({ dimension, picked, toggle }) {
  const found = useQuestion("/v1/breakdown", place.value, { by: dimension, limit: 100 });
  const groups = (found.data?.groups ?? []).filter((/** @type {any} */ one) => one.kind !== "other");
  return html`<datalist id="filter-values">${groups.map((/** @type {any} */ one) => html`<option value=${one.labels[0]}>${one.n} views</option>`)}</datalist>
    ${groups.length > 0 && html`<fieldset class="values" id="filter-listed"><legend class="unseen">Values with the most views</legend>
      ${groups.slice(0, LISTED).map((/** @type {any} */ one) => html`<label key=${one.labels[0]}><input type="checkbox" checked=${picked.includes(one.key[0])} onChange=${() => toggle(one.key[0])} /> ${one.labels[0]} <span class="note">${countText(one.n)}</span></label>`)}
    </fieldset>`}`;
}
