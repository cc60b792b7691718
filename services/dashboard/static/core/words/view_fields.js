// @ts-check
// Fields of a view as columns: their titles, and how their values are worded. Pure.

import { ageText, bitrateText, countText, durationText, NONE, valueText } from "./format.js";
import { labelText } from "./labels.js";
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
  customer_id: "Customer",
  view_id: "View",
  day: "Day (since 1970)",
  session_id: "Session",
  viewer_id: "Viewer (by the player)",
  viewer_user_id: "Viewer (by the page)",
  player_instance_id: "Player instance",
  first_append_ms: "First beacon came",
  last_append_ms: "Last beacon came",
  truncated: "Events cut",
  duplicate_count: "Beacons that came again",
  late_count: "Late beacons",
  seq_gaps: "Missing beacons",
  gap_ms: "Time without beacons",
  gap_count: "Times without beacons",
  clock_step_count: "Jumps of the clock",
  video_duration_ms: "Length of the video",
  source_url: "Address of the video",
  page_url: "Address of the page",
  player_width: "Player width",
  player_height: "Player height",
  startup_ms_max: "Start-up at most",
  content_playback_ms: "Content played",
  max_playhead_ms: "Farthest playhead",
  max_seek_ms: "Longest seek",
  rebuffer_source: "Rebuffering known by",
  watch_difference_ms: "Watched: the client's figure − ours",
  playing_difference_ms: "Played: the client's figure − ours",
  rebuffer_difference_ms: "Rebuffering: the client's figure − ours",
  rebuffer_count_difference: "Stalls: the client's figure − ours",
  scale_time_ms: "Time with a known size",
  max_upscale: "Most upscaling",
  max_downscale: "Most downscaling",
  bitrate_integral: "Bitrate × time",
  bitrate_time_ms: "Time with a known bitrate",
  rendition_up: "Changes to a higher bitrate",
  rendition_down: "Changes to a lower bitrate",
  req_count: "Requests",
  req_failed: "Failed requests",
  req_canceled: "Canceled requests",
  req_bytes: "Bytes of requests",
  ttfb_max_ms: "Longest wait for a request",
  error_message: "Error text",
  error_context: "Error context",
  ebvs: "Exit before start",
  score_version: "Version of the scores",
  playback_ranges_count: "Played parts",
  ad_breaks: "Ad breaks",
  ad_attempts: "Ads tried",
  ad_impressions: "Ads shown",
  ad_errors: "Ad errors",
  ad_playing_ms: "Ads played",
  ad_preroll_breaks: "Ad breaks before the video",
  ad_midroll_breaks: "Ad breaks within it",
  ad_postroll_breaks: "Ad breaks after it",
  ad_preroll_playing_ms: "Ads played before the video",
};

/** Null for what is a dimension, or has the name of a metric. @param {string} name */
export const fieldTitle = (name) => TITLES[name] ?? null;

/** @param {string} name @param {any} value @param {string} tz */
export function fieldText(name, value, tz) {
  if (value === null || value === undefined || value === "") return NONE;
  // A customer's own dimension is a text, whatever its name ends with.
  if (name.startsWith("custom.")) return labelText(String(value));
  if (/_(start|end|append)_ms$|^counted_ms$/.test(name)) return momentText(value, tz, { seconds: true });
  if (/_ms(_avg|_max)?$|scale_integral$/.test(name)) return durationText(value);
  if (name.endsWith("_bps")) return bitrateText(value);
  if (name.startsWith("score_")) return valueText("score", value);
  return typeof value === "number" ? countText(value) : labelText(String(value));
}
