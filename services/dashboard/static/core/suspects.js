// @ts-check
// A suspect's excess and evidence in words. Pure.

import { countText, durationText } from "./words/format.js";

/** What there is more of than expected, of one and of several; others are named by their metric. @type {Record<string, [string, string]>} */
const COUNTED = {
  playback_failure_fraction: ["failure", "failures"],
  exit_before_start_fraction: ["exit before start", "exits before start"],
};
/** The same of sums of time. @type {Record<string, string>} */
const LASTED = { rebuffer_fraction: "rebuffering" };

/** What excess and evidence are, as the glossary says it. */
export const EXCESS_MEANS = [
  "Excess: what there is beyond the number expected of this group, had it changed as all others did.",
  "Evidence: the natural logarithm of how much likelier these figures are with a cause in this group than by chance, by the usual changes from hour to hour, or by the number of groups that were tried.",
  "Each 2.3 more is ten times likelier. Groups of 3 or less are not listed.",
].join(" ");

/** @param {string} metric @param {number} excess - Bad views, or ms of a sum. */
export function excessText(metric, excess) {
  if (LASTED[metric]) return `${durationText(excess)} more ${LASTED[metric]} than expected`;
  const count = Math.round(excess);
  const [one, many] = COUNTED[metric] ?? ["bad view", "bad views"];
  return `${countText(count)} more ${count === 1 ? one : many} than expected`;
}

/** @param {number} nats */
export const evidenceText = (nats) => `evidence ${nats.toFixed(nats < 10 ? 1 : 0)}`;
