// @ts-check
// Integration: "Are my beacons arriving?" Lines to paste, the newest beacons as they come, what was rejected and why, and what is missing.

import { missingOf, READ } from "../core/arriving/arrivals.js";
import { countText, shareText } from "../core/words/format.js";
import { Arriving } from "../parts/arriving/beacons.js";
import { Choose } from "../parts/arriving/choose.js";
import { Paste } from "../parts/arriving/paste.js";
import { Answered, useQuestion } from "../parts/data/asking.js";
import { Controls } from "../parts/narrowing/controls.js";
import { html } from "../parts/html.js";
import { place } from "../parts/place.js";

const VIEWS = 100;

export default function Integration() {
  const { customer } = place.value;
  if (customer === "*") return html`<${Controls} hasRange=${false} hasFilters=${false} /><section aria-labelledby="integration-title"><h2 id="integration-title">Integration</h2><${Choose} /></section>`;
  return html`
    <${Controls} hasRange=${false} hasFilters=${false} />
    <${Arriving} customer=${customer} />
    <${Paste} key=${customer} customer=${customer} />
    <${Missing} />`;
}

/** What finished views of the last hour do not say. */
function Missing() {
  const within = { ...place.value, range: "1h", from: "", to: "", filters: [] };
  const found = useQuestion("/v1/views", within, { columns: READ.join(","), limit: VIEWS }, 10_000);
  return html`<section aria-labelledby="missing-title">
    <div class="section-head"><h2 id="missing-title">What is missing for which figure</h2></div>
    <${Answered} of=${found} height=${200} draw=${(/** @type {any} */ data) => html`<${Fields} rows=${data.views} />`} />
  </section>`;
}

/** @param {{rows: any[]}} props */
function Fields({ rows }) {
  if (!rows.length) return html`<p class="empty" id="none-finished">No view finished in the last hour. A view finishes a minute after its end, or five minutes after its last beacon.</p>`;
  return html`<p class="note">Of the newest ${countText(rows.length)} views of the last hour. What none of their clients can report is not listed.</p>
    <div class="scroll plain" tabindex="0" role="region" aria-label="What is missing"><table id="missing">
      <thead><tr><th scope="col">Field</th><th scope="col">Views that have it</th><th scope="col" class="text">Without it</th></tr></thead>
      <tbody>${missingOf(rows).map((one) => html`<tr key=${one.name}><th scope="row">${one.title}</th><td class=${one.has ? "" : "is-bad"}>${shareText(one.has / one.of)} <span class="note">n ${countText(one.of)}</span></td><td class="text">${one.has === one.of ? "" : one.loses}</td></tr>`)}</tbody>
    </table></div>`;
}
