// @ts-check
// The views behind a figure of an incident. Live figures are of viewers of a moment: their views are found by when they began and ended. Pure.

import { hitOf, viewMetricOf } from "./alerts.js";
import { failedOf, rangeOf, viewsBehind, viewsOf } from "../figures/behind.js";
import { filtersOf, OTHER } from "../place/filters.js";
import { DAY_MS, MINUTE_MS } from "../place/ranges.js";
import { ageText } from "../words/format.js";

/** Metrics of views that have finished. All others are of views that are open. */
const OF_FINISHED = ["playback_failures", "startup_failures", "exits_before_start", "bad_views", "rebuffer_fraction", "watch_ms"];
/** A view is counted as finished so long after its end, at most: five minutes of silence, and the next whole minute. */
const FINISHED_MS = 6 * MINUTE_MS;

/** @typedef {import("../place/place.js").Place} Place */

/** When a figure of an incident was counted. @param {{at_ms: number, seconds: number}} found */
export const countedAt = ({ at_ms, seconds }) => ({ from_ms: at_ms - 1_000 * seconds, to_ms: at_ms });

/**
 * Where the views of a figure are, and those of its n; null where it counts none, or where no filter says which.
 * @param {{customer: string, event: any}} incident
 * @param {Record<string, string>} slice
 * @param {{from_ms: number, to_ms: number}} of - When it was counted.
 * @returns {{value: Partial<Place>, n: Partial<Place>, which: string} | null}
 */
export function viewsAt({ customer, event }, slice, { from_ms, to_ms }) {
  const { metric } = event;
  if (hitOf(metric) !== "viewers" || Object.values(slice).includes(OTHER)) return null;
  const filters = filtersOf(slice);
  if (OF_FINISHED.includes(metric)) {
    const [name, range] = [viewMetricOf(metric), rangeOf({ from_ms: from_ms - FINISHED_MS, to_ms })];
    const within = { customer, filters };
    return { value: { ...viewsBehind(name, within), ...range }, n: { ...viewsOf(name, within), ...range }, which: `views that ended then, or up to ${ageText(FINISHED_MS)} before` };
  }
  const isOfStarts = metric === "views_started";
  const began = [...filters, JSON.stringify({ number: "view_start_ms", ...(isOfStarts && { at_least: from_ms }), below: to_ms })];
  const at = { screen: "views", customer, filters: began, more: { open: "1" }, ...rangeOf({ from_ms, to_ms: to_ms + DAY_MS }) };
  const value = metric === "failures" ? { ...at, filters: failedOf(began) } : at;
  return { value, n: at, which: isOfStarts ? "views that began then" : "views that were open then" };
}
