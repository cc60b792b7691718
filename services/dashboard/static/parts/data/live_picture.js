// @ts-check
// The live stream: the newest picture of a customer or of one slice, and how fresh it is.

import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { statusOf } from "../../core/live/live.js";
import { now_ms, serverNow_ms } from "./asking.js";
import { listenTo } from "./listening.js";
import { html } from "../html.js";

/**
 * @param {string} customer
 * @param {string} slice - `<dimension>=<value>`, or empty.
 * @param {Record<string, string>} [listed] - Further parameters, which say how the same picture lists its customers.
 */
export function useLive(customer, slice, listed = {}) {
  const state = useSignal({ picture: /** @type {any} */ (null), isListening: true, isUnconfirmed: false, isBack: false, heard_at: Date.now(), server_ms: Date.now(), came_ms: performance.now(), key: "", refused: "" });
  const key = JSON.stringify([customer, slice]);
  const query = String(new URLSearchParams({ customer, slice, ...listed }));
  useLayoutEffect(() => {
    const change = (/** @type {object} */ what) => {
      state.value = { ...state.value, ...what };
    };
    const heard = (/** @type {object} */ what = {}) => change({ isListening: true, heard_at: Date.now(), refused: "", ...what });
    change({ refused: "" });
    return listenTo(query, {
      picture: (picture) => heard({ picture, isUnconfirmed: false, isBack: false, server_ms: picture.now_ms, came_ms: performance.now(), key }),
      alive: () => heard(),
      unconfirmed: () => heard({ isUnconfirmed: true }),
      lost: () => change({ isListening: false }),
      refused: (why) => change({ refused: why }),
      // What there was is as old as it is, and nobody has failed to send anything.
      shown: () => heard({ isBack: state.value.picture !== null }),
    });
  }, [query]);
  // An age ticks each second: who reads all of the state would be drawn again as often.
  const status = useComputed(() => {
    const { picture, isListening, isUnconfirmed, isBack, heard_at, refused } = state.value;
    const silent_ms = isListening ? now_ms.value - heard_at : 0;
    return statusOf({ picture, isListening, isUnconfirmed, isBack, silent_ms, now_ms: serverNow_ms(state.value), refused });
  });
  const level = useComputed(() => status.value.level);
  const notice = useComputed(() => status.value.notice);
  const picture = useComputed(() => state.value.picture);
  const pictured = useComputed(() => state.value.key);
  const text = useComputed(() => status.value.text);
  return { picture: pictured.value === key ? picture.value : null, level: level.value, notice: notice.value, text };
}

/** @param {{level: string, text: import("@preact/signals").ReadonlySignal<string>}} props - The text is read here alone. */
export function Status({ level, text }) {
  // A screen reader announces another state, and not each second.
  return html`<p class="status" id="status" data-level=${level}>
    <span class="dot" aria-hidden="true"></span><span id="status-text">${text.value}</span><span class="unseen" role="status">${text.value.split(" · ")[0]}</span>
  </p>`;
}

/**
 * A line without axes, for a tile. Gaps where nothing is known.
 * @param {{values: (number | null)[]}} props
 */
export function Spark({ values }) {
  const top = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const last = Math.max(1, values.length - 1);
  let path = "";
  values.forEach((value, at) => {
    if (value === null) return;
    const begins = at === 0 || values[at - 1] === null;
    path += `${begins ? "M" : "L"}${((at / last) * 100).toFixed(1)} ${(28 - (value / top) * 26).toFixed(1)}`;
  });
  return html`<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true"><path d=${path} /></svg>`;
}
