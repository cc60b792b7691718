// @ts-check
// The live stream: the newest picture of a customer or of one slice, and how fresh it is.

import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { SILENT_MS, statusOf } from "../../core/live.js";
import { fetchJson, now_ms, serverNow_ms } from "./asking.js";
import { html } from "../html.js";

const LISTEN_AGAIN_MS = 5_000;
/** A stream that says nothing for so long is opened again. */
const RECONNECT_MS = 3 * SILENT_MS;

/**
 * @param {string} customer
 * @param {string} slice - `<dimension>=<value>`, or empty.
 */
export function useLive(customer, slice) {
  const state = useSignal({ picture: /** @type {any} */ (null), isListening: true, isUnconfirmed: false, heard_at: Date.now(), server_ms: Date.now(), came_ms: performance.now(), key: "", refused: "" });
  const key = JSON.stringify([customer, slice]);
  useLayoutEffect(() => {
    /** @type {EventSource} */
    let stream;
    let timer = 0;
    const parameters = new URLSearchParams({ customer, slice });
    const stopped = new AbortController();
    state.value = { ...state.value, refused: "" };
    /** A stream that is refused does not say why: the same question without a stream has the reason. */
    const askWhy = async () => {
      try {
        await fetchJson(`/v1/live?${parameters}`, { signal: stopped.signal });
      } catch (problem) {
        const { status, title } = /** @type {any} */ (problem);
        if (!stopped.signal.aborted && [403, 404].includes(status)) state.value = { ...state.value, refused: title };
      }
    };
    const heard = (/** @type {object} */ change = {}) => {
      state.value = { ...state.value, isListening: true, heard_at: Date.now(), refused: "", ...change };
    };
    const listen = () => {
      stream?.close();
      stream = new EventSource(`/v1/live/stream?${parameters}`);
      stream.onopen = () => heard();
      stream.addEventListener("alive", () => heard());
      stream.addEventListener("unconfirmed", () => heard({ isUnconfirmed: true }));
      stream.onmessage = (event) => {
        const picture = JSON.parse(event.data);
        heard({ picture, isUnconfirmed: false, server_ms: picture.now_ms, came_ms: performance.now(), key });
      };
      stream.onerror = () => {
        state.value = { ...state.value, isListening: false };
        // The browser tries again by itself, except after an answer that is not a stream.
        if (stream.readyState !== EventSource.CLOSED) return;
        timer = setTimeout(listen, LISTEN_AGAIN_MS);
        askWhy();
      };
    };
    listen();
    const watch = setInterval(() => {
      if (Date.now() - state.value.heard_at > RECONNECT_MS && state.value.isListening) listen();
    }, SILENT_MS);
    return () => {
      stream.close();
      stopped.abort();
      clearTimeout(timer);
      clearInterval(watch);
    };
  }, [key]);
  const { picture, isListening, isUnconfirmed, heard_at, refused } = state.value;
  const silent_ms = isListening ? now_ms.value - heard_at : 0;
  const status = statusOf({ picture, isListening, isUnconfirmed, silent_ms, now_ms: serverNow_ms(state.value), refused });
  return { picture: state.value.key === key ? picture : null, status };
}

/** @param {{status: {level: string, text: string, notice: string}}} props */
export function Status({ status }) {
  return html`<p class="status" id="status" data-level=${status.level} role="status">
    <span class="dot" aria-hidden="true"></span><span id="status-text">${status.text}</span>
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
