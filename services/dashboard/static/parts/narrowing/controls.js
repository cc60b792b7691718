// @ts-check
// What every screen is narrowed by: customer, range with its zone, and filters as chips.

import { useSignal } from "@preact/signals";
import { filterText, narrowed } from "../../core/place/filters.js";
import { LENGTHS, localText, msOf, offsetText, placeText, rangeText, resolved, sameOnClocks } from "../../core/place/ranges.js";
import { zoneOf } from "../../core/place/place.js";
import { Field } from "../inputs/field.js";
import { Filters } from "./filters.js";
import { Folded } from "./folded.js";
import { Freshness } from "./freshness.js";
import { presentNow_ms } from "../data/asking.js";
import { html } from "../html.js";
import { customers, titleOf } from "../data/known.js";
import { go, place } from "../place.js";

/** Hundreds: they are listed once somebody is about to choose. */
const zones = () => ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];
/** More are typed with suggestions instead of chosen from a list. */
const LISTED_MAX = 40;
/** While a year is typed, 2026 is 2, 20 and 202 first. */
const EARLIEST = "1970-01-01T00:00";

/** @param {{hasRange?: boolean, hasFilters?: boolean}} props */
export function Controls({ hasRange = true, hasFilters = true }) {
  return html`<${Folded} id="narrowing" label="Customer, range and filters" summary=${summaryOf(hasRange, hasFilters)}>
    <${Customer} />
    ${hasRange && html`<${Range} />`}
    <${Zone} />
    ${hasFilters && html`<${Filters} />`}
  <//>
  ${hasRange && html`<${Freshness} />`}`;
}

/** What is chosen, on one line. @param {boolean} hasRange @param {boolean} hasFilters */
function summaryOf(hasRange, hasFilters) {
  const { customer, range, tz, filters } = place.value;
  const own = hasRange && !range ? resolved(place.value, presentNow_ms()) : null;
  const within = own ? rangeText(own, tz) : hasRange ? LENGTHS[range]?.title : "";
  return [customer === "*" ? "All customers" : customer, within, ...(hasFilters ? filters.map((text) => filterText(text, titleOf, tz)) : []), tz].filter(Boolean).join(" · ");
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
    const found = resolved(place.value, presentNow_ms());
    if (!found) return undefined;
    const { tz } = place.value;
    return go({ range: "", from: placeText(found.from_ms, tz), to: placeText(found.to_ms, tz) });
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
  const twice = at_ms === null ? [] : sameOnClocks(at_ms, tz);
  return html`<label class="pick">${title}
    <${Field} type="datetime-local" id=${name} min=${EARLIEST} value=${at_ms === null ? "" : localText(at_ms, tz)} onChange=${choose} />
  </label>${twice.length > 1 && html`<select id=${`${name}-offset`} aria-label=${`${title}: this hour comes twice`} title="This hour comes twice" value=${String(at_ms)} onChange=${(/** @type {any} */ event) => go({ [name]: placeText(Number(event.target.value), tz), range: "" })}>
    ${twice.map((one) => html`<option value=${String(one)}>UTC${offsetText(one, tz)}</option>`)}
  </select>`}`;
}

function Zone() {
  const { tz } = place.value;
  const isChosen = useSignal(false);
  const choose = (/** @type {any} */ event) => {
    const named = zoneOf(event.target.value);
    if (named) go({ tz: named });
    event.target.value = named ?? tz;
  };
  return html`<label class="pick">Time zone
    <${Field} id="tz" list="zones" value=${tz} size="16" onChange=${choose} onFocus=${() => (isChosen.value = true)} autocomplete="off" spellcheck=${false} />
    <datalist id="zones">${isChosen.value && zones().map((name) => html`<option value=${name} />`)}</datalist>
  </label>`;
}

/**
 * Narrows the place to one value of a dimension.
 * @param {string} dimension
 * @param {string | null} value
 */
export const narrowTo = (dimension, value) =>
  dimension === "customer" && value !== null ? { customer: value } : { filters: narrowed(place.value.filters, dimension, value) };
