// @ts-check
// Alerts in words: what a rule says, what an incident found, and a rule out of the form's texts. Pure.

import { chipOf } from "./filters.js";
import { bitrateText, countText, durationText } from "./format.js";

/** The metrics that a rule can measure; `isShare`: of viewers or views. */
export const METRICS = [
  { name: "rebuffering", title: "Viewers rebuffering", unit: "share", anomaly: "above" },
  { name: "failures", title: "Fatal errors", unit: "share", anomaly: "above" },
  { name: "playback_failures", title: "Playback failures", unit: "share", anomaly: "above" },
  { name: "startup_failures", title: "Startup failures", unit: "share", anomaly: "above" },
  { name: "exits_before_start", title: "Exits before start", unit: "share", anomaly: "above" },
  { name: "startup_ms", title: "Startup time", unit: "ms", anomaly: null },
  { name: "bitrate", title: "Bitrate", unit: "bps", anomaly: null },
  { name: "viewers", title: "Viewers", unit: "count", anomaly: null },
  { name: "views_started", title: "Views started a minute", unit: "count", anomaly: "below" },
  { name: "beacons", title: "Beacons a minute", unit: "count", anomaly: "below" },
];

/** @param {string} name */
export const metricOf = (name) => METRICS.find((one) => one.name === name) ?? { name, title: name, unit: "count", anomaly: null };

/** @param {string} metric @param {number} value */
export function figureText(metric, value) {
  const { unit } = metricOf(metric);
  if (unit === "share") return `${(100 * value).toFixed(2)} %`;
  if (unit === "bps") return bitrateText(value);
  return unit === "ms" ? durationText(value) : countText(Math.round(value));
}

/** @param {Record<string, string>} slice */
export const sliceText = (slice) => Object.entries(slice).map(([name, value]) => `${name} ${value}`).join(", ") || "all views";

/** A rule as a sentence. @param {any} rule */
export function ruleText(rule) {
  const { title, anomaly } = metricOf(rule.metric);
  const where = [sliceText(rule.filter ?? {}), rule.by && `each ${rule.by}`].filter(Boolean).join(", ");
  const lasting = rule.for_seconds ? ` for ${durationText(rule.for_seconds * 1_000)}` : "";
  if (rule.condition === "threshold") return `${title} ${rule.direction} ${figureText(rule.metric, rule.threshold)}${lasting} (${where})`;
  const times = anomaly === "below" ? `less than 1/${rule.ratio} of` : `${rule.ratio} times`;
  return `${title}: ${times} what is usual, and no chance${lasting} (${where})`;
}

/** The same as the filters of a link. @param {Record<string, string>} slice */
export const filtersOf = (slice) => Object.entries(slice).map(([dimension, value]) => JSON.stringify({ dimension, in: [value] }));

/** What of the page's filters a rule can have: single values, of at most two dimensions. @param {string[]} filters @returns {Record<string, string>} */
export function sliceOf(filters) {
  const plain = filters.map(chipOf).filter((chip) => chip.dimension && !chip.isNot && chip.values.length === 1 && chip.values[0] !== null);
  return Object.fromEntries(plain.slice(0, 2).map((chip) => [chip.dimension, String(chip.values[0])]));
}

/** The metric of a rule that measures the same as one of views. @param {string} metric @returns {string | null} */
export function ruleMetricOf(metric) {
  const found = /^(rebuffer|playback_failure|startup_failure|exit_before_start|startup_ms|bitrate)/.exec(metric);
  return found ? { rebuffer: "rebuffering", playback_failure: "playback_failures", startup_failure: "startup_failures", exit_before_start: "exits_before_start", startup_ms: "startup_ms", bitrate: "bitrate" }[found[1]] ?? null : null;
}

/** When the views are to be looked at: from some minutes before an incident to some after it. @param {any} incident @param {number} now_ms */
export function aroundOf(incident, now_ms) {
  const to_ms = Math.min((incident.closed_ms ?? now_ms) + 600_000, now_ms);
  return { from_ms: incident.opened_ms - 1_800_000, to_ms };
}

/** A rule out of the form. Shares are typed in percent. @param {FormData} form @param {Record<string, string>} [filter] */
export function ruleOf(form, filter = {}) {
  const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
  const metric = metricOf(text("metric"));
  const condition = text("condition");
  const rule = {
    customer: text("customer"),
    name: text("name"),
    metric: metric.name,
    condition,
    direction: condition === "anomaly" ? (metric.anomaly ?? "above") : text("direction"),
    for_seconds: Number(text("for_seconds") || 0),
    viewers_min: Number(text("viewers_min") || 0),
    severity: text("severity"),
    receivers: form.getAll("receivers").map(String),
    filter,
  };
  const by = text("by") ? { by: text("by") } : {};
  const typed = Number(text("figure"));
  if (condition === "anomaly") return { ...rule, ...by, ratio: typed };
  return { ...rule, ...by, threshold: metric.unit === "share" ? typed / 100 : typed };
}
