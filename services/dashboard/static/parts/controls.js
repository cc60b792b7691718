// @ts-check
// What every screen is narrowed by: customer, range with its zone, and filters as chips.

import { useSignal } from "@preact/signals";
import { chipOf, chipText, filterOf, narrowed } from "../core/filters.js";
import { LENGTHS, localText, msOf, resolved } from "../core/ranges.js";
import { isZone } from "../core/place.js";
import { useQuestion } from "./asking.js";
import { Field } from "./field.js";
import { html } from "./html.js";
import { capital, customers, dimensions, titleOf } from "./known.js";
import { go, place } from "./place.js";

const ZONES = Intl.supportedValuesOf ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC"];
/** More are typed with suggestions instead of chosen from a list. */
const LISTED_MAX = 40;
/** While a year is typed, 2026 is 2, 20 and 202 first. */
const EARLIEST = "1970-01-01T00:00";

export function Controls({ hasRange = true }) {
  return html`<div class="controls" role="region" aria-label="Customer, range and filters">
    <${Customer} />
    ${hasRange && html`<${Range} />`}
    <${Zone} />
    <${Filters} />
  </div>`;
}

function Customer() {
  const { customer } = place.value;
  const known = [...new Set([...customers.value, ...(customer === "*" ? [] : [customer])])].sort();
  if (known.length > LISTED_MAX) return html`<${LongCustomer} known=${known} />`;
  return html`<label class="pick">Customer
    <select id="customer" value=${customer} onChange=${(/** @type {any} */ e) => go({ customer: e.target.value })}>
      <option value="*">All customers</option>
      ${known.map((name) => html`<option value=${name}>${name}</option>`)}
    </select>
  </label>`;
}

/** @param {{known: string[]}} props */
function LongCustomer({ known }) {
  const { customer } = place.value;
  const choose = (/** @type {any} */ event) => go({ customer: event.target.value.trim() || "*" });
  return html`<label class="pick">Customer
    <${Field} id="customer" list="customers" value=${customer === "*" ? "" : customer} placeholder="All customers" size="18" maxlength="64" onChange=${choose} autocomplete="off" />
    <datalist id="customers">${known.map((name) => html`<option value=${name} />`)}</datalist>
  </label>`;
}

function Range() {
  const { range } = place.value;
  const choose = (/** @type {any} */ event) => {
    if (event.target.value !== "own") return go({ range: event.target.value });
    const found = resolved(place.value, Date.now());
    if (!found) return undefined;
    const { tz } = place.value;
    return go({ range: "", from: localText(found.from_ms, tz), to: localText(found.to_ms, tz) });
  };
  return html`<span class="range">
    <label class="pick">Range
      <select id="range" value=${range || "own"} onChange=${choose}>
        ${Object.entries(LENGTHS).map(([name, { title }]) => html`<option value=${name}>${title}</option>`)}
        <option value="own">From … to …</option>
      </select>
    </label>
    ${!range && html`<${Moment} name="from" title="from" /><${Moment} name="to" title="to" />`}
  </span>`;
}

/** @param {{name: "from" | "to", title: string}} props */
function Moment({ name, title }) {
  const { tz } = place.value;
  const at_ms = msOf(place.value[name], tz);
  const choose = (/** @type {any} */ event) => event.target.value && event.target.validity.valid && go({ [name]: event.target.value, range: "" });
  return html`<label class="pick">${title}
    <${Field} type="datetime-local" id=${name} min=${EARLIEST} value=${at_ms === null ? "" : localText(at_ms, tz)} onChange=${choose} />
  </label>`;
}

function Zone() {
  const { tz } = place.value;
  const choose = (/** @type {any} */ event) => {
    if (isZone(event.target.value)) go({ tz: event.target.value });
    else event.target.value = tz;
  };
  return html`<label class="pick">Time zone
    <${Field} id="tz" list="zones" value=${tz} size="16" onChange=${choose} autocomplete="off" spellcheck=${false} />
    <datalist id="zones">${ZONES.map((name) => html`<option value=${name} />`)}</datalist>
  </label>`;
}

function Filters() {
  const isOpen = useSignal(false);
  const { filters } = place.value;
  const without = (/** @type {string} */ text) => go({ filters: filters.filter((one) => one !== text) });
  return html`<span class="filters" role="group" aria-label="Filters">
    ${filters.map((text) => {
      const words = chipText(chipOf(text), titleOf);
      return html`<span class="chip">${words}
        <button type="button" aria-label=${`Remove the filter ${words}`} onClick=${() => without(text)}>×</button>
      </span>`;
    })}
    <button type="button" id="add-filter" aria-expanded=${isOpen.value} onClick=${() => { isOpen.value = !isOpen.value; }}>+ Filter</button>
    ${isOpen.value && html`<${NewFilter} done=${() => { isOpen.value = false; }} />`}
  </span>`;
}

/** @param {{done: () => void}} props */
function NewFilter({ done }) {
  const dimension = useSignal("cdn");
  const isNot = useSignal(false);
  const custom = useSignal("");
  const name = dimension.value === "custom." ? `custom.${custom.value}` : dimension.value;
  const add = (/** @type {any} */ event) => {
    event.preventDefault();
    const typed = new FormData(event.target).get("value")?.toString().trim() ?? "";
    if (!typed || name === "custom.") return;
    const values = typed.split("|").map((one) => (one.trim() === "(unknown)" ? null : one.trim()));
    go({ filters: [...place.value.filters, filterOf(name, values, isNot.value)] });
    done();
  };
  return html`<form class="new-filter" id="new-filter" onSubmit=${add} onKeyDown=${(/** @type {any} */ e) => e.key === "Escape" && done()}>
    <label>Dimension <${DimensionSelect} id="filter-dimension" value=${dimension.value} choose=${(/** @type {string} */ v) => { dimension.value = v; }} hasCustom /></label>
    ${dimension.value === "custom." && html`<label>Name <input value=${custom.value} onInput=${(/** @type {any} */ e) => { custom.value = e.target.value; }} size="12" maxlength="100" required /></label>`}
    <label>Condition <select value=${isNot.value ? "not" : "is"} onChange=${(/** @type {any} */ e) => { isNot.value = e.target.value === "not"; }}>
      <option value="is">is</option><option value="not">is not</option>
    </select></label>
    <label>Value <input name="value" id="filter-value" list="filter-values" required maxlength="2000" autocomplete="off" placeholder="a value, or several: a | b" /></label>
    ${name !== "custom." && html`<${Values} dimension=${name} />`}
    <button type="submit">Add</button>
  </form>`;
}

/** The values of a dimension in the range, those with the most views first. @param {{dimension: string}} props */
function Values({ dimension }) {
  const found = useQuestion("/v1/breakdown", place.value, { by: dimension, limit: 100 });
  return html`<datalist id="filter-values">
    ${(found.data?.groups ?? []).filter((/** @type {any} */ one) => one.kind !== "other").map((/** @type {any} */ one) => html`<option value=${one.labels[0]}>${one.n} views</option>`)}
  </datalist>`;
}

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

/**
 * Narrows the place to one value of a dimension.
 * @param {string} dimension
 * @param {string | null} value
 */
export const narrowTo = (dimension, value) =>
  dimension === "customer" && value !== null ? { customer: value } : { filters: narrowed(place.value.filters, dimension, value) };
