// @ts-check
// Filters as chips that people read and click, and as the JSON of the API. Pure.

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
 * The filters with one dimension narrowed to a value: a chip of that dimension is replaced.
 * @param {string[]} filters
 * @param {string} dimension
 * @param {string | null} value
 */
export function narrowed(filters, dimension, value) {
  const others = filters.filter((text) => {
    const chip = chipOf(text);
    return chip.dimension !== dimension || chip.isNot;
  });
  return [...others, filterOf(dimension, [value])];
}

/**
 * @param {Chip} chip
 * @param {(name: string) => string} titleOf
 */
export function chipText(chip, titleOf) {
  if (!chip.dimension) return chip.text;
  const values = chip.values.map((value) => value ?? "(unknown)").join(" or ");
  return `${titleOf(chip.dimension)} ${chip.isNot ? "is not" : "is"} ${values}`;
}

/**
 * Whether a row of a view is within the filters that are plain: of others the API alone knows what they mean.
 * @param {string[]} filters
 * @param {Record<string, any>} row
 */
export function holds(filters, row) {
  return filters.map(chipOf).every(({ dimension, values, isNot }) => {
    if (!dimension) return true;
    const value = dimension.startsWith("custom.") ? row.custom?.[dimension.slice("custom.".length)] : row[dimension];
    const text = value === undefined || value === null || value === "" ? null : String(value);
    return values.includes(text) !== isNot;
  });
}

/** Texts of live slices are cut. */
const SLICE_CHARACTERS_MAX = 64;

/**
 * The live slice that one or two filters name, as `<dimension>=<value>`: null where they name none, or more than live figures have.
 * @param {string[]} filters
 */
export function liveSlice(filters) {
  const chips = filters.map(chipOf);
  const isPlain = chips.every((chip) => chip.dimension && !chip.isNot && chip.values.length === 1);
  if (!isPlain || chips.length < 1 || chips.length > 2) return null;
  const values = chips.map((chip) => (chip.values[0] ?? "(unknown)").slice(0, SLICE_CHARACTERS_MAX));
  return `${chips.map((chip) => chip.dimension).join(",")}=${values.join("\u001f")}`;
}
