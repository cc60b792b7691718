// @ts-check
// How the page words numbers, durations and ages. Pure.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const two = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const NONE = "–";

/** @param {number | null | undefined} value */
export const countText = (value) => (value === null || value === undefined ? NONE : whole.format(value));

/** @param {number | null | undefined} value */
export function shareText(value) {
  if (value === null || value === undefined) return NONE;
  return `${(Math.abs(value) < 0.1 && value !== 0 ? two : tenth).format(100 * value)}%`;
}

/** @param {number | null | undefined} ms */
export function durationText(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (Math.abs(ms) < 1_000) return `${whole.format(ms)} ms`;
  if (ms < 10_000) return `${two.format(ms / 1_000)} s`;
  if (ms < 120_000) return `${tenth.format(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${tenth.format(ms / 60_000)} min`;
  return `${tenth.format(ms / 3_600_000)} h`;
}

/** @param {number | null | undefined} bps */
export const bitrateText = (bps) => (bps === null || bps === undefined ? NONE : `${two.format(bps / 1e6)} Mbps`);

/** Of an id what tells it from others, for a column; all of it belongs into a tooltip. @param {string} id */
export const shortened = (id) => (id.length > 14 ? `${id.slice(0, 12)}…` : id);

/**
 * A figure in its unit, as `/v1/metrics` names it.
 * @param {string} unit
 * @param {number | null | undefined} value
 */
export function valueText(unit, value) {
  if (value === null || value === undefined) return NONE;
  if (unit === "fraction") return shareText(value);
  if (unit === "ms") return durationText(value);
  if (unit === "bps") return bitrateText(value);
  if (unit === "per_minute") return `${two.format(value)}/min`;
  if (unit === "score") return tenth.format(value);
  return whole.format(value);
}

/** A figure beside an axis: without zeros behind the point, and of what is counted whole numbers alone. @param {string} unit @param {number} value */
export function axisText(unit, value) {
  if (["count", "views", "viewers"].includes(unit) && !Number.isInteger(value)) return "";
  return valueText(unit, value).replace(/\.0+(?=\D|$)/, "");
}

/** How old something is. @param {number} ms */
export function ageText(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return `${s} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} days`;
}

/**
 * The difference to an earlier figure: shares in percentage points, everything else in percent of it. Null without both.
 * @param {string} unit
 * @param {number | null | undefined} value
 * @param {number | null | undefined} before
 */
export function changeText(unit, value, before) {
  if (value === null || value === undefined || before === null || before === undefined) return null;
  const sign = value >= before ? "+" : "−";
  if (unit === "fraction") return `${sign}${two.format(100 * Math.abs(value - before))} pp`;
  if (before === 0) return value === 0 ? "+0.0%" : null;
  return `${sign}${tenth.format(100 * Math.abs(value / before - 1))}%`;
}
