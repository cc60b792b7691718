// @ts-check
// A metric's name, and behind it what it means: the table of docs/view.md.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { metricOf as ofRule, viewMetricOf } from "../../core/alerting/alerts.js";
import { inWords } from "../../core/words/formulas.js";
import { notesOf, termOf } from "../../core/words/glossary_lookup.js";
import { html } from "../html.js";
import { useOutside } from "../inputs/menu.js";
import { capital, metricOf } from "../data/known.js";

/** Of a meaning, px: its width (34rem in the style), and what is left free at the window's edge. */
const WIDTH_MAX = 544;
const EDGE = 16;

/** A metric of the API. @param {{name: string}} props */
export function MetricName({ name }) {
  const metric = metricOf(name);
  return html`<${Term} title=${capital(metric.title)} term=${metric.title} formula=${metric.formula} />`;
}

/** What a metric of the API means, where its name leads somewhere else. @param {{name: string}} props */
export function MetricMeaning({ name }) {
  const metric = metricOf(name);
  return html`<${Meaning} title=${capital(metric.title)} term=${metric.title} formula=${metric.formula} />`;
}

/** What the metric of an alert rule means. One that the table does not have is that of views. @param {{metric: string}} props */
export function RuleMeaning({ metric }) {
  const { title, term = "" } = ofRule(metric);
  return html`<${Meaning} title=${title} term=${term} formula=${term ? "" : metricOf(viewMetricOf(metric)).formula} />`;
}

/** @param {{title: string, term: string, formula?: string}} props - `term` is a name of the table. */
export const Term = ({ title, term, formula = "" }) => html`${title} <${Meaning} title=${title} term=${term} formula=${formula} />`;

/** What a name means, where that leads somewhere else. @param {{title: string, term: string, formula?: string}} props - `term` as of `Term`; `formula`: what no table has. */
export function Meaning({ title, term, formula = "" }) {
  const isOpen = useSignal(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useOutside(isOpen.value, box, () => {
    isOpen.value = false;
  });
  const place = useSignal(/** @type {Record<string, string>} */ ({}));
  // It stands over the page, since a table would cut it; so it goes when the page moves under it.
  useEffect(() => {
    if (!isOpen.value) return undefined;
    const leave = () => {
      isOpen.value = false;
    };
    document.addEventListener("scroll", leave, { capture: true, passive: true });
    return () => document.removeEventListener("scroll", leave, { capture: true });
  }, [isOpen.value]);
  const toggle = (/** @type {any} */ event) => {
    const { left, top, bottom } = event.currentTarget.getBoundingClientRect();
    const width = Math.min(WIDTH_MAX, 0.84 * innerWidth);
    // On the side with more room: below a button at the window's end nobody would see it.
    /** @type {Record<string, string>} */
    const side = top > innerHeight - bottom ? { bottom: `${innerHeight - top + 4}px` } : { top: `${bottom + 4}px` };
    place.value = { left: `${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`, ...side };
    isOpen.value = !isOpen.value;
  };
  const found = termOf(term);
  if (!found && !formula) return null;
  const given = formula || found?.formula || "";
  const words = inWords(given);
  const close = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") isOpen.value = false;
  };
  return html`<span class="term" ref=${box} onKeyDown=${close}>
    <button type="button" class="what" aria-expanded=${isOpen.value} aria-label=${`What ${title} means`} onClick=${toggle}>?</button>
    ${isOpen.value && html`<span class="meaning" role="note" style=${place.value}>
      <span><b>Formula</b> ${words}</span>${words !== given && html`<span class="note"><b>In the API's fields</b> ${given}</span>`}
      ${found && notesOf(found).map(([title, text]) => html`<span key=${title}><b>${title}</b> ${text}</span>`)}
    </span>`}
  </span>`;
}
