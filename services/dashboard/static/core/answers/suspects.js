// @ts-check
// Ranked suspects: how the API is asked for them, and a suspect's excess and evidence in words. Pure.

import { comparedRange, resolved } from "../place/ranges.js";
import { countText, durationText } from "../words/format.js";

/** What a sum adds up is counted, or is time. `one` and `many` name it. @typedef {{one: string, many: string, isTime?: boolean, isBare?: boolean}} Events */

/** What there is more of than expected, by the metric of the question. @type {Record<string, Events>} */
const EVENTS = {
  playback_failure_fraction: { one: "failure", many: "failures" },
  startup_failure_fraction: { one: "start-up failure", many: "start-up failures" },
  exit_before_start_fraction: { one: "exit before start", many: "exits before start" },
  view_dropped_fraction: { one: "dropped view", many: "dropped views" },
  rebuffers_per_minute: { one: "rebuffer event", many: "rebuffer events" },
  rebuffer_fraction: { one: "rebuffering", many: "rebuffering", isTime: true },
  rebuffer_ratio: { one: "rebuffering", many: "rebuffering", isTime: true },
  seek_latency_ms: { one: "seeking", many: "seeking", isTime: true },
  request_latency_ms: { one: "waiting for requests", many: "waiting for requests", isTime: true },
  dropped_frames_per_minute: { one: "dropped frame", many: "dropped frames" },
  // A sum of ratios over time has no unit that anybody knows.
  upscale_fraction: { one: "upscaling", many: "upscaling", isBare: true },
};
/** Of all others: views on the bad side of a threshold. */
const BAD_VIEWS = { one: "bad view", many: "bad views" };

/** What excess and evidence are, as the glossary says it. */
export const EXCESS_MEANS = [
  "Excess: what there is beyond the number expected of this group, had it changed as all others did.",
  "Evidence: the natural logarithm of how much likelier these figures are with a cause in this group than by chance, by the usual changes from hour to hour, or by the number of groups that were tried.",
  "Each 2.3 more is ten times likelier. Groups of 3 or less are not certain.",
].join(" ");

/** @param {string} metric @param {number} excess - Bad views, or ms of a sum. */
export function excessText(metric, excess) {
  const { one, many, isTime, isBare } = { isTime: false, isBare: false, ...(EVENTS[metric] ?? BAD_VIEWS) };
  if (isBare) return `more ${many} than expected`;
  const count = Math.round(excess);
  return `${isTime ? durationText(excess) : countText(count)} more ${count === 1 ? one : many} than expected`;
}

/** @param {number} nats */
export const evidenceText = (nats) => `evidence ${nats.toFixed(nats < 10 ? 1 : 0)}`;

/** How the API is asked for suspects of a metric: as `/v1/metrics` says it. @typedef {{by: "ratio" | "above" | "below", parameter: string | null, largest: number | null, rank: number | null}} AskedBy */

/**
 * The parameters of the question for suspects of a picture: its metric and threshold, and what it is compared with as what is usual.
 * @param {string} metric
 * @param {AskedBy} asked
 * @param {string} threshold - From where on a value is bad, in the API's unit; empty: as the API has it.
 * @param {{from_ms: number, to_ms: number} | null} baseline - Null: the API's own.
 * @returns {Record<string, string | number>}
 */
export const questionOf = (metric, asked, threshold, baseline) => ({
  metric,
  ...(asked.parameter && threshold ? { [asked.parameter]: threshold } : {}),
  ...(baseline ? { baseline_from: baseline.from_ms, baseline_to: baseline.to_ms } : {}),
});

/**
 * What a picture's range is compared with, as the baseline of its suspects: a range beside it. Null without one.
 * @param {string} compare
 * @param {{range: string, from: string, to: string, tz: string}} place
 * @param {number} now_ms
 * @returns {{from_ms: number, to_ms: number, doesOverlap: boolean} | null}
 */
export function baselineOf(compare, place, now_ms) {
  const [range, usual] = [resolved(place, now_ms), comparedRange(compare, place, now_ms)];
  return range && usual && { ...usual, doesOverlap: usual.from_ms < range.to_ms && range.from_ms < usual.to_ms };
}

/** A threshold is typed in these: how many of the API's unit each is. @type {Record<string, {per: number, name: string}>} */
const TYPED = { ms: { per: 1_000, name: "s" }, bps: { per: 1e6, name: "Mbps" } };

/** @param {string} unit - Of the metric. */
export const typedIn = (unit) => TYPED[unit] ?? { per: 1, name: "" };

/** A threshold as it is typed. @param {string} unit @param {number} value - In the API's unit. */
export const typedText = (unit, value) => String(value / typedIn(unit).per);

/** The same of one that nobody typed, in three digits. @param {string} unit @param {number | null} value - Null: no view has a value. */
export const foundText = (unit, value) => (value === null ? "" : String(Number((value / typedIn(unit).per).toPrecision(3))));

/** The same as the API takes it. @param {string} unit @param {number} typed */
export const sentText = (unit, typed) => String(typedIn(unit).per > 1 ? Math.round(typed * typedIn(unit).per) : typed);

/** What suspects are ranked by; the API finds the same ones. */
export const RANKS = { excess: "excess", surprise: "evidence" };

/**
 * @param {any[]} suspects
 * @param {string} by - Of `RANKS`.
 */
export const ranked = (suspects, by) => [...suspects].sort((one, other) => (by === "surprise" ? other.surprise - one.surprise : other.excess - one.excess));
