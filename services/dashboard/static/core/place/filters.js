// @ts-check
// Filters as chips that people read and click, and as the JSON of the API. Pure.

import { bitrateText, durationText } from "../words/format.js";
import { labelText } from "../words/labels.js";
import { momentText } from "./ranges.js";

/**
 * @typedef {object} Chip
 * @property {string} dimension - Empty for a filter that is not of this simple form.
 * @property {(string | null)[]} values - Null is an unknown value.
 * @property {boolean} isNot
 * @property {string} text - The filter as it is written.
 */

/** @param {string} text @returns {Chip} */
export function chipOf(text) {
  try {
    const found = JSON.parse(text);
    const inner = found.not ?? found;
    if (typeof inner.dimension === "string" && Array.isArray(inner.in)) {
      return { dimension: inner.dimension, values: inner.in, isNot: Boolean(found.not), text };
    }
  } catch {
    // The API says what is wrong with it.
  }
  return { dimension: "", values: [], isNot: false, text };
}

/**
 * @param {string} dimension
 * @param {(string | null)[]} values
 * @param {boolean} [isNot]
 */
export function filterOf(dimension, values, isNot = false) {
  const one = { dimension, in: values };
  return JSON.stringify(isNot ? { not: one } : one);
}

/**
 * Numbers of a view that a filter bounds, as its field types them: `per` is what one of the unit is in the API.
 * @type {Record<string, {unit: string, per: number}>}
 */
export const BOUNDED = {
  startup_ms: { unit: "s", per: 1_000 },
  rebuffer_ms: { unit: "s", per: 1_000 },
  rebuffer_count: { unit: "", per: 1 },
  watch_ms: { unit: "s", per: 1_000 },
  playing_ms: { unit: "s", per: 1_000 },
  seek_count: { unit: "", per: 1 },
  avg_bitrate_bps: { unit: "Mbps", per: 1e6 },
  live_latency_ms_avg: { unit: "s", per: 1_000 },
  dropped_frames: { unit: "", per: 1 },
  score_view: { unit: "of 100", per: 1 },
  beacon_count: { unit: "", per: 1 },
};

/** What a filter of a dimension may say, and one of a number. @type {Record<string, string>} */
export const CONDITIONS = { is: "is", not: "is not", contains: "contains", lacks: "does not contain" };
/** @type {Record<string, string>} */
export const BOUNDS = { at_least: "at least", below: "below" };

/** @param {string} dimension @param {string} text @param {boolean} isNot */
export function containing(dimension, text, isNot) {
  const one = { dimension, contains: text };
  return JSON.stringify(isNot ? { not: one } : one);
}

/** @param {string} field - One of `BOUNDED`. @param {string} bound - One of `BOUNDS`. @param {number} typed - In the field's unit. */
export const bounded = (field, bound, typed) => JSON.stringify({ number: field, [bound]: Number((typed * BOUNDED[field].per).toPrecision(15)) });

/**
 * The filters with one dimension narrowed to a value: a chip of that dimension is replaced.
 * @param {string[]} filters
 * @param {string} dimension
 * @param {string | null} value
 */
export const narrowed = (filters, dimension, value) => replaced(filters, dimension, filterOf(dimension, [value]));

/** The same with a value as live figures name it. @param {string[]} filters @param {string} dimension @param {string} value */
export const narrowedLive = (filters, dimension, value) => replaced(filters, dimension, filterOfLive(dimension, value));

/** @param {string[]} filters @param {string} dimension @param {string} by */
function replaced(filters, dimension, by) {
  const others = filters.filter((text) => {
    const chip = chipOf(text);
    return (chip.dimension !== dimension || chip.isNot) && liveOf(text)?.dimension !== dimension;
  });
  return [...others, by];
}

/**
 * A filter of the API as filters of an address: those that it wants all.
 * @param {any} one
 * @returns {string[]}
 */
