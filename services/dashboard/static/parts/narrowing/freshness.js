// @ts-check
// How new the finished views are that the figures of a screen rest on: said always, and louder once they are old.

import { freshnessOf } from "../../core/time/freshness.js";
import { resolved } from "../../core/place/ranges.js";
import { counted_ms, newestNow_ms } from "../data/asking.js";
import { html } from "../html.js";
import { place } from "../place.js";

/** @param {{isNow?: boolean}} props - `isNow`: what is shown goes up to now in any range of the place. */
export function Freshness({ isNow = false }) {
  const range = isNow || place.value.range ? null : resolved(place.value, newestNow_ms());
  const found = freshnessOf({ as_of_ms: counted_ms.value, until_ms: range?.to_ms ?? null, now_ms: newestNow_ms(), tz: place.value.tz });
  if (!found) return null;
  return html`<p class=${found.isOld ? "old-figures" : "note"} id="freshness" role=${found.isOld ? "status" : undefined}>${found.text}</p>`;
}
