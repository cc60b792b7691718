// @ts-check
// Who has never sent a beacon, and what leads them to the first one, which comes when somebody needs it.

import { customers, hasCustomers } from "../data/known.js";
import { later } from "../later.js";
import { place } from "../place.js";

/**
 * Whether of this customer, or of all, nothing was ever counted that may be seen.
 * @param {any} picture - The newest live one.
 * @param {{data?: any, problem?: any}} finished - The figures of the views that finished last, beside those before. A customer that has some is not new, also where sums are not there yet.
 */
export function isNew(picture, finished) {
  const { customer } = place.value;
  if (!picture || !hasCustomers.value || picture.series.viewers_now?.length) return false;
  if (!finished.problem && (!finished.data || hasViews(finished.data.metrics) || hasViews(finished.data.compared?.metrics))) return false;
  return customer === "*" ? customers.value.length === 0 : !customers.value.includes(customer);
}

/** @param {Record<string, {n: number}> | undefined} metrics */
const hasViews = (metrics) => Object.values(metrics ?? {}).some((figure) => figure.n > 0);

/** From a customer and its key to its first beacon. */
export const First = later(() => import("./lead.js"), 300);
