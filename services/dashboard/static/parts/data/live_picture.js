// @ts-check
// The live stream: the newest picture of a customer or of one slice, and how fresh it is.

import { useSignal } from "@preact/signals";
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
  const { picture, isListening, isUnconfirmed, isBack, heard_at, refused } = state.value;
  const silent_ms = isListening ? now_ms.value - heard_at : 0;
  const status = statusOf({ picture, isListening, isUnconfirmed, isBack, silent_ms, now_ms: serverNow_ms(state.value), refused });
  return { picture: state.value.key === key ? picture : null, status };
}

/** @param {{status: {level: string, text: string, notice: string}}} props */
export function Status({ status }) {
  // A screen reader announces another state, and not each second.
  return html`<p class="status" id="status" data-level=${status.level}>
    <span class="dot" aria-hidden="true"></span><span id="status-text">${status.text}</span><span class="unseen" role="status">${status.text.split(" · ")[0]}</span>
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
