// @ts-check
// Retention of a title: which share of its views came to each part of the video, and which parts were watched again.

import { useSignal } from "@preact/signals";
import { viewsReached } from "../../core/figures/behind.js";
import { playheadText, sinceText } from "../../core/view/timeline.js";
import { countText, shareText } from "../../core/words/format.js";
import { Term } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { Link } from "../../parts/place.js";

/** From top to bottom, as the axis of values has them. */
const SHARES = [1, 0.75, 0.5, 0.25, 0];
/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** Whether those who played a part played it more than once. @param {any} part */
const isAgain = (part) => part.views > 0 && part.plays > 1.2 * part.views;

/** @param {number} some @param {number} all */
const share = (some, all) => (all ? some / all : null);

/** The name of the curve by parts, with what it means. */
const Kept = () => html`<h3 id="retention-title"><${Term} title="Retention" term="" formula="views whose farthest moment lies in a part or behind it; plays of a part are the stretches of playing that touch it" /></h3>`;

/** @param {{of: any, within: {customer: string, filters: string[]}}} props - `within`: what of the place the title's views are. */
export function Retention({ of, within }) {
  if (!of.reached_n && !of.n) return html`<${Kept} /><p class="empty">No view says which parts it played.</p>`;
  const end_ms = of.parts.at(-1)?.to_ms ?? 0;
  return html`<${Kept} /><p class="note">n <${Link} to=${viewsReached(0, within)} title="all views on which it rests">${countText(of.reached_n)}<//> views say how far they came, ${countText(of.n)} which parts they played${of.is_sampled ? "; of the newest views" : ""}</p>
    ${of.parts.length > 0 && html`<${Bars} of=${of} />
    <div class="retention-axis note" aria-hidden="true">${[0, 0.25, 0.5, 0.75, 1].map((at) => html`<span>${sinceText(Math.round((at * end_ms) / 1_000))}</span>`)}</div>`}
    <p class="note">Share of the views that came to each part of the video, of those that say how far they came.${of.parts.some(isAgain) ? " Amber parts were watched again." : ""}</p>
    ${of.parts.length > 0 && html`<${Parts} of=${of} within=${within} />`}`;
}

/** Bars with their axis of shares. The pointer, or the arrow keys, read each of them. @param {{of: any}} props */
function Bars({ of }) {
  const chosen = useSignal(/** @type {number | null} */ (null));
  const { parts } = of;
  const at = (/** @type {any} */ event) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    chosen.value = Math.max(0, Math.min(parts.length - 1, Math.floor(((event.clientX - left) / width) * parts.length)));
  };
  const key = (/** @type {any} */ event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const from = chosen.value ?? (step < 0 ? parts.length : -1);
    chosen.value = Math.max(0, Math.min(parts.length - 1, from + step));
  };
  const part = chosen.value === null ? null : parts[chosen.value];
  return html`<div class="retention-plot">
      <div class="retention-values note" aria-hidden="true">${SHARES.map((one) => html`<span>${100 * one}%</span>`)}</div>
      <div class="retention" tabindex="0" role="img" aria-describedby="retention-at" aria-label=${`${parts.length} parts of the video. Arrow keys read each of them; their figures are in the table below too`} onPointerMove=${at} onPointerDown=${at} onPointerLeave=${() => { chosen.value = null; }} onKeyDown=${key}>
        ${parts.map((/** @type {any} */ one, /** @type {number} */ number) => html`<span style=${{ height: `${100 * (share(one.reached, of.reached_n) ?? 0)}%` }} class=${isAgain(one) ? "again" : ""} data-chosen=${number === chosen.value ? "true" : undefined}></span>`)}
      </div>
    </div>
    <p class="note" id="retention-at" role="status">${part ? partText(part, of) : "Point at a part, or read them by arrow keys."}</p>`;
}

/** @param {any} part @param {any} of */
function partText(part, of) {
  const again = isAgain(part) ? ", watched again" : "";
  return `${playheadText(part.from_ms)} – ${playheadText(part.to_ms)}: ${shareText(share(part.reached, of.reached_n))} came so far (${countText(part.reached)} of ${countText(of.reached_n)}), ${shareText(share(part.views, of.n))} played it (${countText(part.views)} of ${countText(of.n)}), ${countText(part.plays)} plays${again}`;
}

/** What the bars show, in figures. No filter says which views played a part. @param {{of: any, within: {customer: string, filters: string[]}}} props */
function Parts({ of, within }) {
  const isOpen = useSignal(false);
  return html`<details id="parts" onToggle=${(/** @type {any} */ e) => { isOpen.value = e.target.open; }}><summary>Every part in figures</summary>
    ${isOpen.value && html`<div class="scroll plain" tabindex="0" role="region" aria-label="Every part in figures"><table class="bins">
      <thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">Came so far</th><th scope="col">Played it</th><th scope="col">Plays</th></tr></thead>
      <tbody>${of.parts.map((/** @type {any} */ part) => html`<tr key=${part.from_ms}><th scope="row">${playheadText(part.from_ms)}</th><td>${playheadText(part.to_ms)}</td><td>${part.reached ? html`<${Link} to=${viewsReached(part.from_ms, within)} title="the views that came so far">${countText(part.reached)}<//>` : countText(part.reached)} <span class="note">${shareText(share(part.reached, of.reached_n))}</span></td><td>${countText(part.views)} <span class="note">${shareText(share(part.views, of.n))}</span></td>
        <td>${countText(part.plays)}${isAgain(part) && html` <span class="tag">again</span>`}</td></tr>`)}</tbody></table></div>`}
  </details>`;
}
