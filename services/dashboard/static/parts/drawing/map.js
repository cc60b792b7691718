// @ts-check
// Viewers by country on a map of the world; its shapes come when it is drawn for the first time.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { narrowed } from "../../core/place/filters.js";
import { countText } from "../../core/words/format.js";
import { cellsOf } from "../../core/live.js";
import { BOX, shapesOf, strengthOf } from "../../core/map.js";
import { fetchJson } from "../data/asking.js";
import { html } from "../html.js";
import { go, place } from "../place.js";

/** @type {import("@preact/signals").Signal<{code: string, path: string}[] | null>} */
const shapes = signal(null);
const names = new Intl.DisplayNames("en", { type: "region", fallback: "code" });
let isAsked = false;

async function load() {
  if (isAsked) return;
  isAsked = true;
  try {
    const [{ default: feature }, atlas, codes] = await Promise.all([
      import("../../vendor/feature.js"),
      fetchJson("/static/vendor/countries-110m.json"),
      fetchJson("/static/vendor/codes.json"),
    ]);
    shapes.value = shapesOf(/** @type {any} */ (feature(atlas, "countries")).features, codes);
  } catch {
    // The table beside it has the same; the next time it is drawn it is tried again.
    isAsked = false;
  }
}

/** @param {{values: any[], isWarm: (one: any) => boolean}} props - The countries of a live picture. */
export function WorldMap({ values, isWarm }) {
  useEffect(() => {
    load();
  }, []);
  if (!shapes.value) return null;
  const most = Math.max(1, ...values.map((one) => one.viewers_now));
  const byCode = new Map(values.map((one) => [one.value, one]));
  return html`<svg class="map" id="map" viewBox=${`0 0 ${BOX.width} ${BOX.height}`} role="img" aria-label="Viewers by country: the table has the same figures">
    ${shapes.value.map(({ code, path }) => {
      const one = byCode.get(code);
      // Nobody watches there by now: without a colour the country would be missing.
      if (!one?.viewers_now) return html`<path class="land" d=${path} />`;
      const cells = cellsOf(one);
      return html`<path class=${isWarm(one) ? "land is-warm" : "land has-viewers"} data-country=${code} d=${path} fill-opacity=${strengthOf(one.viewers_now, most)}
        onClick=${() => go({ filters: narrowed(place.value.filters, "country", code) })}><title>${`${names.of(code)}: ${countText(one.viewers_now)} viewers, ${cells.rebuffering} rebuffering`}</title></path>`;
    })}
  </svg>`;
}
