// @ts-check
// "Are my beacons arriving?": the newest beacons of a customer as they come, and what was rejected and why.

import { adviceOf, countedText, verdictOf } from "../../core/arriving/arrivals.js";
import { momentText } from "../../core/place/ranges.js";
import { ageText, countText } from "../../core/words/format.js";
import { Answered, serverNow_ms, useFetched } from "../data/asking.js";
import { may } from "../data/session.js";
import { html } from "../html.js";
import { Link, place } from "../place.js";

const AGAIN_MS = 3_000;

/** @param {{customer: string}} props */
export function Arriving({ customer }) {
  const { under } = place.value.more;
  const address = `/v1/arrivals?${new URLSearchParams({ customer, ...(under && { key: under }) })}`;
  const found = useFetched(address, () => address, AGAIN_MS);
  return html`<section aria-labelledby="arriving-title">
    <div class="section-head"><h2 id="arriving-title">Are my beacons arriving?</h2></div>
    <${Answered} of=${found} height=${120} draw=${(/** @type {any} */ data) => html`<${Arrivals} data=${data} customer=${customer} now_ms=${serverNow_ms({ server_ms: data.now_ms, came_ms: found.came_ms })} />`} />
  </section>`;
}

/** @param {{data: any, customer: string, now_ms: number}} props - `now_ms`: by the server's clock, as the times of beacons are. */
function Arrivals({ data, customer, now_ms }) {
  const verdict = verdictOf(data, now_ms, place.value.more.under);
  return html`
    <p class="status" id="verdict" data-level=${verdict.level} role="status"><span class="dot" aria-hidden="true"></span>${verdict.text}</p>
    ${verdict.advice && html`<p class="note" id="verdict-advice">${verdict.advice}</p>`}
    <p class="note">${countedText(data)}</p>
    ${may("read_metrics") && html`<p class="note" id="beyond-limits">Input beyond a limit is answered with status 429, to Mux players 503, and is not listed here: see the <a href=${`/limits?customer=${encodeURIComponent(customer)}`}>limits</a>.</p>`}
    ${data.keys.length > 0 && html`<${Keys} keys=${data.keys} now_ms=${now_ms} />`}
    ${data.beacons.length > 0 && html`<${Beacons} beacons=${data.beacons} />`}
    ${data.rejected.length > 0 && html`<h3>Rejected</h3><${Rejected} id="rejected" rejected=${data.rejected} />`}
    ${data.nobodys?.length > 0 && html`<h3>Input that names no customer</h3><p class="note">Seen by those alone who run the installation: a wrong write key ends here.</p><${Rejected} id="nobodys" rejected=${data.nobodys} hasKeys />`}`;
}

/** The write keys that beacons came under: one of them can be looked at alone. @param {{keys: any[], now_ms: number}} props */
function Keys({ keys, now_ms }) {
  const { under } = place.value.more;
  return html`<ul class="recent" id="arrived-keys" aria-label="Write keys">${keys.map((one) => html`<li key=${one.key}>
      <${Link} to=${{ more: { under: one.key === under ? "" : one.key } }} aria-current=${one.key === under ? "true" : undefined}><code>${one.key}</code><//> <span class="note">${countText(one.beacons_n)} ${one.beacons_n === 1 ? "beacon" : "beacons"}, the newest ${ageText(Math.max(0, now_ms - one.newest_ms))} ago</span>
    </li>`)}${under && html`<li><${Link} to=${{ more: { under: "" } }}>All write keys<//></li>`}</ul>`;
}

/** @param {{beacons: any[]}} props */
function Beacons({ beacons }) {
  const { customer, tz } = place.value;
  return html`<div class="scroll short" tabindex="0" role="region" aria-label="The newest beacons">
    <table id="beacons">
      <thead><tr><th scope="col">Came at</th><th scope="col" class="text">Event</th><th scope="col" class="text">Client's own name</th><th scope="col" class="text">View</th><th scope="col" class="text">Write key</th><th scope="col">Number</th><th scope="col" class="text">Client</th><th scope="col" class="text">Browser</th><th scope="col" class="text">Country</th><th scope="col">Fields</th></tr></thead>
      <tbody>${beacons.map((one) => html`<tr key=${`${one.view_id}/${one.appended_ms}/${one.seq}/${one.source_event}`}>
        <th scope="row">${momentText(one.appended_ms, tz, { seconds: true })}</th><td class="text">${one.event}</td><td class="text">${one.source_event}</td>
        <td class="text"><${Link} to=${{ screen: "view", customer, more: { view: one.view_id } }}>${one.view_id.slice(0, 12)}<//></td><td class="text"><code>${one.write_key.slice(0, 12)}</code></td><td>${one.seq ?? "–"}</td><td class="text">${one.source}</td><td class="text">${one.browser ?? "–"}</td><td class="text">${one.country ?? "–"}</td>
        <td><details class="where"><summary>${one.fields.length}</summary><span class="note">${one.fields.join(", ")}</span></details></td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

/** @param {{id: string, rejected: any[], hasKeys?: boolean}} props - `hasKeys`: they came under write keys that are no customer's. */
function Rejected({ id, rejected, hasKeys = false }) {
  const { tz } = place.value;
  return html`<div class="scroll short" tabindex="0" role="region" aria-label="What was rejected">
    <table id=${id}>
      <thead><tr><th scope="col">Came at</th>${hasKeys && html`<th scope="col" class="text">Write key</th>`}<th scope="col" class="text">Why</th><th scope="col" class="text">Where</th><th scope="col" class="text">What to do</th><th scope="col" class="text">Its beginning</th></tr></thead>
      <tbody>${rejected.map((one) => html`<tr>
        <th scope="row">${momentText(one.appended_ms, tz, { seconds: true })}</th>
        ${hasKeys && html`<td class="text">${one.key ? html`<code>${one.key}</code>` : "–"}</td>`}<td class="text"><b>${one.reason}</b><span class="texts">${one.detail}</span></td><td class="text">${one.origin}</td><td class="text advice">${adviceOf(one.reason)}</td><td class="text"><code>${one.text.slice(0, 120)}</code></td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}
