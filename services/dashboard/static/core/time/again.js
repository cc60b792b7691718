// @ts-check
// When a question is asked again: as often as its answer changes, and less often the longer the server cannot answer. Pure.

const MINUTE_MS = 60_000;
/** After it a question that failed is asked again, at the earliest. */
const BROKEN_MS = 5_000;
/** The longest time between two tries, unless the question or the server names a longer one. */
const BROKEN_MS_MAX = MINUTE_MS;
/** Nearly all views that counted in a range have finished by then: its figures hardly change. */
const SETTLED_MS = 120 * MINUTE_MS;
const SETTLED_EVERY_MS = 5 * MINUTE_MS;
/** The server has too much to do: then a question is asked again no sooner than it would have been anyway. */
const BUSY = [429, 504];

/**
 * How long a question waits that failed, in ms: twice as long each time, and never all pages at the same moment.
 * @param {{status: number, retry_ms?: number}} problem - `retry_ms`: from when on the server says that it may be asked.
 * @param {number} failures - How often it has failed since it last had an answer, this time left out.
 * @param {number} every_ms - How often it is asked while it is answered; 0 for once.
 * @param {() => number} [random]
 */
export function againAfter({ status, retry_ms = 0 }, failures, every_ms, random = Math.random) {
  const first = Math.max(retry_ms, BUSY.includes(status) ? every_ms : 0, BROKEN_MS);
  const most = Math.max(first, every_ms, BROKEN_MS_MAX);
  return Math.min(most, first * 2 ** Math.min(failures, 10)) * (1 + 0.25 * random());
}

/**
 * How often a question about a range is asked, in ms.
 * @param {{to_ms: number} | null} range - Null where it is not known.
 * @param {number} every_ms - While figures of the range still change.
 * @param {number} now_ms
 */
export const everyOf = (range, every_ms, now_ms) => (every_ms && range && range.to_ms < now_ms - SETTLED_MS ? Math.max(every_ms, SETTLED_EVERY_MS) : every_ms);
