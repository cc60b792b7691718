// @ts-check
// Exports: what is shown as a whole file, CSV or Parquet. The server makes it; the page waits, and the browser downloads it.

import { useSignal } from "@preact/signals";
import { addressFor, fetchJson } from "./data/asking.js";
import { isRefusal } from "../core/words/problems.js";
import { html } from "./html.js";
import { place } from "./place.js";
import { change } from "./data/session.js";

const AGAIN_MS = 1_000;
const MADE = "The file is being made …";

/**
 * The parameters of a question as an export has them: a text each, and one filter that wants all.
 * @param {Record<string, string | number>} params
 * @returns {Record<string, string>}
 */
function parametersOf(params) {
  const asked = new URLSearchParams(addressFor("", place.value, params));
  const filters = asked.getAll("filter");
  const found = Object.fromEntries(asked);
  return filters.length > 1 ? { ...found, filter: `{"and":[${filters.join(",")}]}` } : found;
}

/**
 * @param {{of: import("../core/answers/exported.js").Of, params: Record<string, string | number>, what?: string}} props - `what` the file has, in words.
 */
export function Export({ of, params, what = "everything" }) {
  const state = useSignal("");
  const make = async (/** @type {string} */ format) => {
    state.value = MADE;
    try {
      let job = await change("POST", "/v1/exports", { of, format, parameters: parametersOf(params) });
      while (job.state === "queued" || job.state === "running") {
        await new Promise((done) => setTimeout(done, AGAIN_MS));
        job = await again(job);
      }
      if (job.state === "done") location.assign(job.href);
      state.value = job.state === "done" ? "" : `No file was made: ${job.problem}`;
    } catch (problem) {
      state.value = `No file was made: ${/** @type {any} */ (problem).title}. ${/** @type {any} */ (problem).detail}`;
    }
  };
  /** The job as it is by now; what cannot be asked goes on all the same. @param {any} job */
  const again = async (job) => {
    try {
      const found = await fetchJson(`/v1/exports/${encodeURIComponent(job.id)}`);
      state.value = MADE;
      return found;
    } catch (problem) {
      if (isRefusal(/** @type {any} */ (problem))) throw problem;
      state.value = `${MADE} ${/** @type {any} */ (problem).title}: how far it is cannot be seen.`;
      return job;
    }
  };
  return html`<span class="export" role="group" aria-label="Export" title=${`Exports ${what}`}>
    <button type="button" onClick=${() => make("csv")}>CSV</button>
    <button type="button" onClick=${() => make("parquet")}>Parquet</button>
    <span class="note" role="status">${state.value}</span>
  </span>`;
}
