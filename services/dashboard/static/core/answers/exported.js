// @ts-check
// What of Explore becomes a file: what is drawn. Pure.

import { distributedBy } from "../figures/behind.js";
import { ROWS_MAX } from "./groups.js";

/** What can be exported. @typedef {"views" | "overall" | "timeseries" | "breakdown" | "distribution" | "errors" | "titles"} Of */
/** What Explore draws: `by` and `second` are empty where there is no breakdown; `table`: which groups are listed, in which order. @typedef {{metric: string, as: string, by: string, second: string, compare: string, bucket?: string, table: Record<string, string>}} Drawn */

/** Lines of a chart, and small charts, besides what they leave out. */
export const LINES_MAX = 8;
export const MULTIPLES_MAX = 12;

/**
 * The export of what is drawn, and what it has in words. The chart comes before a table below it.
 * @param {Drawn} drawn
 * @returns {{of: Of, params: Record<string, string | number>, what: string}}
 */
export function exportOf({ metric, as, by, second, compare, bucket = "", table }) {
  const asked = { metrics: metric, compare };
  const field = distributedBy(metric);
  if (as === "line" || (as === "multiples" && by)) {
    /** @type {Record<string, string | number>} */
    const lines = by ? { by, limit: as === "line" ? LINES_MAX : MULTIPLES_MAX } : {};
    return { of: "timeseries", params: { ...asked, ...(bucket ? { bucket } : {}), ...lines }, what: by ? "every line of the chart" : "the line of the chart" };
  }
  if (as === "distribution" && field) return { of: "distribution", params: { of: field, compare }, what: "the bins of the distribution" };
  if (!by || as === "multiples") return { of: "overall", params: asked, what: "the figure" };
  return { of: "breakdown", params: { ...asked, by: second ? `${by},${second}` : by, ...table, limit: ROWS_MAX }, what: "all of the table" };
}
