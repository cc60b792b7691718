// What filters mean, of a row of a view: what the tests hold those against that the page makes.

/** @param {string[]} filters @param {Record<string, any>} row */
export const holds = (filters, row) => filters.every((text) => isWithin(JSON.parse(text), row));

/**
 * @param {any} one
 * @param {Record<string, any>} row
 * @returns {boolean}
 */
function isWithin(one, row) {
  if (one.not) return !isWithin(one.not, row);
  if (Array.isArray(one.and)) return one.and.every((/** @type {any} */ part) => isWithin(part, row));
  if (Array.isArray(one.or)) return one.or.some((/** @type {any} */ part) => isWithin(part, row));
  if (typeof one.number === "string") return typeof row[one.number] === "number" && row[one.number] >= (one.at_least ?? -Infinity) && row[one.number] < (one.below ?? Infinity);
  if (typeof one.dimension !== "string") return true;
  const value = one.dimension.startsWith("custom.") ? row.custom?.[one.dimension.slice("custom.".length)] : row[one.dimension];
  const text = value === undefined || value === null || value === "" ? null : String(value);
  if (typeof one.contains === "string") return (text ?? "").toLowerCase().includes(one.contains.toLowerCase());
  return !Array.isArray(one.in) || one.in.includes(text);
}
