// @ts-check
// What a metric means, by its title. Pure.

import { GLOSSARY } from "./glossary.js";

/**
 * @param {string} title - As `/v1/metrics` has it: "video start-up time, p95". Empty: no metric.
 * @returns {{formula: string, source: string, clients: string, mux: string, cta: string} | null}
 */
export function termOf(title) {
  if (!title) return null;
  const names = [title, title.split(",")[0], title.replace(/,.*| score$/, "")];
  for (const name of names) {
    const found = GLOSSARY.find((one) => one.name === name || one.name.split(", ").some((part) => part === name || one.name.endsWith(name)));
    if (found) return found;
  }
  return null;
}

/** What the table has where there is nothing to say. */
const NOTHING = "–";

/**
 * What is said of a metric beside its formula, each under its name. What nobody else has is not said.
 * @param {{source: string, clients: string, mux: string, cta: string}} found
 * @returns {[string, string][]}
 */
export function notesOf({ source, clients, mux, cta }) {
  /** @type {[string, string][]} */
  const all = [
    ["Defined by", source.replace(/^own\b/, "Playhead")],
    ["Clients that report it", clients],
    ["Compared with Mux Data", mux],
    ["Compared with CTA", cta],
  ];
  // "– (why there is none)" keeps its reason.
  return all.filter(([, text]) => text !== NOTHING).map(([title, text]) => [title, text.replace(/^– \((.*)\)$/, "$1")]);
}
