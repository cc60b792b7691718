// @ts-check
// What an address asks Explore for. Pure.

/**
 * The metric that is shown of those that an address names, as the API names several: the first that is known. The others can be chosen.
 * @param {string | undefined} text
 * @param {Record<string, unknown>} known - Empty until it is known.
 * @param {string} instead - Where it names none.
 * @returns {{metric: string, others: string[]}}
 */
export function metricsAsked(text, known, instead) {
  const names = [...new Set((text ?? "").split(",").map((name) => name.trim()).filter(Boolean))];
  const metric = names.find((name) => Object.hasOwn(known, name)) ?? names[0] ?? instead;
  return { metric, others: names.filter((name) => name !== metric && Object.hasOwn(known, name)) };
}
