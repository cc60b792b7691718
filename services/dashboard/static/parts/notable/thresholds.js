// @ts-check
// From which figure on a metric is good or bad, as somebody set it for the customer that is looked at.

import { effect, signal } from "@preact/signals";
import { levelOf } from "../../core/figures/figures.js";
import { judgedOf } from "../../core/live/judged.js";
import { fetchJson } from "../data/asking.js";
import { place } from "../place.js";

/** @typedef {import("../../core/figures/figures.js").Threshold} Threshold */

/** By metric, of those that are judged; empty until they are known: then nothing is coloured. @type {import("@preact/signals").Signal<Record<string, Threshold>>} */
export const thresholds = signal({});

let asked = "";
let timer = 0;

/** Asks for those of the customer again: after a change too. @param {string} customer */
export async function askThresholds(customer) {
  clearTimeout(timer);
  asked = customer;
  try {
    const found = await fetchJson(`/v1/thresholds?${new URLSearchParams({ customer: customer === "*" ? "" : customer })}`);
    if (asked !== customer) return;
    thresholds.value = Object.fromEntries(found.thresholds.filter((/** @type {any} */ one) => one.n !== null).map((/** @type {any} */ one) => [one.metric, one]));
  } catch (problem) {
    // A customer that one may not see: the screen says so.
    if (/** @type {any} */ (problem).status !== 404) timer = setTimeout(() => askThresholds(customer), 5_000);
  }
}

effect(() => {
  const { customer } = place.value;
  if (customer === asked) return;
  // Until its own are known: those of another customer say nothing about it.
  thresholds.value = {};
  askThresholds(customer);
});

/**
 * The class of a figure: "is-good", "is-bad", or none.
 * @param {string} metric
 * @param {{value: number | null, n: number} | undefined} figure
 */
export function classOf(metric, figure) {
  const level = levelOf(thresholds.value[metric], metric, figure);
  return level && `is-${level}`;
}

/**
 * The same of a live figure.
 * @param {string} name - Of a tile of Now.
 * @param {import("../../core/live/live.js").Figures | null | undefined} figures - Of all viewers, a slice or a customer.
 */
export function classOfLive(name, figures) {
  const judged = judgedOf(name, figures);
  return judged ? classOf(judged.metric, judged.figure) : "";
}

/** That of a cell of live figures: a bad one is marked, a good one is as most are. @param {string} name @param {import("../../core/live/live.js").Figures | null | undefined} figures */
export const cellClassOf = (name, figures) => (classOfLive(name, figures) === "is-bad" ? "is-warm" : "");
