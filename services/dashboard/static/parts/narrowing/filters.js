// @ts-check
// Filters as chips: all of them hold. A chip may be turned into its opposite, or given an alternative.

import { useSignal } from "@preact/signals";
import { both, either, filterText, inverted } from "../../core/place/filters.js";
import { html } from "../html.js";
import { titleOf } from "../data/known.js";
import { later } from "../later.js";
import { go, place } from "../place.js";

const NewFilter = later(() => import("./new_filter.js"), 60);

export function Filters() {
  /** The chip whose menu is open, and what is being added: a filter, an alternative to the chip, or one more condition of its last alternative. */
  const chosen = useSignal("");
  const adding = useSignal(/** @type {"" | "filter" | "or" | "and"} */ (""));
  const { filters } = place.value;
  const close = () => {
    chosen.value = "";
    adding.value = "";
    // What had the focus may be gone with it.
    requestAnimationFrame(() => document.activeElement === document.body && document.getElementById("add-filter")?.focus());
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
  const add = (/** @type {string} */ made) => (adding.value === "filter" ? (go({ filters: [...filters, made] }), close()) : put(chosen.value, (adding.value === "or" ? either : both)(chosen.value, made)));
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
      <button type="button" id="and-filter" title="with the condition before it, within this filter" aria-expanded=${adding.value === "and"} onClick=${() => { adding.value = adding.value === "and" ? "" : "and"; }}>and …</button>
    </span>`}
    ${(adding.value === "filter" || (adding.value !== "" && open)) && html`<${NewFilter} key=${adding.value} joint=${adding.value} add=${add} within=${adding.value === "or" ? filters.filter((one) => one !== open) : filters} />`}
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
