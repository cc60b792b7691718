// @ts-check
// A figure beside others: its value leads to the views that it counts, its n to all of them.

import { viewsBehind, viewsOf, whichBehind } from "../../core/figures/behind.js";
import { hiddenText, isShown } from "../../core/figures/figures.js";
import { countText, NONE, valueText } from "../../core/words/format.js";
import { metricOf } from "../data/known.js";
import { html } from "../html.js";
import { Link } from "../place.js";

/** What a figure is of; without a range it is of that of the page. @typedef {{customer: string, filters: string[], range?: string, from?: string, to?: string}} Within */

/** @param {{metric: string, figure: {value: number | null, n: number} | null | undefined, within: Within, unit?: string, hasN?: boolean, between?: string}} props - `unit`: of a share of the metric's bad views. `between`: what stands before the n. */
export function Figure({ metric, figure, within, unit = metricOf(metric).unit, hasN = true, between = " " }) {
  if (!figure) return NONE;
  // A share of bad views is no percentile, also where they are bad by the value of one.
  const judged = unit === metricOf(metric).unit ? metric : "";
  const text = isShown(judged, figure) ? valueText(unit, figure.value) : NONE;
  const which = whichBehind(metric);
  const hidden = hiddenText(judged, figure);
  return html`${text === NONE ? html`<span title=${hidden}>${text}${hidden && html`<span class="unseen"> ${hidden}</span>`}</span>` : html`<${Link} to=${{ ...within, ...viewsBehind(metric, within) }} title=${`the views behind it${which && `: ${which}`}`}>${text}<//>`}${hasN && html`${between}<${Counted} n=${figure.n} to=${{ ...within, ...viewsOf(metric, within) }} />`}`;
}

/** The n of a figure, which leads to its views. @param {{n: number, to: Partial<import("../../core/place/place.js").Place>}} props */
export const Counted = ({ n, to }) => html`<span class="note">n ${n > 0 ? html`<${Link} to=${to} title="all views on which it rests">${countText(n)}<//>` : countText(n)}</span>`;
