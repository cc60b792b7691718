// @ts-check
// Answers of /v1/breakdown as rows of a table. Pure.

import { viewsMin } from "../figures/figures.js";

/** Rows that are listed at first, and the most that the API lists. */
const ROWS = 20;
export const ROWS_MAX = 1_000;

/** Whether a group is one of those that are asked for, and not beside them. @param {{kind: string, key: (string | null)[]}} one */
const isListed = (one) => one.kind === "value" || (one.kind === "unknown" && one.key.length > 1);

/** Whether there are groups, and none has as many views as are asked for. @param {{kind: string, key: (string | null)[]}[]} groups */
export const isNoneLarge = (groups) => groups.some((one) => one.kind === "other") && !groups.some(isListed);

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
  const listed = groups.filter(isListed).length;
  const isCut = listed >= rows && rows < ROWS_MAX && groups.some((one) => one.kind === "other");
  return isCut ? Math.min(ROWS_MAX, 5 * rows) : null;
}

/** By which column a table is sorted. Only these two sort: a table that was sorted by a metric is sorted by another one once that is chosen. @param {string} sort @param {{name: string, kind: string}} metric */
const sortedBy = (sort, metric) => (sort === "views" || (sort === "" && metric.kind !== "sum") ? "views" : metric.name);

/**
 * How many views a group has at least where nobody says it: as many as its figure needs to be shown. Else a table that is sorted by it may begin with nothing but
 * dashes. Empty where every figure is shown.
 * @param {Record<string, string>} more - Of the address.
 * @param {{name: string, kind: string}} metric
 */
export function leastOf({ sort = "" }, metric) {
  const least = viewsMin(sortedBy(sort, metric));
  return least > 1 ? String(least) : "";
}

/**
 * Which groups a table has, and in which order, as parameters of the API.
 * @param {Record<string, string>} more - Of the address.
 * @param {{name: string, kind: string}} metric
 */
export function tableOf(more, metric) {
  const { sort = "", order = "", views_min = "" } = more;
  return { order_by: sortedBy(sort, metric), order, views_min: views_min || leastOf(more, metric) };
}
