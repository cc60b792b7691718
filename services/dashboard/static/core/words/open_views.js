// @ts-check
// How many views are open, and how many of them a list shows. Pure.

import { ageText, countText } from "./format.js";

/**
 * @param {number} shown - Views that are listed.
 * @param {{looked_up_n: number, seconds: number, is_cut: boolean}} answer - Of `/v1/open-views`.
 * @param {number | null | undefined} watching - Viewers of this moment; not known: undefined or null.
 */
export function openText(shown, { looked_up_n, seconds, is_cut }, watching) {
  const views = shown === 1 ? "1 open view is" : `${countText(shown)} open views are`;
  const of = `${views} shown: those that match among the ${countText(looked_up_n)} views with the newest beacons of the last ${ageText(1_000 * seconds)}. The range above does not narrow them.`;
  if (!is_cut) return of;
  const more = watching === null || watching === undefined || watching <= looked_up_n ? "More views are open." : `More views are open: ${countText(watching)} viewers are watching now.`;
  return `${of} ${more} A viewer id or a part of a title finds any of them; all else narrows only these.`;
}
