// @ts-check
// Alerts in words: what a rule says, what an incident found, and a rule out of the form's texts. Pure.

import { liveOf, UNKNOWN } from "../place/filters.js";
import { momentText } from "../place/ranges.js";
import { bitrateText, countText, durationText, shareText } from "../words/format.js";

/**
 * The metrics that a rule can measure; `dimensions` where they are not those of views, `hit`: what is counted where it is no viewers.
 * `term`: what the glossary calls it.
 * @type {{name: string, title: string, term?: string, unit: string, anomaly: string | null, dimensions?: string[], hit?: string}[]}
 */
export const METRICS = [
  { name: "rebuffering", title: "Viewers rebuffering", term: "live rebuffering", unit: "share", anomaly: "above" },
  { name: "failures", title: "Fatal errors", term: "playback failures", unit: "share", anomaly: "above" },
  { name: "playback_failures", title: "Playback failures", term: "playback failures", unit: "share", anomaly: "above" },
  { name: "startup_failures", title: "Start-up failures", term: "video start-up failures", unit: "share", anomaly: "above" },
  { name: "exits_before_start", title: "Exits before start", term: "exits before video start", unit: "share", anomaly: "above" },
  { name: "bad_views", title: "Views that are not good", unit: "share", anomaly: "above" },
  { name: "rebuffer_fraction", title: "Rebuffer percentage of finished views", term: "rebuffer percentage", unit: "share", anomaly: null },
  { name: "watch_ms", title: "Watch time of a finished view", term: "watch time of a view", unit: "ms", anomaly: null },
  { name: "startup_ms", title: "Start-up time", term: "video start-up time", unit: "ms", anomaly: null },
  { name: "bitrate", title: "Bitrate", term: "live bitrate", unit: "bps", anomaly: null },
  { name: "viewers", title: "Viewers", term: "live viewers", unit: "count", anomaly: null },
  { name: "views_started", title: "Views started a minute", term: "live views started", unit: "count", anomaly: "below" },
  { name: "beacons", title: "Beacons a minute", unit: "count", anomaly: "below" },
  { name: "rejected", title: "Rejected beacons", unit: "share", anomaly: "above", dimensions: ["release", "collector"], hit: "beacons" },
];

/** @param {string} name */
export const metricOf = (name) => METRICS.find((one) => one.name === name) ?? { name, title: name, unit: "count", anomaly: null };

/** What the hits of a metric are. @param {string} metric */
export const hitOf = (metric) => metricOf(metric).hit ?? "viewers";

/** Of how many were hit: the most is said again when the incident closes. */
export const UP_TO_OPENING = "up to its opening";

/** So many of them: 1 viewer, 13 viewers. @param {string} metric @param {number} count */
export const hitsText = (metric, count) => `${countText(count)} ${count === 1 ? hitOf(metric).replace(/s$/, "") : hitOf(metric)}`;

/** The dimensions that a rule on a metric may name. @param {string} metric @param {string[]} live */
export const dimensionsOf = (metric, live) => metricOf(metric).dimensions ?? live;

/** @param {string} metric @param {number} value */
export function figureText(metric, value) {
  const { unit } = metricOf(metric);
  if (unit === "share") return shareText(value);
  if (unit === "bps") return bitrateText(value);
  return unit === "ms" ? durationText(value) : countText(Math.round(value));
}

/** The n of a figure that is no count itself; else empty. @param {string} metric @param {number | null} of */
export const baseText = (metric, of) => (of === null || metricOf(metric).unit === "count" ? "" : `n ${countText(of)}`);

/** Of when the figure of an incident is: of its opening, or of a later moment that was worse. @param {{at_ms: number}} found @param {{opened_ms: number}} event @param {string} tz */
export const whenText = ({ at_ms }, { opened_ms }, tz) => (at_ms <= opened_ms ? "at opening" : `at ${momentText(at_ms, tz, { seconds: true })}`);

/** @param {Record<string, string>} slice @param {string} [all] @param {(name: string) => string} [titleOf] - What people call a dimension. */
export const sliceText = (slice, all = "all views", titleOf = String) => Object.entries(slice).map(([name, value]) => `${titleOf(name)} ${value}`).join(", ") || all;

/** What a metric is of, where no slice is named. @param {string} metric */
export const allOf = (metric) => (hitOf(metric) === "viewers" ? "all views" : `all ${hitOf(metric)}`);

/** A rule as a sentence. @param {any} rule @param {(name: string) => string} [titleOf] */
export function ruleText(rule, titleOf = String) {
  const { title, anomaly } = metricOf(rule.metric);
  const within = Object.keys(rule.filter ?? {}).length || !rule.by ? sliceText(rule.filter ?? {}, allOf(rule.metric), titleOf) : "";
  const where = [within, rule.by && `each ${titleOf(rule.by)}`].filter(Boolean).join(", ");
  const lasting = rule.for_seconds ? ` for ${durationText(rule.for_seconds * 1_000)}` : "";
  if (rule.condition === "threshold") return `${title} ${rule.direction} ${figureText(rule.metric, rule.threshold)}${lasting} (${where})`;
  const times = anomaly === "below" ? `less than 1/${rule.ratio} of` : `${rule.ratio} times`;
  const least = rule.threshold === null || rule.threshold === undefined ? "" : `, ${rule.direction ?? anomaly} ${figureText(rule.metric, rule.threshold)}`;
  return `${title}: ${times} what is usual${least}, and no chance${lasting} (${where})`;
}

/** What of the page's filters a rule can have: single values, of at most two dimensions. @param {string[]} filters @returns {Record<string, string>} */
export function sliceOf(filters) {
  const plain = filters.flatMap((text) => liveOf(text) ?? []).filter((one) => one.value !== UNKNOWN);
  return Object.fromEntries(plain.slice(0, 2).map((one) => [one.dimension, one.value]));
}