export const apart = (one) => (one.and ?? [one]).map((/** @type {any} */ part) => JSON.stringify(part));

/**
 * The values that are typed: one that is known is itself, also where it has the sign that stands between several.
 * @param {string} text
 * @param {string[]} known
 * @returns {(string | null)[]}
 */
export function typedValues(text, known) {
  const parts = known.includes(text) ? [text] : text.split("|").map((one) => one.trim()).filter(Boolean);
  return parts.map((one) => (one === UNKNOWN ? null : one));
}

/**
 * The opposite of a filter.
 * @param {string} text
 */
export function inverted(text) {
  const one = JSON.parse(text);
  return JSON.stringify(one.not ?? { not: one });
}

/**
 * A filter that holds where either does.
 * @param {string} text
 * @param {string} other
 */
export function either(text, other) {
  const one = JSON.parse(text);
  return JSON.stringify({ or: [...(one.or ?? [one]), JSON.parse(other)] });
}

/**
 * A filter whose last alternative holds only where the other one does too: (A and B) or (C and D) is made so.
 * @param {string} text
 * @param {string} other
 */
export function both(text, other) {
  const one = JSON.parse(text);
  const alternatives = one.or ?? [one];
  const last = alternatives.at(-1);
  const joined = { and: [...(last.and ?? [last]), JSON.parse(other)] };
  return JSON.stringify(alternatives.length > 1 ? { or: [...alternatives.slice(0, -1), joined] } : joined);
}

/**
 * A filter as people read it.
 * @param {string} text
 * @param {(name: string) => string} titleOf
 * @param {string} [tz] - Of moments.
 */
export function filterText(text, titleOf, tz = "UTC") {
  try {
    return wordsOf(JSON.parse(text), titleOf, tz);
  } catch {
    // The API says what is wrong with it.
    return text;
  }
}

/**
 * @param {any} one
 * @param {(name: string) => string} titleOf
 * @param {string} tz
 * @returns {string}
 */
