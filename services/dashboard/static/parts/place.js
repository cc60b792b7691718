// @ts-check
// The place that the address names, and moves to another one: back and forward work, and every address is a link.

import { signal } from "@preact/signals";
import { addressOf, changed, placeOf } from "../core/place/place.js";
import { html } from "./html.js";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const here = () => placeOf(location.pathname, location.search, zone);

/** @type {import("@preact/signals").Signal<import("../core/place/place.js").Place>} */
export const place = signal(here());

addEventListener("popstate", () => {
  place.value = here();
});

/**
 * Moves to the place after a change. `replace` makes no step of the history: for what is typed.
 * @param {Partial<import("../core/place/place.js").Place>} change
 * @param {{replace?: boolean}} [how]
 */
export function go(change, how = {}) {
  const to = changed(place.value, change);
  const address = addressOf(to);
  if (how.replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = to;
  if (change.screen !== undefined && !how.replace) scrollTo(0, 0);
}

/** Opens an address of this page. @param {string} address */
export function goTo(address) {
  history.pushState(null, "", address);
  place.value = here();
  scrollTo(0, 0);
}

/**
 * A link to the place after a change: opened here on a click, elsewhere as any link.
 * @param {{to: Partial<import("../core/place/place.js").Place>, children?: any, class?: string, [name: string]: any}} props
 */
export function Link({ to, children, ...others }) {
  const follow = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${addressOf(changed(place.value, to))} onClick=${follow} ...${others}>${children}</a>`;
}
