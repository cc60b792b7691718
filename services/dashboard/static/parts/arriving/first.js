// @ts-check
// Who has never sent a beacon, and what leads them to the first one, which comes when somebody needs it.

import { customers, hasCustomers } from "../data/known.js";
import { later } from "../later.js";
import { place } from "../place.js";

/** Whether of this customer, or of all, nothing was ever counted that may be seen. @param {any} picture - The newest live one. */
export function isNew(picture) {
  const { customer } = place.value;
  if (!picture || !hasCustomers.value || picture.series.viewers_now?.length) return false;
  return customer === "*" ? customers.value.length === 0 : !customers.value.includes(customer);
}

/** From a customer and its key to its first beacon. */
export const First = later(() => import("./lead.js"), 300);
