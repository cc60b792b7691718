// @ts-check
// Figures of a range beside each other: the name of each leads to its course, its value to the views that it counts, its n to all of them.

import { viewsBehind, viewsOf, whichBehind } from "../../core/figures/behind.js";
import { hiddenText, isShown } from "../../core/figures/figures.js";
import { countText, NONE, valueText } from "../../core/words/format.js";
import { MetricMeaning } from "./glossary.js";
import { html } from "../html.js";
import { capital, metricOf } from "../data/known.js";
import { classOf } from "../notable/thresholds.js";
import { Link, place } from "../place.js";

/**
 * @param {{id: string, names: string[], metrics: Record<string, any>, of: Partial<import("../../core/place/place.js").Place>, aside?: (name: string) => string}} props
 *   `of`: what of the place the figures are of. `aside`: the text behind the n of a figure.
 */
export const Facts = ({ id, names, metrics, of, aside }) => html`<ul class="facts" id=${id}>${names.map((name) => html`<${Fact} key=${name} name=${name} figure=${metrics[name]} of=${of} aside=${aside?.(name)} />`)}</ul>`;

/** @param {{name: string, figure: any, of: Partial<import("../../core/place/place.js").Place>, aside?: string}} props */
function Fact({ name, figure, of, aside }) {
  const { unit, title } = metricOf(name);
  const hidden = hiddenText(name, figure);
  const shown = isShown(name, figure) ? valueText(unit, figure.value) : NONE;
  const within = { customer: of.customer ?? place.value.customer, filters: of.filters ?? place.value.filters };
  return html`<li>
    <span class="note"><${Link} to=${{ ...of, screen: "explore", more: { metrics: name } }}>${capital(title)}<//> <${MetricMeaning} name=${name} /></span>
    <b class=${classOf(name, figure)}>${figure.n > 0 && shown !== NONE ? html`<${Link} to=${{ ...of, ...viewsBehind(name, within) }} title=${`the views behind it: ${whichBehind(name)}`}>${shown}<//>` : shown}</b>${hidden && html`<span class="note">${hidden}</span>`}
    <span class="note"><${Link} to=${{ ...of, ...viewsOf(name, within) }} title="all views on which it rests">n ${countText(figure.n)}<//>${aside && ` · ${aside}`}</span>
  </li>`;
}
