// @ts-check
// Fields of a view as columns: their titles, and how their values are worded. Pure.

import { ageText, bitrateText, countText, durationText, NONE, valueText } from "./format.js";
import { momentText } from "../place/ranges.js";

/** What views are searched by, besides filters: parameters of /v1/views. */
export const SEARCHED = [
  { name: "viewer", title: "Viewer id", type: "text" },
  { name: "title", title: "Title has", type: "text" },
  { name: "error", title: "Error code", type: "text" },
  { name: "score_at_least", title: "Score at least", type: "number" },
  { name: "score_below", title: "Score below", type: "number" },
];
/** Columns where none are chosen. The first is by what the list is ordered: by when a view counts, which is its end unless the client's clock was wrong. */
export const VIEW_COLUMNS = ["counted_ms", "view_start_ms", "video_title", "viewer", "watch_ms", "startup_ms", "rebuffer_ms", "score_view", "error_code", "country", "cdn", "player_version"];

/**
 * How much of what is open a list shows. A view that is over, or does not match, was looked up in vain.
 * @param {number} rows
 * @param {number} looked_up
 * @param {{views_n: number, is_cut: boolean, seconds: number}} list
 */
export function openText(rows, looked_up, { views_n, is_cut, seconds }) {
  const all = `${is_cut ? "at least " : ""}${countText(views_n)} ${views_n === 1 ? "view" : "views"}`;
  const open = rows === 1 ? "1 is" : `${countText(rows)} are`;
  return `${all} had beacons in the last ${ageText(1_000 * seconds)}. Of the ${countText(looked_up)} with the newest beacons, ${open} open and ${rows === 1 ? "matches" : "match"}.`;
}

/** @type {Record<string, string>} */
const TITLES = {
  counted_ms: "Finished",
  view_start_ms: "Began",
  view_end_ms: "Ended",
  watch_ms: "Watched",
  playing_ms: "Played",
  startup_ms: "Start-up",
  rebuffer_ms: "Rebuffering",
  rebuffer_count: "Stalls",
  seek_count: "Seeks",
  seek_ms: "Seeking",
  upscale_integral: "Upscaling × time",
  downscale_integral: "Downscaling × time",
  ttfb_sum_ms: "Waiting for requests",
  req_time_ms: "Time of requests",
  score_view: "Experience",
  avg_bitrate_bps: "Bitrate",
  beacon_count: "Beacons",
};

/** Null for what is a dimension, or has the name of a metric. @param {string} name */
export const fieldTitle = (name) => TITLES[name] ?? null;

/** @param {string} name @param {any} value @param {string} tz */
export function fieldText(name, value, tz) {
  if (value === null || value === undefined || value === "") return NONE;
  if (/_(start|end)_ms$|^counted_ms$/.test(name)) return momentText(value, tz, { seconds: true });
  if (/_ms(_avg)?$|scale_integral$/.test(name)) return durationText(value);
  if (name.endsWith("_bps")) return bitrateText(value);
  if (name.startsWith("score_")) return valueText("score", value);
  return typeof value === "number" ? countText(value) : String(value);
}
