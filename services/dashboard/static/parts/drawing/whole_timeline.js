// @ts-check
// The part of a view's timeline that its row does not keep: read from its beacons by a click.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { EVENTS_MAX, mayBeMore, timelineText, unkeptFrom } from "../../core/timeline.js";
import { durationText } from "../../core/words/format.js";
import { fetchJson, newestNow_ms } from "../data/asking.js";
import { html } from "../html.js";

/** @typedef {{read: import("../../core/timeline.js").Read | null, isReading: boolean, problem: import("../../core/words/problems.js").Problem | null, ask: () => void}} Reading */

/** What was read of a view's timeline. It is asked for by a click: each look at beacons is noted. @param {string} address @returns {Reading} */
export function useTimeline(address) {
  const read = useSignal(/** @type {Reading["read"]} */ (null));
  const isReading = useSignal(false);
  const problem = useSignal(/** @type {Reading["problem"]} */ (null));
  const ask = async () => {
    isReading.value = true;
    try {
      read.value = await fetchJson(address);
      problem.value = null;
    } catch (error) {
      problem.value = /** @type {any} */ (error);
    } finally {
      isReading.value = false;
    }
  };
  return { read: read.value, isReading: isReading.value, problem: problem.value, ask };
}

const showBeacons = () => {
  const beacons = /** @type {HTMLDetailsElement} */ (document.getElementById("view-beacons"));
  beacons.open = true;
  beacons.scrollIntoView();
};

/** Says that a row keeps the first events alone, draws those of later by a click, and leads to the beacons. @param {{row: any, of: Reading}} props - `row` as the view has it. */
export function Later({ row, of }) {
  const { read, isReading, problem, ask } = of;
  const note = useRef(/** @type {HTMLElement | null} */ (null));
  const from_ms = unkeptFrom(row);
  // A button that is gone had the focus: what it was for is here.
  useLayoutEffect(() => {
    if (read && document.activeElement === document.body) note.current?.focus({ preventScroll: true });
  }, [read === null]);
  if (from_ms === null) return null;
  const text = read ? timelineText(read, row, newestNow_ms()) : `The timeline has the first ${EVENTS_MAX} events of this view, up to ${durationText(from_ms)}. All later ones are in its beacons.`;
  const isOffered = !read || mayBeMore(row, read);
  const label = isReading ? "Reading …" : read ? "Read them again" : "Draw the rest from its beacons";
  return html`${problem && html`<p class="notice" id="timeline-problem" role="status">${problem.title}. ${problem.detail}</p>`}
    <p id="later"><span class="note" id="timeline-read" role="status" tabindex="-1" ref=${note}>${text}</span> ${isOffered && html`<button type="button" id="read-timeline" disabled=${isReading} onClick=${ask}>${label}</button>`} <button type="button" onClick=${showBeacons}>Show the beacons</button></p>`;
}
