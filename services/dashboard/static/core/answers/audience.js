// @ts-check
// Titles whose viewers are drawn in one chart: which they are, and their lines. Pure.

import { liveParts, narrowed, pastOf } from "../place/filters.js";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../place/ranges.js";
import { labelText } from "../words/labels.js";

/** Titles of one chart: as many as the API answers, and as there are colours. */
export const CURVES_MAX = 10;

/**
 * The titles that an address names.
 * @param {string | undefined} text - JSON, as the API has it.
 * @returns {string[]} None where it names none, or is no such list.
 */
export function chosenOf(text) {
  try {
    const found = JSON.parse(text || "[]");
    return Array.isArray(found) && found.every((one) => typeof one === "string") ? found : [];
  } catch {
    return [];
  }
}

/** What people call a title; without a name, its id. @param {{video_id: string, title: string | null}} one */
export const titleOf = (one) => one.title?.trim() || labelText(one.video_id);

/** What an address has after a click on a title: it is drawn, or no longer. @param {string[]} drawn @param {string} video */
export function toggled(drawn, video) {
  const after = drawn.includes(video) ? drawn.filter((one) => one !== video) : [...drawn, video];
  return after.length ? JSON.stringify(after) : "";
}

/**
 * An answer of /v1/concurrency as lines of a chart. Two titles of one name are told apart by their ids.
 * @param {{at_ms: number[], titles: {video_id: string, title: string | null, views: number[]}[]}} answer
 * @returns {{times: number[], lines: import("./series.js").Line[]}} Times in seconds since 1970.
 */
export function linesOfTitles({ at_ms, titles }) {
  const names = titles.map(titleOf);
  const isTwice = (/** @type {string} */ name) => names.indexOf(name) !== names.lastIndexOf(name);
  const lines = titles.map((one, at) => ({
    title: isTwice(names[at]) ? `${names[at]} (${one.video_id})` : names[at],
    kind: "value",
    key: [one.video_id],
    values: one.views,
    counts: [],
  }));
  return { times: at_ms.map((at) => at / 1_000), lines };
}

/** How long after a range a view ends at the latest that counts as open in it. */
const LATER_MS = DAY_MS;
/** How long before its first beacon came a view is open at most: a client's clock may be wrong. */
const EARLIER_MS = DAY_MS;

/**
 * The place of the views that were open at a moment: begun, and not ended.
 * @param {number} at_ms
 * @param {{filters: string[]}} of - Of which views.
 * @param {{from_ms: number, to_ms: number}} range - In which they are counted.
 */
export function viewsAt(at_ms, { filters }, range) {
  const open = [{ number: "view_start_ms", below: at_ms + 1 }, { number: "first_append_ms", below: at_ms + EARLIER_MS + 1 }, { number: "view_end_ms", at_least: at_ms + 1 }];
  return { screen: "views", range: "", from: String(range.from_ms), to: String(range.to_ms + LATER_MS), filters: [...filters, ...open.map((one) => JSON.stringify(one))], more: {} };
}

/** So near now some views that were open then are open still, and miss in a curve of finished ones: most are shorter. */
const OPEN_MS = 6 * HOUR_MS;

/**
 * The part of a range in which views may be open still, in whole minutes; null where it has none.
 * @param {{from_ms: number, to_ms: number}} range
 * @param {number} now_ms
 */
export function openStretch({ from_ms, to_ms }, now_ms) {
  const now = (Math.floor(now_ms / MINUTE_MS) + 1) * MINUTE_MS;
  const from = Math.max(Math.floor(from_ms / MINUTE_MS) * MINUTE_MS, now - OPEN_MS);
  const until_ms = Math.min(Math.ceil(to_ms / MINUTE_MS) * MINUTE_MS, now);
  return from < until_ms ? { from_ms: from, until_ms } : null;
}

/**
 * How live figures name a title under filters: a dimension or a pair, and its value. Null where none of them is of all the filters.
 * @param {string[]} filters
 * @param {string} title
 * @returns {{dimension: string, value: string} | null}
 */
export function liveOfTitle(filters, title) {
  const all = narrowed(filters, "video_title", title);
  const part = liveParts(all, null).find((one) => one.filters.length === all.length);
  if (!part) return null;
  const [dimension, value] = pastOf(part.slice);
  return { dimension, value };
}

/**
 * An answer of /v1/live/history as lines of a chart, in the order of the titles: one of which nothing is known has a gap alone.
 * @param {{from_ms: number, step_ms: number, values: {value: string, series: Record<string, (number | null)[]>}[]}} past
 * @param {{title: string, value: string | null}[]} named - `value`: as live figures name the title; null where they have no name for it.
 * @returns {{times: number[], lines: import("./series.js").Line[]} | null} Times in seconds since 1970; null where no title is known.
 */
export function linesOfLive(past, named) {
  const known = named.map(({ value }) => past.values.find((one) => one.value === value)?.series.viewers_now ?? []);
  const length = Math.max(0, ...known.map((values) => values.length));
  if (!known.some((values) => values.some((one) => one !== null))) return null;
  const times = Array.from({ length }, (_, at) => (past.from_ms + at * past.step_ms) / 1_000);
  const lines = named.map(({ title }, at) => ({ title, kind: "value", key: [], values: times.map((_, step) => known[at][step] ?? null), counts: [] }));
  return { times, lines };
}
