// @ts-check
// The views behind a figure: those that it counts, or those that weigh most in it; and those of its n. Pure.

import { filterOf, narrowed } from "../place/filters.js";
import { VIEW_COLUMNS } from "../words/view_fields.js";

/**
 * How the views behind a metric are found: by the value of a dimension, by another filter, or sorted by a number of a view, the largest
 * first unless `order` says otherwise. `which` says it in words. `base`: of which views the metric is, where
 * it is not of all.
 * @typedef {{flag?: string, value?: string, filter?: object, sort?: string, order?: "ascending", which: string, base?: object}} Behind
 */

const PLAYED = { or: [{ number: "startup_ms", at_least: 0 }, { not: { dimension: "startup_unknown", in: ["not_started", null] } }] };
const SCORES = { experience_score: "score_view", startup_score: "score_startup", smoothness_score: "score_smooth", quality_score: "score_quality", success_score: "score_success" };

/** Views that have a number. @param {string} field */
const known = (field) => ({ number: field, at_least: 0 });

/** @type {[string[], Behind][]} */
const BEHIND = [
  [["playback_failure_fraction", "playback_failures"], { flag: "playback_failed", which: "those that failed" }],
  [["startup_failure_fraction", "startup_failures"], { flag: "startup_failed", which: "those that failed to start" }],
  [["exit_before_start_fraction", "exits_before_start"], { flag: "exit_before_start", which: "those that ended before the start" }],
  [["view_dropped_fraction", "views_dropped"], { flag: "view_dropped", which: "those that were dropped" }],
  [["spi_good_fraction"], { flag: "spi_good", value: "false", which: "those that are not good", base: { dimension: "spi_good", in: ["true", "false"] } }],
  [["started"], { filter: PLAYED, which: "those that played" }],
  [["rebuffer_fraction", "rebuffer_ratio", "rebuffer_ms"], { sort: "rebuffer_ms", which: "the longest rebuffering first" }],
  [["rebuffers_per_minute", "rebuffer_count"], { sort: "rebuffer_count", which: "the most rebuffer events first" }],
  [["watch_ms"], { sort: "watch_ms", which: "the longest first" }],
  [["playing_ms"], { sort: "playing_ms", which: "the longest first" }],
  [["seek_count"], { sort: "seek_count", which: "the most seeks first" }],
  [["seek_latency_ms"], { sort: "seek_ms", which: "the longest seeking first" }],
  [["bitrate_bps"], { sort: "avg_bitrate_bps", order: "ascending", which: "the lowest bitrate first" }],
  [["upscale_fraction"], { sort: "upscale_integral", which: "the most upscaling first", base: known("scale_time_ms") }],
  [["downscale_fraction"], { sort: "downscale_integral", which: "the most downscaling first", base: known("scale_time_ms") }],
  [["request_latency_ms"], { sort: "ttfb_sum_ms", which: "the longest waiting for requests first", base: known("ttfb_sum_ms") }],
  [["request_throughput_bps"], { sort: "req_time_ms", which: "the longest requests first", base: known("req_bytes") }],
  [["dropped_frames"], { sort: "dropped_frames", which: "the most dropped frames first" }],
  [["dropped_frames_per_minute"], { sort: "dropped_frames", which: "the most dropped frames first", base: known("dropped_frames") }],
  ...Object.entries(SCORES).map(([name, field]) => /** @type {[string[], Behind]} */ ([[name], { sort: field, order: "ascending", which: "the lowest score first", base: known(field) }])),
];
const BY_METRIC = new Map(BEHIND.flatMap(([names, behind]) => names.map((name) => [name, behind])));

/** Fields whose percentiles have a name of their own. @type {Record<string, string>} */
const FIELDS = { live_latency_ms: "live_latency_ms_avg", view_watch_ms: "watch_ms" };

/** The field of a view whose percentile a metric is; null of all others. @param {string} metric */
export function fieldOf(metric) {
  const [, name] = /^(\w+)_p\d\d$/.exec(metric) ?? [];
  return name ? (FIELDS[name] ?? name) : null;
}

