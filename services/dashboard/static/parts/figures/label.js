// @ts-check
// A value of a client as a label: a long one has three lines at most, and all of it in its tooltip.

import { LONG, labelText } from "../../core/words/labels.js";
import { html } from "../html.js";

/** @param {{text: string}} props */
export function Label({ text }) {
  const words = labelText(text);
  return words.length > LONG ? html`<span class="label" title=${words}>${words}</span>` : words;
}

/** Texts from so many characters on are folded. */
const FOLDED = 160;

/** Texts below a label: long ones are folded to three lines, and a click shows all. @param {{texts: string[]}} props */
export function Texts({ texts }) {
  const words = texts.map(labelText).join(" · ");
  if (words.length < FOLDED) return html`<span class="texts">${words}</span>`;
  return html`<details class="texts"><summary><span class="fold">${words}</span></summary></details>`;
}
