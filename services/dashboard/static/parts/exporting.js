// @ts-check
// Exports: what is shown as a whole file, CSV or Parquet. The server makes it; the page waits, and the browser downloads it.

import { useSignal } from "@preact/signals";
import { resolved } from "../core/place/ranges.js";
import { fetchJson } from "./data/asking.js";
import { html } from "./html.js";
import { place } from "./place.js";
import { change } from "./data/session.js";

const AGAIN_MS = 1_000;

/**
 * The place's parameters as an export has them: a text each.
 * @param {Record<string, string | number>} params
 */
function parametersOf(params) {
  const { customer, tz, filters } = place.value;
  const range = resolved(place.value, Date.now());
  const filter = filters.length > 1 ? `{"and":[${filters.join(",")}]}` : (filters[0] ?? "");
  const given = { customer, tz, filter, from: range ? range.from_ms : place.value.from, to: range ? range.to_ms : place.value.to, ...params };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "").map(([name, value]) => [name, String(value)]));
}

/** @param {{of: "views" | "overall" | "timeseries" | "breakdown", params: Record<string, string | number>}} props */
export function Export({ of, params }) {
  const state = useSignal("");
  const make = async (/** @type {string} */ format) => {
    state.value = "The file is being made …";
    try {
      let job = await change("POST", "/v1/exports", { of, format, parameters: parametersOf(params) });
      while (job.state === "queued" || job.state === "running") {
        await new Promise((done) => setTimeout(done, AGAIN_MS));
        job = await fetchJson(`/v1/exports/${encodeURIComponent(job.id)}`);
      }
      if (job.state === "done") location.assign(job.href);
      state.value = job.state === "done" ? "" : `No file was made: ${job.problem}`;
    } catch (problem) {
      state.value = `No file was made: ${/** @type {any} */ (problem).title}. ${/** @type {any} */ (problem).detail}`;
    }
  };
  return html`<span class="export" role="group" aria-label="Export">
    <button type="button" onClick=${() => make("csv")}>CSV</button>
    <button type="button" onClick=${() => make("parquet")}>Parquet</button>
    <span class="note" role="status">${state.value}</span>
  </span>`;
}
