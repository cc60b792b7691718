// @ts-check
// The place of the map of viewers by country. What draws it, and its shapes, come when the place comes into view.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { countText } from "../../core/words/format.js";
import { hasFirst } from "../data/asking.js";
import { html } from "../html.js";

/** What draws the map, and its shapes; once for all screens. @type {import("@preact/signals").Signal<{Countries: any, shapes: any} | null>} */
const drawing = signal(null);
const isMissing = signal(false);
let isAsked = false;

async function load() {
  if (isAsked || drawing.value) return;
  isAsked = true;
  isMissing.value = false;
  try {
    const { Countries, shapesOfWorld } = await import("./countries.js");
    drawing.value = { Countries, shapes: await shapesOfWorld() };
  } catch {
    isMissing.value = true;
  }
  isAsked = false;
}

/** @param {{values: any[], isWarm: (one: any) => boolean}} props - The countries of a live picture. */
export function WorldMap({ values, isWarm }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) load();
    });
    // What comes above moves it out of view: until the first figures are there it is not looked at.
    let isGone = false;
    hasFirst.then(() => {
      if (!isGone && box.current) watch.observe(box.current);
    });
    return () => {
      isGone = true;
      watch.disconnect();
    };
  }, []);
  const { Countries, shapes } = drawing.value ?? {};
  return html`<div class="map-place" ref=${box}>
    ${Countries ? html`<${Countries} shapes=${shapes} values=${values} isWarm=${isWarm} />` : isMissing.value
      ? html`<p class="notice" id="map-missing" role="status">The map could not be loaded. The table below has the same figures. <button type="button" onClick=${load}>Try again</button></p>`
      : html`<span class="unseen">The map is drawn when it is seen. The table below has the same figures.</span>`}
  </div>
  <${Legend} values=${values} isWarm=${isWarm} />
  <p class="note" id="map-note">Each country is a filter: on the map, and by its name in the table.</p>`;
}

/** What its colours mean: there before the map is, which must not move what is below it. @param {{values: any[], isWarm: (one: any) => boolean}} props */
function Legend({ values, isWarm }) {
  const seen = values.filter((one) => one.viewers_now);
  const most = Math.max(1, ...seen.map((one) => one.viewers_now));
  return html`<p class="note map-legend" id="map-legend"><span>1 viewer<span class="scale" aria-hidden="true"></span>${countText(most)} ${most === 1 ? "viewer" : "viewers"}</span><span>Grey: nobody watches</span>${seen.some(isWarm) && html`<span><span class="warm" aria-hidden="true"></span>Rebuffering is bad there</span>`}</p>`;
}
