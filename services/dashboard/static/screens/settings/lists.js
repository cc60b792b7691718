// @ts-check
// What the parts of Settings have in common: lists that are changed, tables, and what is shown once.

import { useSignal } from "@preact/signals";
import { momentText } from "../../core/place/ranges.js";
import { Copy } from "../../parts/inputs/copying.js";
import { Answered, useFetched } from "../../parts/data/asking.js";
import { customers } from "../../parts/data/known.js";
import { html } from "../../parts/html.js";
import { Pages } from "../../parts/data/pages.js";
import { place } from "../../parts/place.js";
import { change } from "../../parts/data/session.js";

export const ROLES = ["viewer", "editor", "admin", "owner"];

export const when = (/** @type {number | null} */ at_ms) => (at_ms === null ? "–" : momentText(at_ms, place.value.tz, { year: true }));

/** A list of the API that is read again after each change, and by `again`, and the changes; an error is shown beside it. @param {string | null} path */
export function useList(path) {
  const version = useSignal(0);
  const problem = useSignal("");
  const found = useFetched(path, () => /** @type {string} */ (path), 0, version.value);
  const again = () => {
    version.value += 1;
  };
  const act = async (/** @type {string} */ method, /** @type {string} */ to, /** @type {any} */ body = undefined) => {
    try {
      problem.value = "";
      const answer = await change(method, to, body);
      again();
      return answer;
    } catch (error) {
      const { title, detail } = /** @type {any} */ (error);
      problem.value = `${title}. ${detail}`;
      return null;
    }
  };
  const wrong = problem.value && html`<p class="notice" role="alert">${problem.value}</p>`;
  return { found, act, again, wrong, path, version: version.value };
}

/**
 * The rows of a list, page by page. After a change it begins again.
 * @param {{list: {found: any, path: string | null, version: number}, name: string, what: string, draw: (rows: any[]) => any}} props - `name`: of the rows in an answer.
 */
export function Listed({ list, name, what, draw }) {
  const { found, path, version } = list;
  return html`<${Answered} of=${found} draw=${(/** @type {any} */ data) => html`
    <${Pages} key=${path} version=${version} newest=${data} what=${what} id=${`more-${name}`} addressOf=${(/** @type {string} */ cursor) => `${path}&${new URLSearchParams({ cursor })}`}
      draw=${(/** @type {any[]} */ pages) => draw(pages.flatMap((page) => page[name]))} />`} />`;
}

/** What a form holds, by name. @param {Event} event */
export function given(event) {
  event.preventDefault();
  return Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target)));
}

/** Suggestions for a field that names an environment: `list="environments"`. */
export const Environments = () => html`<datalist id="environments">${customers.value.map((name) => html`<option value=${name} />`)}</datalist>`;

/** What is shown once. @param {{title: string, text: string}} props */
export function Once({ title, text }) {
  return html`<p class="notice" role="status">${title} It is shown this once: <code id="once">${text}</code> <${Copy} text=${text} of="once" /></p>`;
}

/** @param {{heads: string[], label: string, children?: any}} props */
export function Table({ heads, label, children }) {
  return html`<div class="scroll plain" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>${children}</tbody></table></div>`;
}
