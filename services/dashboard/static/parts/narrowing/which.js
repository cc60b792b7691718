// @ts-check
// Customers that one may see, each a link to the same screen of it: where something is known of one customer alone.

import { useFetched } from "../data/asking.js";
import { customers } from "../data/known.js";
import { html } from "../html.js";
import { Link } from "../place.js";

/** Customers that are listed to be clicked; of more the name is typed. */
const LISTED_MAX = 100;

/** Environments of the organisation, then customers that have views. @param {{id: string}} props */
export function Which({ id }) {
  const environments = useFetched("/v1/customers?limit=100", () => "/v1/customers?limit=100").data?.customers ?? [];
  const named = environments.map((/** @type {any} */ one) => one.id);
  const listed = [...environments, ...customers.value.filter((one) => !named.includes(one)).map((one) => ({ id: one, name: "" }))];
  return listed.length > 0 && html`<ul class="recent" id=${id} aria-label="Customers">${listed.slice(0, LISTED_MAX).map((/** @type {any} */ one) => html`<li key=${one.id}><${Link} to=${{ customer: one.id }}>${one.name || one.id}<//></li>`)}</ul>
    ${listed.length > LISTED_MAX && html`<p class="note">Any other customer is chosen above.</p>`}`;
}
