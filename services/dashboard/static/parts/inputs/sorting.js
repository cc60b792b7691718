// @ts-check
// Heads of tables that are sorted by a click, on the same head again the other way round.

import { html } from "../html.js";
import { go } from "../place.js";

/** By which column a table is sorted. @typedef {{by: string, isAscending: boolean}} Sort */

/** Sorts the one table of a screen, as its address has it. @param {Sort} sort */
export const sortBy = ({ by, isAscending }) => go({ more: { sort: by, order: isAscending ? "ascending" : "" } });

/**
 * @param {{name: string, title: string, sort: Sort, sortBy: (sort: Sort) => void, children?: any}} props - `name`: of the column. `children` stand beside the title.
 */
export function SortHead({ name, title, sort, sortBy, children }) {
  const isOwn = sort.by === name;
  const direction = sort.isAscending ? "ascending" : "descending";
  return html`<th scope="col" aria-sort=${isOwn ? direction : undefined}>
    <button type="button" onClick=${() => sortBy({ by: name, isAscending: isOwn && !sort.isAscending })}>${title}</button>${children && html` ${children}`}</th>`;
}
