// @ts-check
// How the newest picture comes: by a stream in one visible tab of a browser, by questions in all others, and not at all in a hidden one.

import { SILENT_MS } from "../../core/live/live.js";
import { isRefusal } from "../../core/words/problems.js";
import { fetchJson } from "./asking.js";

/** A browser has six connections to a server, for all its tabs together: one stream is all that live figures take of them. */
const STREAM = "playhead live stream";
const LISTEN_AGAIN_MS = 5_000;
/** How often a tab without the stream asks. */
const ASK_MS = 2_500;
/** A stream that says nothing for so long is opened again. */
const RECONNECT_MS = 3 * SILENT_MS;

/**
 * What a listener handles. `unconfirmed`: the server answers, and does not know who may see what. `lost`: it does not answer.
 * `refused`: it says why there is nothing. `shown`: the tab is visible again, or at first, and listens.
 * @typedef {{picture: (picture: any) => void, alive: () => void, unconfirmed: () => void, lost: () => void, refused: (why: string) => void, shown: () => void}} Listener
 */

/**
 * Tells a listener what comes while the tab is visible. Returns what ends it.
 * @param {string} query - The parameters of /v1/live.
 * @param {Listener} listener
 */
export function listenTo(query, listener) {
  /** @type {AbortController | null} */
  let present = null;
  const follow = () => {
    if (document.hidden) {
      present?.abort();
      present = null;
    } else if (!present) {
      present = new AbortController();
      listener.shown();
      begin(query, listener, present.signal);
    }
  };
  document.addEventListener("visibilitychange", follow);
  follow();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    present?.abort();
  };
}

/** Listens by the stream, where no other tab has it; else asks until that tab lets it go. @param {string} query @param {Listener} listener @param {AbortSignal} ended */
async function begin(query, listener, ended) {
  // Browsers have locks on https and on this machine alone.
  if (!navigator.locks) return ask(query, listener, ended);
  const hold = () => stream(query, listener, ended);
  const wasFree = await navigator.locks.request(STREAM, { ifAvailable: true }, (lock) => lock !== null && hold().then(() => true));
  if (wasFree || ended.aborted) return undefined;
  const waiting = new AbortController();
  ask(query, listener, AbortSignal.any([ended, waiting.signal]));
  const take = () => {
    waiting.abort();
    return hold();
  };
  // A tab that ends while it waits gets an error.
  return navigator.locks.request(STREAM, { signal: ended }, take).catch(() => undefined);
}

/** Listens until it is ended. @param {string} query @param {Listener} listener @param {AbortSignal} ended @returns {Promise<void>} */
function stream(query, listener, ended) {
  /** @type {EventSource} */
  let source;
  let timer = 0;
  let heard_at = Date.now();
  let isOpen = true;
  if (ended.aborted) return Promise.resolve();
  const heard = () => {
    heard_at = Date.now();
    isOpen = true;
  };
  /** A stream that is refused does not say why: the same question without a stream has the reason. */
  const askWhy = () =>
    fetchJson(`/v1/live?${query}`, { signal: ended }).catch((problem) => {
      if (!ended.aborted && isRefusal(problem)) listener.refused(problem.title);
    });
  const listen = () => {
    source?.close();
    source = new EventSource(`/v1/live/stream?${query}`);
    source.onopen = () => (heard(), listener.alive());
    source.addEventListener("alive", () => (heard(), listener.alive()));
    source.addEventListener("unconfirmed", () => (heard(), listener.unconfirmed()));
    source.onmessage = (event) => (heard(), listener.picture(JSON.parse(event.data)));
    source.onerror = () => {
      isOpen = false;
      listener.lost();
      // The browser tries again by itself, except after an answer that is not a stream.
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(listen, LISTEN_AGAIN_MS);
      askWhy();
    };
  };
  listen();
  const watch = setInterval(() => {
    if (Date.now() - heard_at > RECONNECT_MS && isOpen) listen();
  }, SILENT_MS);
  return new Promise((resolve) => {
    ended.addEventListener("abort", () => {
      source.close();
      clearTimeout(timer);
      clearInterval(watch);
      resolve();
    });
  });
}

/** Asks again and again until it is ended. @param {string} query @param {Listener} listener @param {AbortSignal} ended */
async function ask(query, listener, ended) {
  while (!ended.aborted) {
    try {
      const picture = await fetchJson(`/v1/live?${query}`, { signal: ended });
      if (!ended.aborted) listener.picture(picture);
    } catch (problem) {
      if (ended.aborted) return;
      const found = /** @type {import("../../core/words/problems.js").Problem} */ (problem);
      if (isRefusal(found)) listener.refused(found.title);
      else if (found.status === 503) listener.unconfirmed();
      else listener.lost();
    }
    await new Promise((resolve) => setTimeout(resolve, ASK_MS));
  }
}
