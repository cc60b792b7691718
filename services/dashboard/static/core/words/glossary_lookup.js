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
