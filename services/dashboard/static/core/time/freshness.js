// @ts-check
// How old the finished views behind a screen are, in words. Pure; times are ms since 1970.

import { ageText } from "../words/format.js";
import { momentText } from "../place/ranges.js";

/** In steady traffic a view is counted within seconds of its end; where Postgres keeps none, within two minutes. */
export const OLD_MS = 120_000;

/**
 * What to say of the newest view that is counted. Null where nothing is known, or where the range was over by then.
 * @param {{as_of_ms: number | null, until_ms: number | null, now_ms: number, tz: string}} given - `until_ms`: the end of the range; null is now.
 * @returns {{isOld: boolean, text: string} | null}
 */
export function freshnessOf({ as_of_ms, until_ms, now_ms, tz }) {
  if (as_of_ms === null || (until_ms !== null && until_ms <= as_of_ms)) return null;
  const at = momentText(as_of_ms, tz, { seconds: true });
  const age_ms = now_ms - as_of_ms;
  if (age_ms < OLD_MS) return { isOld: false, text: `Finished views up to ${at}` };
  return { isOld: true, text: `Finished views are as of ${at}, ${ageText(age_ms)} ago. Since then none has finished, or those that have are not counted yet.` };
}
