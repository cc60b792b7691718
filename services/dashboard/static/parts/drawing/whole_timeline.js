// @ts-check
// The part of a view's timeline that its row does not keep: read from its beacons by a click.

import { EVENTS_MAX, mayBeMore, timelineText, unkeptFrom } from "../../core/view/timeline.js";
import { durationText } from "../../core/words/format.js";
import { newestNow_ms } from "../data/asking.js";
import { useFocusOfButton } from "../data/reading.js";
import { html } from "../html.js";

/** @typedef {import("../data/reading.js").Reading<import("../../core/view/timeline.js").Read>} Reading */

const showBeacons = () => {
  const beacons = /** @type {HTMLDetailsElement} */ (document.getElementById("view-beacons"));
  beacons.open = true;
  beacons.scrollIntoView();
};

/** Says that a row keeps the first events alone, draws those of later by a click, and leads to the beacons. @param {{row: any, of: Reading}} props - `row` as the view has it. */
export function Later({ row, of }) {
  const { read, isReading, problem, ask } = of;
  const note = useFocusOfButton(read !== null);
  const from_ms = unkeptFrom(row);
  if (from_ms === null) return null;
  const text = read ? timelineText(read, row, newestNow_ms()) : `The timeline has the first ${EVENTS_MAX} events of this view, up to ${durationText(from_ms)}. All later ones are in its beacons.`;
  const isOffered = !read || mayBeMore(row, read);
  const label = isReading ? "Reading …" : read ? "Read them again" : "Draw the rest from its beacons";
  return html`${problem && html`<p class="notice" id="timeline-problem" role="status">${problem.title}. ${problem.detail}</p>`}
    <p id="later"><span class="note" id="timeline-read" role="status" tabindex="-1" ref=${note}>${text}</span> ${isOffered && html`<button type="button" id="read-timeline" disabled=${isReading} onClick=${() => ask()}>${label}</button>`} <button type="button" onClick=${showBeacons}>Show the beacons</button></p>`;
}
