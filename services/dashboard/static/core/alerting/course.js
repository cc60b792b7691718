// @ts-check
// The course of an incident: its metric over time from before it to after it, and the figure of now. Pure.

import { hitOf, metricOf } from "./alerts.js";
import { pastOf } from "../place/filters.js";
import { MINUTE_MS } from "../place/ranges.js";
import { ageText, countText, durationText } from "../words/format.js";

/** When the views are to be looked at: from some minutes before an incident to some after it. @param {any} incident @param {number} now_ms */
export function aroundOf(incident, now_ms) {
  const to_ms = Math.min((incident.closed_ms ?? now_ms) + 600_000, now_ms);
  return { from_ms: incident.opened_ms - 1_800_000, to_ms };
}

/** Of a live field of topic `live`, as a rule's metric counts it: what is divided by what, and what the quotient is multiplied by. */
const FIELDS = /** @type {Record<string, [string, string | null]>} */ ({
  rebuffering: ["rebuffering_now", "viewers_now"],
  failures: ["failures", "views_started"],
  playback_failures: ["playback_failures", "views_finished"],
  startup_failures: ["startup_failures", "views_finished"],
  exits_before_start: ["exits_before_start", "views_finished"],
  bad_views: ["finished_bad", "finished_rated"],
  rebuffer_fraction: ["finished_rebuffer_ms", "finished_watch_ms"],
  watch_ms: ["finished_watch_ms", "views_finished"],
  startup_ms: ["startup_ms", "startups"],
  bitrate: ["bitrate_bps_now", "bitrate_viewers_now"],
  viewers: ["viewers_now", null],
  views_started: ["views_started", null],
  beacons: ["beacons", null],
  rejected: ["rejected", "received"],
});

/** Whether a field is the state of a moment; all others count what happened, and rules take them by the minute. @param {string} field */
const isGauge = (field) => field.endsWith("_now");

/** Whether a field is a time: what is divided by one has no n. @param {string | null} field */
const isTime = (field) => field !== null && field.endsWith("_ms");

/** So many of a field in some seconds: viewers are counted at each step, so it is their mean. @param {string} field @param {number} count @param {number} seconds */
const counted = (field, count, seconds) => (isGauge(field) ? Math.round((count * STEP_MS) / (1_000 * seconds)) : count);

/** The n of what was found in a slice; null where it is of time. @param {string} metric @param {{of: number, seconds: number}} found @returns {number | null} */
export function baseOf(metric, { of, seconds }) {
  const [, base] = FIELDS[metric];
  return isTime(base) ? null : counted(base ?? "", of, seconds);
}

/** What was counted of what, and in which time. @param {string} metric @param {{hits: number, of: number, seconds: number}} found */
export function countedText(metric, { hits, of, seconds }) {
  const [top, base] = FIELDS[metric];
  if (base === null) return `${countText(counted(top, hits, seconds))} in ${seconds} s`;
  if (isTime(base)) return `${durationText(hits)} of ${durationText(of)} in ${seconds} s`;
  const all = countText(counted(base, of, seconds));
  // A sum of times or of bitrates says nothing to anybody.
  return isTime(top) || top.startsWith("bitrate") ? `${all} in ${seconds} s` : `${countText(counted(top, hits, seconds))} of ${all} in ${seconds} s`;
}

/**
 * Among how many the usual figure of what was found was counted; empty of a limit, and in incidents of earlier versions. A viewer
 * counts at each step, so viewers are so many minutes of theirs; what is counted by time alone has no other n than that time.
 * @param {string} metric
 * @param {{usual_of?: number | null}} found
 */
export function usualBaseText(metric, { usual_of }) {
  if (usual_of === null || usual_of === undefined) return "";
  const [, of] = FIELDS[metric];
  if (of === null) return `from ${ageText(usual_of * STEP_MS)}`;
  if (isGauge(of)) return `n ${countText(Math.round((usual_of * STEP_MS) / MINUTE_MS))} viewer minutes`;
  return `n ${countText(usual_of)} ${metricOf(metric).dimensions ? hitOf(metric) : "views"}`;
}

/** What is drawn below a metric: of how many it is. @param {string} metric */
const besideOf = (metric) => (metricOf(metric).dimensions ? "received" : "viewers_now");

/** Live figures of each 5 s are kept for a day, and one answer has so many of them. */
const STEP_MS = 5_000;
const STEPS_KEPT_MS = 20 * 60 * MINUTE_MS;
const STEPS_MAX = 1_000;

