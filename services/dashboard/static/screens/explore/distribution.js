// @ts-check
// The distribution of Explore: how many views have a value within each of its bins, beside those of another range.

import { distributedBy, viewsOfBin, viewsWith } from "../../core/figures/behind.js";
import { quantileMin } from "../../core/figures/figures.js";
import { binsBeside } from "../../core/answers/series.js";
import { countText, NONE, shareText, valueText } from "../../core/words/format.js";
import { Answered, useQuestion } from "../../parts/data/asking.js";
import { html } from "../../parts/html.js";
import { Link, place } from "../../parts/place.js";

/** The best score. */
const SCORE_MAX = 100;

/** Of the field of a view that the metric is made of; only measured values have a distribution. @param {{metric: string, compare: string}} props */
export function Distribution({ metric, compare }) {
  const field = distributedBy(metric);
  const found = useQuestion(field === null ? null : "/v1/distribution", place.value, { of: field ?? "", compare }, 30_000);
  if (field === null) return html`<p class="empty">This metric has no distribution: choose a start-up time, a duration, a latency, a bitrate or a score.</p>`;
  return html`<${Answered} of=${found} height=${280} draw=${(/** @type {any} */ data) => html`<${Distributed} data=${data} before=${data.compared ?? null} />`} />`;
}

/** What a bin ends with: nothing where no value is larger. @param {{unit: string}} data @param {{to_value: number}} bin */
const endText = ({ unit }, { to_value }) => (unit === "score" && to_value > SCORE_MAX ? NONE : valueText(unit, to_value));

/** Counts of views, and beside another range shares of them: the two need not have as many. @param {{data: any, before: any}} props */
function Distributed({ data, before }) {
  if (!data.n && !before?.n) return html`<p class="empty">${data.unknown ? `No view in this range has a value: ${countText(data.unknown)} have none.` : "No view in this range."}</p>`;
  const unknown = data.unknown ? html`<${Link} to=${viewsWith(data.of, place.value, false)} title="the views behind it">${countText(data.unknown)}<//>` : countText(0);
  const bins = binsBeside(data.bins, before?.bins ?? []);
  const [n, before_n] = [Math.max(1, data.n), Math.max(1, before?.n ?? 0)];
  const most = Math.max(...bins.map((bin) => Math.max(bin.n / n, bin.before / before_n)));
  const width = (/** @type {number} */ share) => ({ width: `${(100 * share) / most}%` });
  const ranks = Object.entries(data.quantiles).filter(([name]) => Math.max(data.n, before?.n ?? 0) >= quantileMin(name));
  const quantile = (/** @type {any} */ one, /** @type {string} */ name) => (one.n >= quantileMin(name) ? valueText(data.unit, one.quantiles[name]) : NONE);
  return html`<p class="note" id="distribution-of">n <${Link} to=${viewsWith(data.of, place.value, true)} title="all views on which it rests">${countText(data.n)}<//>${before && `, before ${countText(before.n)}`} · ${unknown} views without a value${data.unit !== "score" && " · quantiles within 1 %"}</p>
    <ul class="quantiles">${ranks.map(([name]) => html`<li><b>${quantile(data, name)}</b> <span class="note">${name}${before && `, before ${quantile(before, name)}`}</span></li>`)}</ul>
    ${before && html`<p class="note">A bar is the share of the range's views; its dashed outline is that of the range that is compared with.</p>`}
    <div class="scroll plain" tabindex="0" role="region" aria-label="Views by value"><table class="bins" id="bins"><thead><tr><th scope="col">From</th><th scope="col">To below</th><th scope="col">Views</th>${before && html`<th scope="col">Before</th>`}</tr></thead>
      <tbody>${bins.map((bin) => html`<tr key=${bin.from_value}><th scope="row">${valueText(data.unit, bin.from_value)}</th><td>${endText(data, bin)}</td>
        <td class="bar-cell"><span class="bar" style=${width(bin.n / n)}></span>${before && html`<span class="bar before" style=${width(bin.before / before_n)}></span>`}<span class="count">${bin.n ? html`<${Link} to=${viewsOfBin(data.of, bin, place.value)} title="its views">${countText(bin.n)}<//>` : countText(bin.n)}${before && ` · ${shareText(bin.n / n)}`}</span></td>
        ${before && html`<td>${countText(bin.before)} · ${shareText(bin.before / before_n)}</td>`}</tr>`)}</tbody></table></div>`;
}
