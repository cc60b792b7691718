// @ts-check
// What leads who has never sent a beacon to the first one: a customer, its key, the lines for a player, and what arrives.

import { html } from "../html.js";
import { place } from "../place.js";
import { Arriving } from "./beacons.js";
import { Choose, useListed } from "./choose.js";
import { Paste } from "./paste.js";

/** Of one's only customer nothing need be chosen. */
export default function Lead() {
  const listed = useListed();
  const only = listed?.length === 1 ? listed[0].id : "";
  const customer = place.value.customer === "*" ? only : place.value.customer;
  if (!customer) return html`<section id="lead" aria-labelledby="lead-title"><h2 id="lead-title">Connect your first player</h2><${Choose} /></section>`;
  return html`<div id="lead"><${Arriving} customer=${customer} /><${Paste} key=${customer} customer=${customer} /></div>`;
}