/** The metric of a rule that measures the same as one of views. @param {string} metric @returns {string | null} */
export function ruleMetricOf(metric) {
  const found = /^(rebuffer|playback_failure|startup_failure|exit_before_start|startup_ms|bitrate)/.exec(metric);
  return found ? { rebuffer: "rebuffering", playback_failure: "playback_failures", startup_failure: "startup_failures", exit_before_start: "exits_before_start", startup_ms: "startup_ms", bitrate: "bitrate" }[found[1]] ?? null : null;
}

/** Incidents as they are listed: those that are open first, however long ago they began; then the newest others. @param {any[]} open @param {any[]} newest */
export function openFirst(open, newest) {
  const ids = new Set(open.map((one) => one.id));
  const others = newest.filter((one) => !ids.has(one.id));
  return [...open, ...others.filter((one) => !one.closed_ms), ...others.filter((one) => one.closed_ms)];
}

/** The metric of views nearest to that of a rule: what Explore draws of an incident. @type {Record<string, string>} */
const OF_VIEWS = {
  rebuffering: "rebuffer_fraction",
  rebuffer_fraction: "rebuffer_fraction",
  failures: "playback_failure_fraction",
  playback_failures: "playback_failure_fraction",
  startup_failures: "startup_failure_fraction",
  exits_before_start: "exit_before_start_fraction",
  startup_ms: "startup_ms_p50",
  bad_views: "spi_good_fraction",
  bitrate: "bitrate_bps",
  watch_ms: "watch_ms",
  viewers: "views",
  views_started: "views",
};

/** @param {string} metric - Of a rule. */
export const viewMetricOf = (metric) => OF_VIEWS[metric] ?? "";

export const DAY_MINUTES = 1_440;
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Days of quiet hours as the form names them. */
export const dayNames = () => DAYS;

/** Minutes of a day as a time. @param {number} minutes */
export const clockText = (minutes) => `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

/** A time as minutes of a day. @param {string} text */
function minutesOf(text) {
  const [hours, minutes] = text.split(":").map(Number);
  return 60 * hours + (minutes || 0);
}

/** Quiet hours in words. @param {{time_zone: string, spans: any[]} | undefined} quiet */
export function quietText(quiet) {
  if (!quiet?.spans.length) return "";
  const spans = quiet.spans.map((one) => {
    const days = one.days.length === 7 ? "" : ` ${one.days.map((/** @type {number} */ day) => DAYS[day]).join(" ")}`;
    return `${clockText(one.from_minute)} to ${clockText(one.to_minute)}${days}`;
  });
  return `quiet ${spans.join(", ")} (${quiet.time_zone})`;
}

/** A rule out of the form. Shares are typed in percent. @param {FormData} form @param {Record<string, string>} [within] */
export function ruleOf(form, within = {}) {
  const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
  const metric = metricOf(text("metric"));
  const condition = text("condition");
  const dimensions = form.getAll("filter_dimension").map(String);
  const values = form.getAll("filter_value").map(String);
  const filter = { ...within, ...Object.fromEntries(dimensions.map((name, at) => [name, values[at]?.trim() ?? ""]).filter(([name]) => name)) };
  const rule = {
    customer: text("customer"),
    name: text("name"),
    metric: metric.name,
    condition,
    direction: condition === "anomaly" ? (metric.anomaly ?? "above") : text("direction"),
    filter,
    for_seconds: Number(text("for_seconds") || 0),
    viewers_min: Number(text("viewers_min") || 0),
    severity: text("severity"),
    is_enabled: form.get("is_enabled") !== null,
    quiet: quietOf(form),
    receivers: form.getAll("receivers").map(String),
  };
  const by = text("by") ? { by: text("by") } : {};
  const typed = Number(text("figure"));
  const least = text("least");
  const limit = (/** @type {number} */ figure) => (metric.unit === "share" ? figure / 100 : figure);
  if (condition === "anomaly") return { ...rule, ...by, ratio: typed, ...(least ? { threshold: limit(Number(least)) } : {}) };
  return { ...rule, ...by, threshold: limit(typed) };
}

/** @param {FormData} form */
function quietOf(form) {
  const from = form.getAll("quiet_from").map(String);
  const to = form.getAll("quiet_to").map(String);
  const spans = from.flatMap((text, at) => {
    if (!text || !to[at]) return [];
    const days = form.getAll(`quiet_days_${at}`).map(Number);
    // Midnight ends a day.
    return [{ from_minute: minutesOf(text), to_minute: minutesOf(to[at]) || DAY_MINUTES, days }];
  });
  return { time_zone: String(form.get("time_zone") || "UTC"), spans };
}

/** The figure of a rule as the form shows it: a percentage, where it is a share. @param {any} rule */
export function figureOf(rule) {
  return rule.condition === "anomaly" ? String(rule.ratio) : limitOf(rule);
}

/** The threshold of a rule as the form shows it. @param {any} rule */
export function limitOf(rule) {
  if (rule.threshold === null || rule.threshold === undefined) return "";
  return String(metricOf(rule.metric).unit === "share" ? Number((100 * rule.threshold).toPrecision(12)) : rule.threshold);
}

/** What a trial found, as a sentence. @param {any} tried */
export function triedText(tried) {
  const days = Math.round((tried.until_ms - tried.from_ms) / 86_400_000);
  const times = tried.fired === 1 ? "once" : `${tried.fired} times`;
  const all = (tried.until_ms - tried.from_ms) / 60_000;
  const part = tried.known_minutes < 0.99 * all ? ` Only ${countText(tried.known_minutes)} of ${countText(all)} minutes are known.` : "";
  return `It would have fired ${times} in the last ${days} days.${part}`;
}
