// @ts-check
// Lists of the API in pages: a button asks for the next one, by the cursor of the last.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { place } from "../place.js";
import { addressFor, fetchJson } from "./asking.js";

/**
 * The newest first page; once more were asked for, the one that they follow, so that no row goes while somebody reads.
 * @param {{newest: any, path?: string, params?: Record<string, string | number>, addressOf?: (cursor: string) => string, what: string, id?: string,
 *   version?: number, draw: (pages: any[]) => any}} props - A list of the place has `path` and `params`, any other an address. `id`: of the button, where a screen has several.
 *   Another `version`: the list was changed, and begins again.
 */
export function Pages({ newest, path = "", params = {}, addressOf = (cursor) => addressFor(path, place.value, { ...params, cursor }), what, id = "more", version = 0, draw }) {
  const kept = useSignal(/** @type {any[]} */ ([]));
  const problem = useSignal("");
  const isAsking = useSignal(false);
  const current = useRef(version);
  useEffect(() => {
    current.current = version;
    kept.value = [];
  }, [version]);
  const pages = kept.value.length ? kept.value : [newest];
  const next = pages.at(-1).next;
  const more = async () => {
    isAsking.value = true;
    try {
      const page = await fetchJson(addressOf(next));
      problem.value = "";
      // Of a list that was changed meanwhile it is no page.
      if (current.current === version) kept.value = [...pages, page];
    } catch (error) {
      problem.value = /** @type {any} */ (error).title;
    } finally {
      isAsking.value = false;
    }
  };
  return html`
    ${draw(pages)}
    ${problem.value && html`<p class="notice" role="status">${problem.value}</p>`}
    ${next && html`<button type="button" id=${id} disabled=${isAsking.value} onClick=${more}>More ${what}</button>`}
    ${kept.value.length > 0 && newest !== pages[0] && html` <button type="button" id="newest" onClick=${() => { kept.value = []; }}>Show the newest again</button>`}`;
}

/** A key of a list of pages: with another place or other parameters the list starts from its first page. @param {Record<string, string | number>} params */
export const pagesKey = (params) => JSON.stringify([{ ...place.value, more: "" }, params]);

/** Rows of several pages, each once: what moves between two answers may come on both. @param {any[]} rows @param {(row: any) => string} keyOf @returns {any[]} */
export const once = (rows, keyOf) => [...new Map(rows.map((row) => [keyOf(row), row])).values()];
