// @ts-check
// Answers of /v1/breakdown as rows of a table. Pure.

/** Rows that are listed at first, and the most that the API lists. */
const ROWS = 20;
export const ROWS_MAX = 1_000;

/** How many rows an address asks for. @param {string | undefined} text */
export function rowsOf(text) {
  const rows = Math.floor(Number(text));
  return rows >= 1 ? Math.min(ROWS_MAX, rows) : ROWS;
}

/**
 * How many rows to ask for next: five times as many. Null where the API has no more: all are listed, all others have too few views, or as many are listed as may be.
 * @param {{kind: string, key: (string | null)[]}[]} groups
 * @param {number} rows - How many were asked for.
 */
export function moreRows(groups, rows) {
  // What is unknown stands beside those that are listed, but is one of them among pairs.
  const listed = groups.filter((one) => one.kind === "value" || (one.kind === "unknown" && one.key.length > 1)).length;
  const isCut = listed >= rows && rows < ROWS_MAX && groups.some((one) => one.kind === "other");
  return isCut ? Math.min(ROWS_MAX, 5 * rows) : null;
}

/**
 * Which groups a table has, and in which order, as parameters of the API.
 * @param {Record<string, string>} more - Of the address.
 * @param {{name: string, kind: string}} metric
 */
export function tableOf({ sort = "", order = "", views_min = "" }, metric) {
  // Only these two columns sort: a table that was sorted by a metric is sorted by another one once that is chosen.
  const isByViews = sort === "views" || (sort === "" && metric.kind !== "sum");
  return { order_by: isByViews ? "views" : metric.name, order, views_min };
}
