// @ts-check
// Questions to the API: each ends, with its answer or with what is wrong; the last answer of a question is kept, with its age.

import { signal, untracked, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { againAfter, everyOf } from "../../core/time/again.js";
import { serverNow } from "../../core/time/clock.js";
import { ageText } from "../../core/words/format.js";
import { isRefusal, problemOf } from "../../core/words/problems.js";
import { comparedFrom, resolved } from "../../core/place/ranges.js";
import { html } from "../html.js";
import { Wrong } from "./wrong.js";

/** The servers' own deadlines are shorter. */
const ANSWER_MS_MAX = 40_000;
/** From then on the page says that an answer takes long. */
const SLOW_MS = 4_000;
/** Answers that are kept, for the way back. */
const KEPT_MAX = 60;

/** @typedef {import("../../core/words/problems.js").Problem} Problem */
/** `what` names the question; `came_ms`: when the answer came, as `ticked_ms` counts. @typedef {{what: string, data: any, at_ms: number, came_ms: number, problem: Problem | null, isAsking: boolean, since_ms: number}} Answer */

/** What people call the answer of a path; others are "The answer". @type {Record<string, string>} */
const WORDS = {
  "/v1/overall": "The figure",
  "/v1/timeseries": "The course",
  "/v1/breakdown": "The breakdown",
  "/v1/distribution": "The distribution",
  "/v1/errors": "The list of errors",
  "/v1/views": "The list of views",
  "/v1/open-views": "The list of open views",
  "/v1/titles": "The list of titles",
  "/v1/concurrency": "The chart of viewers",
  "/v1/suspects": "The search for suspects",
  "/v1/live/history": "What was earlier",
  "/v1/arrivals": "The list of beacons",
};

/** Ticks once a second, for ages. */
export const now_ms = signal(Date.now());
/** The same by a clock that nobody sets: ms since the page was opened. */
const ticked_ms = signal(performance.now());
setInterval(() => {
  now_ms.value = Date.now();
  ticked_ms.value = performance.now();
}, 1_000);

/** What the server's clock shows now. @param {{server_ms: number, came_ms: number}} known - What it showed when an answer came. */
export const serverNow_ms = ({ server_ms, came_ms }) => serverNow(server_ms, came_ms, ticked_ms.value);

/** When the newest view was counted, as the newest answer says it. */
export const counted_ms = signal(/** @type {number | null} */ (null));

/** The server's clock, as answers of any kind tell it; before the first one that of the viewer. */
const clock = signal({ server_ms: Date.now(), came_ms: performance.now() });

/** What the server's clock shows now, ticking once a second. */
export const newestNow_ms = () => serverNow_ms(clock.value);

/** The same at this moment: who asks is not drawn again each second. Ranges and comparisons go by it, as the freshness of figures does. */
export const presentNow_ms = () => untracked(() => serverNow(clock.value.server_ms, clock.value.came_ms, performance.now()));

/** A viewer's clock that is wrong by more has asked for another range. */
const WRONG_MS = 30_000;
/** How often the server's clock turned out to be another one: what was asked before is asked again. */
const corrections = signal(0);

/** @type {Map<string, {data: any, at_ms: number, came_ms: number}>} */
const kept = new Map();

/** @type {() => void} */
let noteFirst;
/** Of a screen that asks nothing nobody waits for longer. */
const FIRST_MS_MAX = 1_000;
/** Once the first figures of a screen are there, or are known to be away: what only menus need is asked then. */
export const hasFirst = new Promise((resolve) => {
  setTimeout(resolve, FIRST_MS_MAX);
  noteFirst = () => resolve(undefined);
});

export function toLogin() {
  location.assign(`/login?to=${encodeURIComponent(location.pathname + location.search)}`);
}

/**
 * One question. A session that has ended leads to the login.
 * @param {string} address
 * @param {RequestInit} [how]
 * @returns {Promise<any>} What the answer holds; throws a `Problem`.
 */
export async function fetchJson(address, how = {}) {
  const ends = [AbortSignal.timeout(ANSWER_MS_MAX), ...(how.signal ? [how.signal] : [])];
  let answer;
  let content;
  try {
    answer = await fetch(address, { ...how, signal: AbortSignal.any(ends) });
    content = answer.status === 204 ? null : await answer.json();
  } catch (error) {
    if (how.signal?.aborted) throw error;
    if (answer) throw { title: `The server's answer cannot be read (${answer.status})`, detail: "", status: answer.status };
    throw { title: "The dashboard's server does not answer", detail: "", status: 0 };
  }
  noteClock(Date.parse(answer.headers.get("Date") ?? ""));
  if (answer.ok) {
    const as_of_ms = content?.about?.as_of_ms ?? null;
    if (as_of_ms !== null && as_of_ms >= (counted_ms.value ?? 0)) counted_ms.value = as_of_ms;
    return content;
  }
  if (answer.status === 401) toLogin();
  throw { ...problemOf(content, answer.status), retry_ms: 1_000 * (Number(answer.headers.get("Retry-After")) || 0) };
}

/** @param {number} server_ms - NaN where an answer does not say. */
function noteClock(server_ms) {
  const came_ms = performance.now();
  const wrong_ms = Math.abs(server_ms - serverNow(clock.value.server_ms, clock.value.came_ms, came_ms));
  // An answer says whole seconds: a time that is known goes back by none of them.
  if (wrong_ms >= 2_000) clock.value = { server_ms, came_ms };
  if (wrong_ms >= WRONG_MS) corrections.value += 1;
}

/**
 * The parameters that every question of a place has. `compare` is as the address has it: which time that is follows from now, as the range does.
 * @param {string} path
 * @param {import("../../core/place/place.js").Place} place
 * @param {Record<string, string | number>} params
 */
export function addressFor(path, place, params) {
  const now = presentNow_ms();
  const range = resolved(place, now);
  const found = new URLSearchParams({ customer: place.customer, tz: place.tz });
  // A cursor has the range of the first page: one up to now has moved on since. An empty `from` asks of any time.
  if (!params.cursor && params.from !== "") {
    found.set("from", range ? String(range.from_ms) : place.from);
    found.set("to", range ? String(range.to_ms) : place.to);
  }
  for (const one of place.filters) found.append("filter", one);
  const given = params.compare ? { ...params, compare: comparedFrom(String(params.compare), place, now) } : params;
  for (const [name, value] of Object.entries(given)) if (value !== "") found.set(name, String(value));
  return `${path}?${found}`;
}

/**
 * The answer to a question about the place, asked again every `every_ms` while the page is looked at, less often of a range that is over. Null as path asks nothing.
 * @param {string | null} path
 * @param {import("../../core/place/place.js").Place} place
 * @param {Record<string, string | number>} params
 * @param {number} [every_ms]
 * @param {Record<string, string | number>} [size] - Parameters that say how much of the same answer is wanted: what is there is shown meanwhile.
 * @returns {Answer}
 */
export function useQuestion(path, place, params, every_ms = 0, size = {}) {
  const { customer, range, from, to, tz, filters } = place;
  const key = path && JSON.stringify([path, customer, range, from, to, tz, filters, params]);
  const now = presentNow_ms();
  return useFetched(key, () => addressFor(path ?? "", place, { ...params, ...size }), everyOf(resolved(place, now), every_ms, now), JSON.stringify([size, corrections.value]));
}

/**
 * The same of any address. `key` says which question it is: the answer before is shown while it is asked again, and what is typed
 * into a form that is drawn with it stays. Another `version` asks the same question again at once: after an act, or of a later minute.
 * @param {string | null} key
 * @param {() => string} addressOf
 * @param {number} [every_ms]
 * @param {string | number} [version]
 * @param {{isByClick?: boolean}} [how] - Whether it waits for another click where it failed.
 * @returns {Answer}
 */
export function useFetched(key, addressOf, every_ms = 0, version = 0, { isByClick = false } = {}) {
  /** @type {import("@preact/signals").Signal<Answer & {key: string | null}>} */
  const state = useSignal(begun(key, addressOf));
  // Before the skeleton is painted: a question need not wait for a frame.
  useLayoutEffect(() => {
    if (key === null) return undefined;
    const stop = new AbortController();
    let timer = 0;
    let failures = 0;
    const ask = async () => {
      if (document.hidden && state.value.key === key && (state.value.data || state.value.problem)) {
        timer = setTimeout(ask, 1_000);
        return;
      }
      state.value = { ...begun(key, addressOf), problem: state.value.key === key ? state.value.problem : null };
      try {
        keep(key, await fetchJson(addressOf(), { signal: stop.signal }));
        state.value = { ...begun(key, addressOf), isAsking: false };
      } catch (problem) {
        if (stop.signal.aborted) return;
        const found = /** @type {Problem} */ (problem);
        state.value = { ...begun(key, addressOf), isAsking: false, problem: found.status === 0 && !isByClick ? { ...found, detail: "The page goes on trying." } : found };
      }
      // What only lists things, as recent incidents do, is no figure.
      if (state.value.data?.about || state.value.problem) noteFirst();
      const problem = state.value.problem;
      const isBroken = problem && !isRefusal(problem);
      // What is asked by a click alone is not asked by itself until it ends: a dear question would hold up all others.
      if (isBroken ? !isByClick : every_ms) timer = setTimeout(ask, isBroken ? againAfter(problem, failures, every_ms) : every_ms);
      failures = isBroken ? failures + 1 : 0;
    };
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, every_ms, version]);
  return state.value.key === key ? state.value : begun(key, addressOf);
}

/** @param {string | null} key @param {() => string} addressOf */
function begun(key, addressOf) {
  const known = key === null ? undefined : kept.get(key);
  const what = key === null ? "" : (WORDS[addressOf().split("?")[0]] ?? "The answer");
  return { key, what, data: known?.data ?? null, at_ms: known?.at_ms ?? 0, came_ms: known?.came_ms ?? 0, problem: null, isAsking: key !== null, since_ms: Date.now() };
}

/** @param {string} key @param {any} data */
function keep(key, data) {
  kept.delete(key);
  kept.set(key, { data, at_ms: Date.now(), came_ms: performance.now() });
  if (kept.size > KEPT_MAX) kept.delete(/** @type {string} */ (kept.keys().next().value));
}

/**
 * An answer as it stands: a skeleton, what is wrong, or what `draw` makes of it; an earlier answer is marked with its age.
 * @param {{of: Answer, draw: (data: any) => any, height?: number}} props
 */
export function Answered({ of, draw, height = 160 }) {
  // The clock is read only where an age is said: what is there would be drawn again each second.
  const isSlow = of.isAsking && now_ms.value - of.since_ms > SLOW_MS;
  const kept = of.data && (of.problem || isSlow) ? ` What is shown is ${ageText(now_ms.value - of.at_ms)} old.` : "";
  const wrong = of.problem && (isRefusal(of.problem) ? html`<${Wrong} problem=${of.problem} kept=${kept} />` : html`<p class="notice"><span role="status">${of.problem.title}. ${of.problem.detail}</span>${kept}</p>`);
  const slow = isSlow && html`<p class="note slow"><span role="status">${of.what} takes longer than usual</span> (${ageText(now_ms.value - of.since_ms)}).${kept}</p>`;
  if (of.data) return html`${wrong}${slow}<div class=${of.problem ? "is-old" : ""}>${draw(of.data)}</div>`;
  return html`${wrong}${slow}${!of.problem && html`<${Skeleton} height=${height} />`}`;
}

/** @param {{height: number}} props */
export function Skeleton({ height }) {
  return html`<div class="skeleton" style=${{ height: `${height}px` }} role="status" aria-label="Loading"></div>`;
}
