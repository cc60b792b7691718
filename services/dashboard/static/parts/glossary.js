// @ts-check
// A metric's name, and behind it what it means: the table of docs/view.md.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { termOf } from "../core/words/glossary_lookup.js";
import { html } from "./html.js";
import { useOutside } from "./menu.js";
import { capital, metricOf } from "./data/known.js";

/** A metric of the API. @param {{name: string}} props */
export function MetricName({ name }) {
  const metric = metricOf(name);
  return html`<${Term} title=${capital(metric.title)} term=${metric.title} formula=${metric.formula} />`;
}

/** @param {{title: string, term: string, formula?: string}} props - `term` is a name of the table. */
export function Term({ title, term, formula = "" }) {
  const isOpen = useSignal(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useOutside(isOpen.value, box, () => {
    isOpen.value = false;
  });
  const found = termOf(term);
  if (!found && !formula) return html`${title}`;
  const close = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") isOpen.value = false;
  };
  return html`<span class="term" ref=${box} onKeyDown=${close}>${title}
    <button type="button" class="what" aria-expanded=${isOpen.value} aria-label=${`What ${title} means`} onClick=${() => { isOpen.value = !isOpen.value; }}>?</button>
    ${isOpen.value && html`<span class="meaning" role="note">
      <span><b>Formula</b> ${formula || found?.formula}</span>
      ${found && html`<span><b>Source</b> ${found.source}</span><span><b>Clients</b> ${found.clients}</span>
        <span><b>Beside Mux</b> ${found.mux}</span><span><b>Beside CTA</b> ${found.cta}</span>`}
    </span>`}
  </span>`;
}
