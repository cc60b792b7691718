// @ts-check
// What the API knows: metrics, dimensions, and the customers that may be seen. Asked once.

import { signal } from "@preact/signals";
import { fieldTitle } from "../../core/words/view_fields.js";
import { distributedBy, fieldOf } from "../../core/figures/behind.js";
import { DAY_MS, HOUR_MS } from "../../core/place/ranges.js";
import { fetchJson, hasFirst } from "./asking.js";

/** @typedef {{name: string, title: string, unit: string, kind: string, formula: string, worse: string | null, suspects: import("../../core/answers/suspects.js").AskedBy | null}} Metric */
/** @typedef {{name: string, title: string, kind: string, by_end: boolean}} Dimension */

/** @type {import("@preact/signals").Signal<Record<string, Metric>>} */
export const metrics = signal({});
/** @type {import("@preact/signals").Signal<Record<string, Dimension>>} */
export const dimensions = signal({});
/** @type {import("@preact/signals").Signal<string[]>} */
export const customers = signal([]);
/** Whether those with views are among them. */
export const hasCustomers = signal(false);

/** Titles of the organisation's custom dimensions, by the name that filters and breakdowns have. @type {import("@preact/signals").Signal<Record<string, string>>} */
export const customs = signal({});

/** A metric that is made of a number of a view alone; of several a percentile. @param {string} name */
export function metricOfField(name) {
  const all = Object.values(metrics.value);
  return all.find((one) => fieldOf(one.name) === name) ?? all.find((one) => distributedBy(one.name) === name) ?? metrics.value[name];
}

/** What people call a dimension, or a number of a view that filters name, within a sentence. @param {string} name */
export function nameOf(name) {
  const custom = name.startsWith("custom.") ? (customs.value[name] ?? name.slice("custom.".length)) : "";
  return dimensions.value[name]?.title || custom || metricOfField(name)?.title.split(",")[0] || fieldTitle(name)?.toLowerCase() || name;
}

/** The same where a text begins with it. @param {string} name */
export const titleOf = (name) => capital(nameOf(name));

/** @param {string} name @returns {Metric} */
export const metricOf = (name) => metrics.value[name] ?? { name, title: name, unit: "count", kind: "sum", formula: "", worse: null, suspects: null };

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

async function ask() {
  try {
    const [known, named] = await Promise.all([fetchJson("/v1/metrics"), fetchJson("/v1/dimensions")]);
    metrics.value = byName(known.metrics);
    dimensions.value = byName(named.dimensions);
  } catch {
    // Each screen says itself what is away.
    setTimeout(ask, 5_000);
  }
}

/** Asks for the titles of custom dimensions: after a change too. */
export async function askCustoms() {
  try {
    const found = await fetchJson("/v1/custom-dimensions");
    customs.value = Object.fromEntries(found.custom_dimensions.map((/** @type {{name: string, title: string}} */ one) => [`custom.${one.name}`, one.title]));
  } catch {
    setTimeout(askCustoms, 10_000);
  }
}

async function askCustomers() {
  // Of whole hours: sums answer it, and no view is read.
  try {
    const found = await fetchJson(`/v1/breakdown?by=customer&limit=1000&from=${Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 30 * DAY_MS}`);
    seen(found.groups.filter((/** @type {any} */ one) => one.kind === "value").map((/** @type {any} */ one) => one.key[0]));
    hasCustomers.value = true;
  } catch {
    setTimeout(askCustomers, 10_000);
  }
}

/** @param {string[]} names - Of customers: those with views come first, those that live figures have follow. */
export function seen(names) {
  const added = names.filter((name) => !customers.value.includes(name));
  if (added.length) customers.value = [...customers.value, ...added];
}

/** @param {{name: string}[]} listed */
const byName = (listed) => /** @type {any} */ (Object.fromEntries(listed.map((one) => [one.name, one])));

ask();
hasFirst.then(askCustomers);
hasFirst.then(askCustoms);
