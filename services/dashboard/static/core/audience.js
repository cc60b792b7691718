// @ts-check
// Titles whose viewers are drawn in one chart: which they are, and their lines. Pure.

import { DAY_MS } from "./place/ranges.js";

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
export const titleOf = (one) => one.title?.trim() || one.video_id;

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

/**
 * The place of the views that were open at a moment: begun, and not ended.
 * @param {number} at_ms
 * @param {{filters: string[]}} of - Of which views.
 * @param {{from_ms: number, to_ms: number}} range - In which they are counted.
 */
export function viewsAt(at_ms, { filters }, range) {
  const open = [{ number: "view_start_ms", below: at_ms + 1 }, { number: "view_end_ms", at_least: at_ms + 1 }];
  return { screen: "views", range: "", from: String(range.from_ms), to: String(range.to_ms + LATER_MS), filters: [...filters, ...open.map((one) => JSON.stringify(one))], more: {} };
}
