// @ts-check
// The player's requests of a view: read by a click, drawn as a lane of the timeline, and listed.

import { useSignal } from "@preact/signals";
import { barsOf, outcomeText, readText, requestText, SIGNS, totalText, TRACKS, whatText } from "../../core/view/requests.js";
import { bitrateText, countText, durationText, NONE, sizeText } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { newestNow_ms } from "../data/asking.js";
import { useFocusOfButton } from "../data/reading.js";
import { html } from "../html.js";

/** @typedef {import("../../core/view/requests.js").MediaRequest} MediaRequest */
/** @typedef {import("../../core/view/requests.js").Read} Read */
/** @typedef {import("../data/reading.js").Reading<Read>} Reading */

/** The top of the lane has the signs, the tracks are below. */
const TOP = 28;
const TRACK = (100 - TOP) / TRACKS;

/** Pages of requests as one. @param {Read | null} before @param {Read} page @returns {Read} */
export const joined = (before, page) => ({ ...page, requests: [...(before?.requests ?? []), ...page.requests] });

/** What the lane holds: why there is nothing, a button, or the requests. @param {{row: any, of: Reading, span_ms: number}} props */
export function RequestsDrawn({ row, of, span_ms }) {
  if (!row.req_count) return html`<p class="lane-note" id="no-requests">This player has reported no requests.</p>`;
  const what = row.req_count === 1 ? "1 request" : `${countText(row.req_count)} requests`;
  if (!of.read) return html`<p class="lane-note"><button type="button" id="read-requests" disabled=${of.isReading} onClick=${() => of.ask()}>${of.isReading ? "Reading …" : `Draw ${what}`}</button></p>`;
  const bars = barsOf(of.read.requests, span_ms);
  return html`<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label=${totalText(of.read)}>
      ${bars.map(({ request, track, x, first_x, end_x }) => {
        const [y, height] = [TOP + track * TRACK, TRACK - 4];
        const isDone = request.outcome === "completed";
        return html`<g><title>${requestText(request)}</title>
          <rect class=${isDone ? "loads" : request.outcome} x=${x.toFixed(2)} width=${(end_x - x).toFixed(2)} y=${y} height=${height} />
          ${isDone && first_x > x && html`<rect class="waits" x=${x.toFixed(2)} width=${(first_x - x).toFixed(2)} y=${y} height=${height} />`}</g>`;
      })}
    </svg>
    ${bars.map(({ request, x }) => request.outcome !== "completed" && html`<b class=${`sign ${request.outcome}`} title=${requestText(request)} style=${{ left: `${x / 10}%` }}>${SIGNS[request.outcome]}</b>`)}`;
}

/** The same as a list, and how much of them was read. @param {{row: any, of: Reading, tz: string}} props */
export function RequestList({ row, of, tz }) {
  const { read, problem, isReading, ask } = of;
  const isOnlyBad = useSignal(false);
  const summary = useFocusOfButton(read !== null, !read?.next);
  const wrong = problem && html`<p class="notice" id="requests-problem" role="status">${problem.title}. ${problem.detail}</p>`;
  if (!read) return wrong || null;
  const bad_n = read.requests.filter((one) => one.outcome !== "completed").length;
  const listed = isOnlyBad.value ? read.requests.filter((one) => one.outcome !== "completed") : read.requests;
  const isShort = !read.is_cut && read.requests_n < (row.req_count ?? 0);
  return html`${wrong}<details id="view-requests" open><summary ref=${summary}>Requests: ${totalText(read)}</summary>
    <p class="note" id="requests-read" role="status">${readText(read, row, newestNow_ms())} ${isShort && html`<button type="button" id="requests-again" disabled=${isReading} onClick=${() => ask()}>Read them again</button>`}</p>
    ${bad_n > 0 && html`<label class="note"><input type="checkbox" id="only-bad" checked=${isOnlyBad.value} onChange=${(/** @type {any} */ e) => { isOnlyBad.value = e.target.checked; }} /> Only the ${countText(bad_n)} that failed or were canceled</label>`}
    ${listed.length > 0 && html`<div class="scroll plain" tabindex="0" role="region" aria-label="Requests">
      <table id="request-table">
        <thead><tr><th scope="col">At</th><th scope="col">Clock</th><th scope="col" class="text">Outcome</th><th scope="col" class="text">What</th><th scope="col">First byte</th><th scope="col">Took</th><th scope="col">Size</th><th scope="col">Throughput</th></tr></thead>
        <tbody>${listed.map((one) => html`<${Listed} one=${one} clock=${momentText(row.view_start_ms + one.at_ms, tz, { seconds: true })} />`)}</tbody>
      </table>
    </div>`}
    ${read.next && html`<button type="button" id="more-requests" disabled=${isReading} onClick=${() => ask(true)}>More requests</button>`}
  </details>`;
}

/** @param {{one: MediaRequest, clock: string}} props */
function Listed({ one, clock }) {
  return html`<tr>
    <th scope="row">${durationText(one.at_ms)}</th>
    <td>${clock}</td>
    <td class=${`text outcome ${one.outcome}`}>${outcomeText(one)}</td>
    <td class="text">${whatText(one) || NONE}</td>
    <td>${durationText(one.ttfb_ms)}</td>
    <td>${durationText(one.time_ms)}</td>
    <td>${sizeText(one.size_bytes)}</td>
    <td>${bitrateText(one.throughput_bps)}</td>
  </tr>`;
}
