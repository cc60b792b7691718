// @ts-check
// The views behind live figures: where they are listed, and what such a link says. Pure.

import { viewsBehind } from "../figures/behind.js";
import { ageText } from "../words/format.js";

/** Metrics that only the end of a view decides. */
const OF_ENDED = new Set(["exit_before_start_fraction", "exits_before_start"]);

/**
 * The place of the views behind a live figure: those of this moment are open still; what was counted is among those of the last hour.
 * @param {{isCount: boolean, metric?: string}} figure
 * @param {{customer: string, filters: string[]}} within - What the figure is of.
 */
export function viewsOfLive({ isCount, metric = "" }, within) {
  const found = isCount ? viewsBehind(metric, within) : { screen: "views", ...within, more: {} };
  // What is counted as it happens may be of a view that is open still.
  const open = OF_ENDED.has(metric) ? {} : { open: "1" };
  return { ...found, more: { ...found.more, ...open }, range: "1h", from: "", to: "" };
}

/** What such a link says: counts are of less than the hour that it lists. @param {{isCount: boolean}} figure @param {number} counted_ms - How long the figure is counted. */
export const liveTitle = ({ isCount }, counted_ms) => (isCount ? `counted over the last ${ageText(counted_ms)}; listed are views of the last hour` : "the open views behind it");
