// @ts-check
// Whose player is to be connected: one of the customers of the organisation, or its first one.

import { useFetched } from "../data/asking.js";
import { customers } from "../data/known.js";
import { change, may, session } from "../data/session.js";
import { Form } from "../inputs/forms.js";
import { html } from "../html.js";
import { Which } from "../narrowing/which.js";
import { go, Link } from "../place.js";

/** So many are asked for: where as many are listed, there may be more. */
export const LISTED_MAX = 100;
const LISTED = `/v1/customers?limit=${LISTED_MAX}`;

/** The customers that the organisation lists; null until they are known. @returns {{id: string, name: string}[] | null} */
export const useListed = () => useFetched(LISTED, () => LISTED).data?.customers ?? null;

/** A customer that has neither an environment nor views is typed, by those to whom all belong that no other organisation has. */
export function Choose() {
  const listed = useListed();
  if (!session.value || !listed) return null;
  const ownsRest = session.value.runs_installation;
  if (!ownsRest && !listed.length && !customers.value.length) return html`<${NoCustomer} />`;
  const choose = (/** @type {any} */ event) => {
    event.preventDefault();
    const name = String(new FormData(event.target).get("name") ?? "").trim();
    if (name) go({ customer: name });
  };
  return html`<p>Whose player is it? A customer is an environment of your organisation: its write keys are in <${Link} to=${{ screen: "settings", more: { part: "environments" } }}>Settings<//>.</p>
    <${Which} id="environments" />
    ${ownsRest && html`<form class="pick" id="choose-customer" onSubmit=${choose}><label>Customer <input name="name" required maxlength="64" autocomplete="off" /></label><button type="submit">Show its beacons</button></form>`}`;
}

/** An organisation that owns no customer: who may, makes one. */
function NoCustomer() {
  let made = "";
  const make = async (/** @type {FormData} */ form) => {
    made = (await change("POST", "/v1/customers", { name: String(form.get("name")).trim() })).id;
  };
  return html`<div id="no-customer"><p>Your organisation has no customer yet. A customer, also called an environment, is a site or an app whose players are measured.</p>
    ${may("manage")
      ? html`<${Form} id="first-customer" title="Make it" send=${make} done=${() => go({ customer: made })}><label>Name <input name="name" maxlength="200" pattern=".*\\S.*" required autocomplete="off" /></label><//>
        <p class="note">If your players send to a customer that exists already, ask who runs this installation to give it to your organisation.</p>`
      : html`<p>An admin or owner of your organisation makes one, or who runs this installation gives it one that exists.</p>`}</div>`;
}
