// @ts-check
// The place: what a link must reproduce, as a value and as an address. Its names are those of the API's parameters. Pure.

import { resolved } from "./ranges.js";

/**
 * @typedef {object} Place
 * @property {string} screen - Name of a screen: the path without its slash; "" is Now.
 * @property {string} customer - A customer, or * for all that one may see.
 * @property {string} range - A length up to now ("24h"); empty where `from` and `to` say it.
 * @property {string} from - ISO 8601 in the zone, or ms since 1970.
 * @property {string} to - The same.
 * @property {string} tz - IANA time zone.
 * @property {string[]} filters - Each JSON as the API has it; all must hold.
 * @property {Record<string, string>} more - What belongs to one screen.
 */

/** What every screen keeps when another one is opened. */
const SHARED = ["customer", "range", "from", "to", "tz"];
export const DEFAULTS = { customer: "*", range: "24h", from: "", to: "" };

/**
 * @param {string} pathname
 * @param {string} search
 * @param {string} zone - Of the browser: what holds where the address names none.
 * @returns {Place}
 */
export function placeOf(pathname, search, zone) {
  const given = new URLSearchParams(search);
  const from = given.get("from") ?? "";
  const to = given.get("to") ?? "";
  const more = Object.fromEntries([...given].filter(([name]) => !SHARED.includes(name) && name !== "filter"));
  return {
    screen: pathname.replace(/^\/+|\/+$/g, ""),
    customer: given.get("customer") || DEFAULTS.customer,
    range: given.get("range") || (from && to ? "" : DEFAULTS.range),
    from: given.get("range") ? "" : from,
    to: given.get("range") ? "" : to,
    tz: zoneOf(given.get("tz")) ?? zone,
    filters: given.getAll("filter"),
    more,
  };
}

/** @param {Place} place */
export function addressOf(place) {
  const found = new URLSearchParams();
  if (place.customer !== DEFAULTS.customer) found.set("customer", place.customer);
  if (place.range) found.set("range", place.range);
  else {
    found.set("from", place.from);
    found.set("to", place.to);
  }
  // Always: a colleague's browser may be in another zone.
  found.set("tz", place.tz);
  for (const one of place.filters) found.append("filter", one);
  for (const [name, value] of Object.entries(place.more)) if (value) found.set(name, value);
  return `/${place.screen}?${found}`;
}

/**
 * The same place for somebody who opens it later: a range up to now as the times that it has now. Now is always the present.
 * @param {Place} place
 * @param {number} now_ms
 * @returns {Place}
 */
export function lasting(place, now_ms) {
  const range = place.range && place.screen ? resolved(place, now_ms) : null;
  return range ? { ...place, range: "", from: String(range.from_ms), to: String(range.to_ms) } : place;
}

/** What is asked by a click, and of one picture alone: of these figures. */
const BY_CLICK = ["suspects", "threshold"];
const pictureOf = (/** @type {Place} */ { customer, range, from, to, tz, filters, more }) => JSON.stringify([customer, range, from, to, tz, filters, more.metrics, more.compare]);

/**
 * The place after a change. Another screen keeps what all share, and its own parameters are those given.
 * What was asked by a click does not follow to another picture, unless the change says it.
 * @param {Place} place
 * @param {Partial<Place>} change
 * @returns {Place}
 */
export function changed(place, change) {
  const isOther = change.screen !== undefined && change.screen !== place.screen;
  // A page of a list is of its question: after any other change the list begins again.
  const { cursor: _cursor, ...kept } = place.more;
  const more = isOther ? { ...change.more } : { ...kept, ...change.more };
  const given = { ...place, ...change, more };
  const moved = change.range ? { ...given, from: "", to: "" } : change.from ? { ...given, range: "" } : given;
  if (isOther || pictureOf(moved) === pictureOf(place)) return moved;
  const left = Object.entries(more).filter(([name]) => !BY_CLICK.includes(name) || change.more?.[name] !== undefined);
  return { ...moved, more: Object.fromEntries(left) };
}

/**
 * The address of a view that another page was reached from; null for everything else that somebody may have put into a link.
 * @param {string | null} text
 * @param {string} origin - Of this page.
 */
export function viewAddress(text, origin) {
  if (!text || !URL.canParse(text, origin)) return null;
  const found = new URL(text, origin);
  return found.origin === origin && found.pathname === "/view" ? found.pathname + found.search : null;
}

/**
 * The time zone of this name, as the API writes it: browsers take a name in any case, the API does not. Null where there is none.
 * @param {string | null} name
 */
export function zoneOf(name) {
  if (!name) return null;
  try {
    const found = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
    const same = [found, ...(Intl.supportedValuesOf?.("timeZone") ?? [])].find((one) => one.toLowerCase() === name.toLowerCase());
    // Other names of a zone, such as US/Pacific, are in no list.
    return same ?? (/^[A-Z]/.test(name) ? name : found);
  } catch {
    return null;
  }
}
