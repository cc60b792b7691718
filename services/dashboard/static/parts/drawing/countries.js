// @ts-check
// The map of the world as it is drawn. It and its shapes are a quarter of the page, so `map.js` asks for them where they are seen.

import { narrowed } from "../../core/place/filters.js";
import { countText } from "../../core/words/format.js";
import { cellsOf } from "../../core/live/live.js";
import { BOX, shapesOf, strengthOf } from "../../core/map.js";
import feature from "../../vendor/feature.js";
import { fetchJson } from "../data/asking.js";
import { html } from "../html.js";
import { go, place } from "../place.js";

const names = new Intl.DisplayNames("en", { type: "region", fallback: "code" });

/** @typedef {{code: string, path: string}[]} Shapes */

/** @returns {Promise<Shapes>} */
export async function shapesOfWorld() {
  const [atlas, codes] = await Promise.all([fetchJson("/static/vendor/countries-110m.json"), fetchJson("/static/vendor/codes.json")]);
  return shapesOf(/** @type {any} */ (feature(atlas, "countries")).features, codes);
}

/** @param {{shapes: Shapes, values: any[], isWarm: (one: any) => boolean}} props */
export function Countries({ shapes, values, isWarm }) {
  const most = Math.max(1, ...values.map((one) => one.viewers_now));
  const byCode = new Map(values.map((one) => [one.value, one]));
  return html`<svg class="map" id="map" viewBox=${`0 0 ${BOX.width} ${BOX.height}`} role="img" aria-label="Map of viewers by country. The table below has the same countries and figures, each country as a link.">
    ${shapes.map(({ code, path }) => {
      const one = byCode.get(code);
      // Nobody watches there by now: without a colour the country would be missing.
      if (!one?.viewers_now) return html`<path class="land" d=${path} />`;
      const cells = cellsOf(one);
      return html`<path class=${isWarm(one) ? "land is-warm" : "land has-viewers"} data-country=${code} d=${path} fill-opacity=${strengthOf(one.viewers_now, most)}
        onClick=${() => go({ filters: narrowed(place.value.filters, "country", code) })}><title>${`${names.of(code)}: ${countText(one.viewers_now)} viewers, ${cells.rebuffering} rebuffering`}</title></path>`;
    })}
  </svg>`;
}
