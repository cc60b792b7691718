// @ts-check
// What is said of the figures by dimension of many customers: as of when they are, or why there are none. Pure.

import { localText, momentText } from "../place/ranges.js";
import { ageText } from "../words/format.js";

/** Of more customers together, figures by dimension are added up once a minute. */
export const CUSTOMERS_MAX = 20;
/** A minute is shown within about a minute of its end, until the next one is. */
const OLD_MS = 180_000;

/** Why there are no newer figures, or none at all. @type {Record<string, {newer: string, any: string}>} */
const REASONS = {
  none: { newer: "Nothing newer has been added up since.", any: `Of the last hour no figures by dimension were added up for more than ${CUSTOMERS_MAX} customers together. Choose one customer above to see its own.` },
  away: { newer: "Postgres does not answer, so nothing newer is known.", any: `Postgres does not answer, so the figures by dimension of more than ${CUSTOMERS_MAX} customers together are not known. They come as soon as it is back.` },
  failed: { newer: "Newer ones take too long to add up. The server goes on trying.", any: `The figures by dimension of so many customers take too long to add up. The server goes on trying. Choose one customer above to see its own.` },
};

/**
 * What to say beside figures by dimension. Null where they are of this moment, as those of few customers are.
 * @param {any} picture - As /v1/live has it.
 * @param {number} now_ms - By the server's clock.
 * @param {string} tz
 * @returns {{isOld: boolean, text: string} | null}
 */
export function slicesNote(picture, now_ms, tz) {
  const { slices, slices_state: state, slices_as_of_ms: as_of_ms } = picture;
  if (state === "live") return null;
  if (!slices || as_of_ms === null) {
    const found = REASONS[state];
    return found ? { isOld: true, text: found.any } : { isOld: false, text: `The figures by dimension of more than ${CUSTOMERS_MAX} customers are being added up. They show here in a moment.` };
  }
  const age_ms = Math.max(0, now_ms - as_of_ms);
  const isOld = age_ms > OLD_MS;
  const at = age_ms < 3_600_000 ? localText(as_of_ms, tz).slice(11, 16) : momentText(as_of_ms, tz);
  const text = `As of ${at}${isOld ? `, ${ageText(age_ms)} ago` : ""}, added up by minute because there are more than ${CUSTOMERS_MAX} customers.`;
  const why = REASONS[state]?.newer ?? (isOld ? REASONS.none.newer : "");
  return { isOld, text: isOld ? `${text} ${why}` : text };
}

/** Whether the figures of a slice are not known, which is not the same as nobody. @param {any} picture */
export const isUnknown = (picture) => Boolean(picture.slice) && picture.slices === null;