function wordsOf(one, titleOf, tz) {
  const isNot = Boolean(one.not);
  const inner = one.not ?? one;
  const within = (/** @type {any} */ part) => (part.and || part.or ? `(${wordsOf(part, titleOf, tz)})` : wordsOf(part, titleOf, tz));
  if (inner.not) return `not (${wordsOf(inner, titleOf, tz)})`;
  for (const word of ["and", "or"]) {
    if (!Array.isArray(inner[word])) continue;
    const words = inner[word].map(within).join(` ${word} `);
    return isNot ? `not (${words})` : words;
  }
  const is = isNot ? "is not" : "is";
  if (Array.isArray(inner.in)) return `${titleOf(inner.dimension)} ${is} ${inner.in.map((/** @type {string | null} */ value) => (value === null ? UNKNOWN : labelText(value))).join(" or ")}`;
  if (inner.contains !== undefined) return `${titleOf(inner.dimension)} ${isNot ? "does not contain" : "contains"} ${labelText(inner.contains)}`;
  const field = String(inner.number);
  // No number of a view is below 0.
  if (isNot && inner.at_least === 0 && inner.below === undefined) return `${titleOf(field)} is (unknown)`;
  const isTime = /_(start|end|append)_ms$/.test(field);
  const bound = (/** @type {number} */ value) => (isTime ? momentText(value, tz, { seconds: true }) : /_ms(_avg)?$/.test(field) ? durationText(value) : field.endsWith("_bps") ? bitrateText(value) : value);
  if (isTime) {
    const span = [inner.at_least !== undefined && `from ${bound(inner.at_least)}`, inner.below !== undefined && `before ${bound(inner.below)}`].filter(Boolean).join(" and ");
    return `${titleOf(field)} ${isNot ? `not (${span})` : span}`;
  }
  const bounds = [inner.at_least !== undefined && `at least ${bound(inner.at_least)}`, inner.below !== undefined && `below ${bound(inner.below)}`];
  if (typeof inner.number === "string") return `${titleOf(inner.number)} ${is} ${bounds.filter(Boolean).join(" and ")}`;
  return JSON.stringify(one);
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** What live slices call the views without a value, and those of all values that have no name. */
export const UNKNOWN = "(unknown)";
export const OTHER = "(other)";
/** Texts of live slices are cut: so many characters are left. */
const SLICE_CHARACTERS_MAX = 64;

/** @param {unknown} value */
const shortOf = (value) => [...String(value)].slice(0, SLICE_CHARACTERS_MAX).join("");

/** What live figures have of a filter: the one value of a dimension, or the beginning of a longer one; null for all others. @param {string} text */
export function liveOf(text) {
  const { dimension, isNot, values } = chipOf(text);
  if (dimension) return isNot || values.length !== 1 ? null : { dimension, value: values[0] === null ? UNKNOWN : shortOf(values[0]) };
  const { dimension: of, contains } = parsed(text) ?? {};
  return typeof contains === "string" && [...contains].length === SLICE_CHARACTERS_MAX ? { dimension: String(of), value: contains } : null;
}

/** What live figures are of: a slice as `/v1/live` has it, the filters that it stands for, and its dimensions as a name. @typedef {{name: string, slice: string, filters: string[]}} LivePart */

/**
 * What live figures can be of under filters. Viewers of a moment are counted by one dimension and by two, by one value of each: of
 * more filters any two can be shown. The first is shown unless another is chosen. An empty list means that figures are of all viewers.
 * @param {string[]} filters
 * @param {string[] | null} counted - The dimensions by which viewers are counted; null: not known yet.
 * @returns {LivePart[]}
 */
export function liveParts(filters, counted) {
  const usable = filters.filter((text) => {
    const found = liveOf(text);
    return found && (counted === null || counted.includes(found.dimension));
  });
  const pairs = usable.flatMap((one, at) => usable.slice(at + 1).map((other) => [one, other]));
  const parts = pairs.map(partOf).filter((one) => new Set(one.name.split(",")).size === 2);
  return parts.length ? parts : usable.map((one) => partOf([one]));
}

/** @param {string[]} filters @returns {LivePart} */
function partOf(filters) {
  const found = filters.flatMap((text) => liveOf(text) ?? []);
  const name = found.map((one) => one.dimension).join(",");
  const values = found.map((one) => one.value);
  return { name, slice: `${name}=${values.join("\u001f")}`, filters };
}

/** The filter that a live slice of one dimension is. @param {string} slice */
export function filterOfSlice(slice) {
  const [dimension, value] = cut(slice);
  return filterOfLive(dimension, value);
}

/** The filter that a value of live figures is: of one as long as they have any, more may follow it. @param {string} dimension @param {string} value */
function filterOfLive(dimension, value) {
  if ([...value].length >= SLICE_CHARACTERS_MAX) return JSON.stringify({ dimension, contains: value });
  return filterOf(dimension, [value === UNKNOWN ? null : value]);
}

/** The filters that a live slice is, by dimension. No filter says which values have no name. @param {Record<string, string>} slice */
export const filtersOf = (slice) => Object.entries(slice).flatMap(([dimension, value]) => (value === OTHER ? [] : [filterOfLive(dimension, value)]));

/** The dimensions of a live slice and its values; both empty of the whole. @param {string} slice @returns {[string, string]} */
export function cut(slice) {
  const at = slice.indexOf("=");
  return at < 0 ? ["", ""] : [slice.slice(0, at), slice.slice(at + 1)];
}

/** The same as `/v1/live/history` names them: a pair without any value has one name, and one of values without a name. @param {string} slice @returns {[string, string]} */
export function pastOf(slice) {
  const [dimension, value] = cut(slice);
  return [dimension, [UNKNOWN, OTHER].find((name) => value === `${name}\u001f${name}`) ?? value];
}
