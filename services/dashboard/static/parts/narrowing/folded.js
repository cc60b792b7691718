// @ts-check
// Controls that a phone shows as one line, which says what is chosen and unfolds them. On a wider screen they are open.

import { useSignal } from "@preact/signals";
import { html } from "../html.js";

/** @param {{id: string, label: string, summary: string, children?: any}} props - `label`: what these controls are about. */
export function Folded({ id, label, summary, children }) {
  const isOpen = useSignal(false);
  return html`<button type="button" class="unfold" aria-expanded=${isOpen.value} aria-controls=${id} onClick=${() => { isOpen.value = !isOpen.value; }}>
      <span class="unseen">${label}: </span><span class="chosen">${summary}</span><span aria-hidden="true">${isOpen.value ? "▴" : "▾"}</span>
    </button>
    <div class=${isOpen.value ? "controls" : "controls is-folded"} id=${id} role="region" aria-label=${label}>${children}</div>`;
}
