// @ts-check
// How the page words numbers, durations and ages. Pure.

/**
 * A finite number as `Intl.NumberFormat("en")` writes it. To make the first of those takes some 30 ms, for which the first figure would wait.
 * What is rounded are the digits that JavaScript writes, and halves go away from zero: 1.505 is 1.51, though the double nearest to it lies below.
 * @param {number} value
 * @param {0 | 1 | 2} decimals
 */
function fixed(value, decimals) {
  if (!Number.isFinite(value)) return String(value);
  const [digits, power = "0"] = String(Math.abs(value)).split("e");
  const [whole, part = ""] = digits.split(".");
  // In units of the last decimal that is written.
  const shift = decimals + Number(power) - part.length;
  const unit = 10n ** BigInt(Math.abs(shift));
  const written = BigInt(whole + part);
  const units = String(shift < 0 ? (written + unit / 2n) / unit : written * unit).padStart(decimals + 1, "0");
  const end = units.length - decimals;
  return `${value < 0 ? "-" : ""}${units.slice(0, end).replace(/\B(?=(\d{3})+$)/g, ",")}${decimals ? "." : ""}${units.slice(end)}`;
}

export const NONE = "–";

/** @param {number | null | undefined} value */
export const countText = (value) => (value === null || value === undefined ? NONE : fixed(value, 0));

/** @param {number | null | undefined} value */
export function shareText(value) {
  if (value === null || value === undefined) return NONE;
  return `${fixed(100 * value, Math.abs(value) < 0.1 && value !== 0 ? 2 : 1)}%`;
}

/** @param {number | null | undefined} ms */
export function durationText(ms) {
  if (ms === null || ms === undefined) return NONE;
  const size = Math.abs(ms);
  // What would be rounded to the next unit is written in it.
  if (size < 999.5) return `${fixed(ms, 0)} ms`;
  if (size < 10_000) return `${fixed(ms / 1_000, 2)} s`;
  if (size < 120_000) return `${fixed(ms / 1_000, 1)} s`;
  if (size < 7_200_000) return `${fixed(ms / 60_000, 1)} min`;
  return `${fixed(ms / 3_600_000, 1)} h`;
}

/** @param {number | null | undefined} bps */
export const bitrateText = (bps) => (bps === null || bps === undefined ? NONE : `${fixed(bps / 1e6, 2)} Mbps`);

/** @param {number | null | undefined} bytes */
export function sizeText(bytes) {
  if (bytes === null || bytes === undefined) return NONE;
  if (bytes < 999.5) return `${fixed(bytes, 0)} B`;
  return bytes < 999_950 ? `${fixed(bytes / 1e3, 1)} kB` : `${fixed(bytes / 1e6, 2)} MB`;
}

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
  if (unit === "per_minute") return `${fixed(value, 2)}/min`;
  if (unit === "score") return fixed(value, 1);
  return fixed(value, 0);
}

/** A figure beside an axis: without zeros behind the point, and of what is counted whole numbers alone. @param {string} unit @param {number} value */
function axisText(unit, value) {
  if (["count", "views", "viewers"].includes(unit) && !Number.isInteger(value)) return "";
  return valueText(unit, value).replace(/\.0+(?=\D|$)/, "");
}

/** Figures beside an axis, each once: of tiny figures several would be "0 Mbps". @param {string} unit @param {number[]} values */
export function axisTexts(unit, values) {
  const texts = values.map((value) => axisText(unit, value));
  return texts.map((text, at) => (text === texts[at - 1] ? "" : text));
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
  if (unit === "fraction") return `${sign}${fixed(100 * Math.abs(value - before), 2)} pp`;
  if (before === 0) return value === 0 ? "+0.0%" : null;
  return `${sign}${fixed(100 * Math.abs(value / before - 1), 1)}%`;
}
