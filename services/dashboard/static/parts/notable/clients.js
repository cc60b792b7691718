// @ts-check
// Where a percentile of start-up times holds several clients, whose clocks begin at different moments: says so, and shows each alone.

import { countText, NONE, valueText } from "../../core/words/format.js";
import { labelText } from "../../core/words/labels.js";
import { hiddenText, isShown } from "../../core/figures/figures.js";
import { useQuestion } from "../data/asking.js";
import { html } from "../html.js";
import { metricOf } from "../data/known.js";
import { narrowTo } from "../narrowing/controls.js";
import { Link } from "../place.js";

/** Metrics whose clocks begin where the client's does. */
const isOfStart = (/** @type {string} */ metric) => /startup_ms_p\d\d$/.test(metric);

/** @param {{metrics: string[], within: import("../../core/place/place.js").Place}} props */
export function MixedClients({ metrics, within }) {
  const own = metrics.filter(isOfStart);
  // Percentiles cost more than a count, which is a sum for whole hours without a filter: most have one client.
  const clients = useQuestion(own.length ? "/v1/breakdown" : null, within, { by: "source", limit: 10 }, 30_000);
  const areMixed = (clients.data?.groups ?? []).length > 1;
  const found = useQuestion(areMixed ? "/v1/breakdown" : null, within, { by: "source", metrics: own.join(","), limit: 10 }, 30_000);
  const groups = (found.data?.groups ?? []).filter((/** @type {any} */ one) => own.some((name) => one.metrics[name].n));
  if (groups.length < 2) return null;
  return html`<div class="notice" id="mixed-clients" role="status">
    <p>Start-up times of ${groups.length} clients are in this figure, and their clocks begin at different moments. Each alone:</p>
    <ul>${groups.map((/** @type {any} */ one) => html`<li key=${one.labels[0]}><${Link} to=${narrowTo("source", one.key[0])}>${labelText(one.labels[0])}<//>
      ${own.map((name) => html` · ${metricOf(name).title} ${isShown(name, one.metrics[name]) ? html`<b>${valueText(metricOf(name).unit, one.metrics[name].value)}</b>` : hiddenText(name, one.metrics[name]) || NONE} <span class="note">n ${countText(one.metrics[name].n)}</span>`)}
    </li>`)}</ul>
  </div>`;
}
