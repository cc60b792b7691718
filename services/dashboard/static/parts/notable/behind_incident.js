// @ts-check
// Figures of incidents that lead to their views.

import { baseText } from "../../core/alerting/alerts.js";
import { html } from "../html.js";
import { Link } from "../place.js";

/** Where the views of a figure are; null: it is of no views. @typedef {ReturnType<typeof import("../../core/alerting/views.js").viewsAt>} ViewsAt */

/** A figure that leads to its views. @param {{of: ViewsAt, children?: any}} props */
export const Behind = ({ of, children }) => (of ? html`<${Link} to=${of.value} title=${of.which}>${children}<//>` : children);

/** The n of a figure, which leads to its views. @param {{metric: string, n: number | null, of: ViewsAt}} props */
export function Base({ metric, n, of }) {
  const text = baseText(metric, n);
  return text && of ? html`<${Link} to=${of.n} title="all views on which it rests">${text}<//>` : text;
}