/** Fields that have a distribution, by metrics that are no percentile of them. @type {Record<string, string>} */
const DISTRIBUTED = { rebuffer_ms: "rebuffer_ms", watch_ms: "watch_ms", bitrate_bps: "avg_bitrate_bps", ...SCORES };

/** The field of a view that a metric is made of, where it has a distribution; else null. @param {string} metric */
export const distributedBy = (metric) => fieldOf(metric) ?? DISTRIBUTED[metric] ?? null;

/** @param {string} metric @returns {Behind | null} Null where no view has more to do with a figure than another. */
function behind(metric) {
  const field = fieldOf(metric);
  return field ? { sort: field, which: "the largest value first", base: known(field) } : (BY_METRIC.get(metric) ?? null);
}

/** Which of the views behind a figure are listed, or in which order; empty where all are, by time. @param {string} metric */
export const whichBehind = (metric) => behind(metric)?.which ?? "";

/**
 * The place of the views behind a figure.
 * @param {string} metric
 * @param {{customer: string, filters: string[]}} within - What the figure is of.
 */
export function viewsBehind(metric, { customer, filters }) {
  const { flag, value = "true", filter, sort, order = "" } = behind(metric) ?? {};
  const found = flag ? narrowed(filters, flag, value) : filter ? [...filters, JSON.stringify(filter)] : filters;
  return { screen: "views", customer, filters: found, more: sort ? { sort, order, ...columnsFor(sort, customer) } : {} };
}

/**
 * The place of all views on which a figure rests: those of its n.
 * @param {string} metric
 * @param {{customer: string, filters: string[]}} within
 */
export function viewsOf(metric, { customer, filters }) {
  const base = behind(metric)?.base;
  return { screen: "views", customer, filters: base ? [...filters, JSON.stringify(base)] : filters, more: {} };
}

/**
 * The place of the views that say how far they came, and came to a moment of the video at least. One that stands still at 0 says nothing.
 * @param {number} at_ms
 * @param {{customer: string, filters: string[]}} within
 */
export function viewsReached(at_ms, { customer, filters }) {
  const sort = "max_playhead_ms";
  return { screen: "views", customer, filters: [...filters, JSON.stringify({ number: sort, at_least: Math.max(1, at_ms) })], more: { sort, order: "", ...columnsFor(sort, customer) } };
}

/** The filters of views with any error, of the views of others. @param {string[]} filters */
export const withError = (filters) => [...filters, filterOf("error_code", [null], true)];

/** The place of the views that have a value, or none, in a field of which there is a distribution. @param {string} field @param {{customer: string, filters: string[]}} within @param {boolean} has */
export const viewsWith = (field, { customer, filters }, has) => ({ screen: "views", customer, filters: [...filters, JSON.stringify(has ? known(field) : { not: known(field) })], more: {} });

/** Views that failed: in playback, or at start-up. */
const FAILED = { or: ["playback_failed", "startup_failed"].map((dimension) => ({ dimension, in: ["true"] })) };

/** The filters of those that failed, of the views of others. @param {string[]} filters */
export const failedOf = (filters) => [...filters, JSON.stringify(FAILED)];

/** A stretch of time as the range of a place. @param {{from_ms: number, to_ms: number}} span */
export const rangeOf = ({ from_ms, to_ms }) => ({ range: "", from: String(from_ms), to: String(to_ms) });

/** What views are sorted by is seen. @param {string} sort @param {string} customer @returns {{columns?: string}} */
function columnsFor(sort, customer) {
  if (VIEW_COLUMNS.includes(sort)) return {};
  return { columns: [...(customer === "*" ? ["customer"] : []), ...VIEW_COLUMNS, sort].join(",") };
}

/**
 * The place of the views whose value is within a bin of a distribution. That of 0 has no width, and values are whole numbers.
 * @param {string} field
 * @param {{from_value: number, to_value: number}} bin
 * @param {{customer: string, filters: string[]}} within
 */
export function viewsOfBin(field, { from_value, to_value }, { customer, filters }) {
  const within = JSON.stringify({ number: field, at_least: from_value, below: to_value || 1 });
  return { screen: "views", customer, filters: [...filters, within], more: { sort: field, ...columnsFor(field, customer) } };
}
