// @ts-check
// Who has never sent a beacon, and what leads them to the first one, which comes when somebody needs it.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Skeleton } from "../data/asking.js";
import { customers, hasCustomers } from "../data/known.js";
import { html } from "../html.js";
import { place } from "../place.js";

const AGAIN_MS = 5_000;

/** @type {import("@preact/signals").Signal<{Lead: any} | null>} */
const drawing = signal(null);

/** Whether of this customer, or of all, nothing was ever counted that may be seen. @param {any} picture - The newest live one. */
export function isNew(picture) {
  const { customer } = place.value;
  if (!picture || !hasCustomers.value || picture.series.viewers_now?.length) return false;
  return customer === "*" ? customers.value.length === 0 : !customers.value.includes(customer);
}

async function load() {
  try {
    drawing.value = { Lead: (await import("./lead.js")).default };
  } catch {
    setTimeout(load, AGAIN_MS);
  }
}

/** From a customer and its key to its first beacon. */
export function First() {
  useEffect(() => {
    if (!drawing.value) load();
  }, []);
  return drawing.value ? html`<${drawing.value.Lead} />` : html`<${Skeleton} height=${300} />`;
}
