// @ts-check
// A question that is refused: one sentence and a way on, once on a screen, however many questions are refused alike.

import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { html } from "../html.js";
import { Link } from "../place.js";

/** @typedef {import("../../core/words/problems.js").Problem} Problem */

/** Who has each sentence to say, the first one says it. @type {import("@preact/signals").Signal<{text: string, who: symbol}[]>} */
const saying = signal([]);

/** What leads on from what is wrong; a field of a search is left out. @type {Record<string, {words: string, to: Partial<import("../../core/place/place.js").Place>}>} */
const WAYS = {
  range: { words: "Show the last 24 hours", to: { range: "24h", from: "", to: "" } },
  customer: { words: "Show all customers that you may see", to: { customer: "*" } },
  filters: { words: "Take all filters away", to: { filters: [] } },
  metrics: { words: "Show another metric", to: { more: { metrics: "" } } },
  by: { words: "Show it without a breakdown", to: { more: { by: "" } } },
  tz: { words: "Show times of UTC", to: { tz: "UTC" } },
  compare: { words: "Compare with nothing", to: { more: { compare: "" } } },
};

/** @param {{problem: Problem, kept: string}} props - `kept`: what is said of an earlier answer that is shown. */
export function Wrong({ problem, kept }) {
  const who = useSignal(Symbol("who"));
  const { title, detail, way } = problem;
  useLayoutEffect(() => {
    const own = who.value;
    saying.value = [...saying.value, { text: title, who: own }];
    return () => {
      saying.value = saying.value.filter((one) => one.who !== own);
    };
  }, [title]);
  if (saying.value.find((one) => one.text === title)?.who !== who.value) return null;
  const on = way && (WAYS[way] ?? { words: "Search without it", to: { more: { [way]: "" } } });
  return html`<p class="notice refused" role="status">${title}. ${detail}${kept} ${on && html`<${Link} to=${on.to}>${on.words}<//>`}</p>`;
}