/** The parameters of `/v1/live/history` that draw a slice of an incident: a short one by 5 s, in which it shows its worst, as long as these are kept. @param {any} incident @param {Record<string, string>} slice @param {number} now_ms @param {string[]} order */
export function historyOf(incident, slice, now_ms, order) {
  const { from_ms, to_ms } = aroundOf(incident, now_ms);
  // What is received and rejected is counted by minute alone.
  const isShort = (to_ms - from_ms) / STEP_MS <= STEPS_MAX && now_ms - from_ms <= STEPS_KEPT_MS && !metricOf(incident.event.metric).dimensions;
  const step_ms = isShort ? STEP_MS : Math.max(1, Math.ceil((to_ms - from_ms) / MINUTE_MS / STEPS_MAX)) * MINUTE_MS;
  return asked(incident, slice, { from_ms, until_ms: Math.max(to_ms, from_ms + step_ms), step_ms }, order);
}

/** Minutes that may have been landed late. */
const NEWEST_MS = 3 * MINUTE_MS;

/** The same of the newest whole minutes. @param {any} incident @param {Record<string, string>} slice @param {number} now_ms @param {string[]} order */
export function newestOf(incident, slice, now_ms, order) {
  const until_ms = Math.floor(now_ms / MINUTE_MS) * MINUTE_MS;
  return asked(incident, slice, { from_ms: until_ms - NEWEST_MS, until_ms, step_ms: MINUTE_MS }, order);
}

/** @param {any} incident @param {Record<string, string>} slice @param {{from_ms: number, until_ms: number, step_ms: number}} steps @param {string[]} order */
function asked({ customer, event }, slice, steps, order) {
  const fields = [...new Set([...FIELDS[event.metric].filter(Boolean), besideOf(event.metric)])];
  const names = Object.keys(slice).sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return {
    parameters: { customer, ...steps, dimension: names.join(","), fields: fields.join(",") },
    value: pastOf(`${names.join(",")}=${names.map((name) => slice[name]).join("\u001f")}`)[1],
  };
}

/** The lines of that answer: of the metric, and of what it is a part of. `counts`: the n of each value; null of what is counted itself. @param {any} picture @param {string} metric @param {string} value */
export function historyLines(picture, metric, value) {
  const found = picture.values.find((/** @type {any} */ one) => one.value === value)?.series ?? {};
  const [hits, of] = FIELDS[metric];
  const beside = found[besideOf(metric)] ?? [];
  const length = beside.length;
  const times = Array.from({ length }, (_, at) => (picture.from_ms + at * picture.step_ms) / 1_000);
  const values = times.map((_, at) => {
    const top = found[hits]?.[at] ?? null;
    if (top === null) return null;
    if (of === null) return isGauge(hits) ? top : (top * MINUTE_MS) / picture.step_ms;
    return found[of]?.[at] ? top / found[of][at] : null;
  });
  const counts = of === null || isTime(of) ? null : times.map((_, at) => found[of]?.[at] ?? 0);
  return { times, values, counts, beside };
}

/**
 * The last figure of an answer, and of how many it is; null where nothing is known.
 * @param {any} picture - Minutes, as `historyLines` takes them.
 * @param {string} metric
 * @param {string} value
 * @returns {{value: number, n: number | null, to_ms: number} | null}
 */
export function latestOf(picture, metric, value) {
  const { times, values, counts } = historyLines(picture, metric, value);
  const at = values.findLastIndex((one) => one !== null);
  if (at < 0) return null;
  return { value: values[at], n: counts && counts[at], to_ms: times[at] * 1_000 + picture.step_ms };
}

/**
 * The figure of now in a live picture: of what is the state of a moment, in all views or by one dimension; else null.
 * @param {any} picture - As /v1/live has it.
 * @param {{customer: string, event: any}} incident
 * @returns {{value: number, n: number | null} | null}
 */
export function nowOf(picture, { customer, event }) {
  const [hits, of] = FIELDS[event.metric];
  const slice = Object.entries(event.slices[0]?.slice ?? {});
  if (picture?.customer !== customer || picture.slice || picture.slices_of || !isGauge(hits) || slice.length > 1) return null;
  const figures = slice.length ? picture.slices?.[slice[0][0]]?.find((/** @type {any} */ one) => one.value === slice[0][1]) : picture.now;
  if (!figures) return null;
  if (of === null) return { value: figures[hits], n: null };
  return figures[of] ? { value: figures[hits] / figures[of], n: figures[of] } : null;
}
