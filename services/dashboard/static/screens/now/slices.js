// @ts-check
// Viewers now by each live dimension: the cards below the tiles of Now.

import { useSignal } from "@preact/signals";
import { cut, filterOfSlice, filterText, narrowedLive, OTHER, UNKNOWN } from "../../core/place/filters.js";
import { ageText, countText } from "../../core/words/format.js";
import { cellsOf, ordered, sortOf, sortText, TILES } from "../../core/live/live.js";
import { labelText } from "../../core/words/labels.js";
import { slicesNote } from "../../core/live/slices.js";
import { liveTitle, viewsOfLive } from "../../core/live/views.js";
import { addressFor, fetchJson, newestNow_ms } from "../../parts/data/asking.js";
import { Meaning, Term } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { nameOf, titleOf } from "../../parts/data/known.js";
import { WorldMap } from "../../parts/drawing/map.js";
import { cellClassOf } from "../../parts/notable/thresholds.js";
import { go, Link, place } from "../../parts/place.js";
import { SortHead } from "../../parts/inputs/sorting.js";

/** What heads mean: as the tiles say it. */
export const TERMS = Object.fromEntries(TILES.map(({ name, term }) => [name, term]));
/** A head that sorts nothing. @param {string} name @param {string} title */
const named = (name, title) => html`<th scope="col"><${Term} title=${title} term=${TERMS[name]} /></th>`;
export const WITHOUT = "without the filters above";

/** @param {string[]} filters */
export const wordsOf = (filters) => filters.map((text) => filterText(text, titleOf)).join(" and ");

/** The live dimensions, each value a filter. Under filters they are of the first one's viewers. @param {{picture: any}} props */
export function Slices({ picture }) {
  // The map first: a tall card at the head of a column leaves no gap.
  const dimensions = Object.entries(picture.slices).sort(([one], [other]) => Number(other === "country") - Number(one === "country"));
  if (!dimensions.length) return null;
  const { filters } = place.value;
  const of = picture.slices_of ? [filterOfSlice(picture.slices_of)] : [];
  const within = picture.slices_of && wordsOf(of);
  const narrowing = within ? `of ${within}${filters.length > 1 ? " alone" : ""}; ` : filters.length ? `${WITHOUT}; ` : "";
  const span = picture.slices_state === "live" ? `the last ${ageText(picture.slices_ms)}` : "that minute";
  return html`<section aria-labelledby="slices-title">
    <div class="section-head"><h2 id="slices-title">Viewers now, by dimension</h2><${SlicesNote} picture=${picture} /><p class="note">${narrowing}failures: of ${span}</p></div>
    <div class="cards" id="slices">
      ${dimensions.map(([name, values]) => html`<${Slice} key=${name} name=${name} values=${values} of=${of} counted_ms=${picture.slices_ms} isWhole=${Boolean(within) && cut(picture.slices_of)[0] === name} />`)}
    </div>
  </section>`;
}

/** As of when figures by dimension are, where that is not this moment; or why there are none. @param {{picture: any, id?: string}} props */
export function SlicesNote({ picture, id = "slices-note" }) {
  const note = slicesNote(picture, newestNow_ms(), place.value.tz);
  return note && html`<p class=${note.isOld ? "notice" : "note"} id=${id} role=${note.isOld ? "status" : undefined}>${note.text}</p>`;
}

/** @param {{name: string, values: any[], of: string[], isWhole: boolean, counted_ms: number}} props - `of`: the filters of which the figures are. `isWhole`: of all viewers, to choose another value from. */
function Slice({ name, values, of, isWhole, counted_ms }) {
  const most = Math.max(1, ...values.map((one) => one.viewers_now));
  const sort = sortOf(place.value.more[`sort.${name}`]);
  const sortBy = (/** @type {import("../../parts/inputs/sorting.js").Sort} */ given) => go({ more: { [`sort.${name}`]: sortText(given) } });
  const head = (/** @type {string} */ column, /** @type {string} */ title) => html`<${SortHead} name=${column} title=${title} sort=${sort} sortBy=${sortBy}><${Meaning} title=${title} term=${TERMS[column]} /><//>`;
  return html`<article class="card" id=${`slice-${name}`}>
    <h3>By ${nameOf(name)}${isWhole && " · of all viewers"}</h3>
    ${name === "country" && html`<${WorldMap} values=${values} isWarm=${isWarm} />`}
    <div class="scroll plain" tabindex="0" role="region" aria-label=${`Viewers by ${nameOf(name)}`}>
      <table>
        <thead><tr><th scope="col">${titleOf(name)}</th>${head("viewers", "Viewers")}${head("rebuffering", "Rebuffering")}${named("bitrate", "Bitrate")}${head("failures", "Failures")}</tr></thead>
        <tbody>${ordered(values, sort).filter((one) => one.viewers_now || one.failures).map((one) => html`<${SliceRow} key=${one.value} name=${name} one=${one} counted_ms=${counted_ms} most=${most} of=${isWhole ? [] : of} />`)}</tbody>
      </table>
    </div>
  </article>`;
}

/** Whether a country is marked on the map. @param {any} one */
const isWarm = (one) => cellClassOf("rebuffering", one) !== "";

/** @param {{name: string, one: any, most: number, of: string[], counted_ms: number}} props */
function SliceRow({ name, one, most, of, counted_ms }) {
  const cells = cellsOf(one);
  // No filter says which values have no name.
  const filters = one.value === OTHER ? null : narrowedLive(of, name, one.value);
  return html`<tr>
    <th scope="row">${filters ? html`<${Link} to=${{ filters: narrowedLive(place.value.filters, name, one.value) }}>${labelText(one.value)}<//>` : one.value}
      ${name === "video_title" && filters && one.value !== UNKNOWN && html`<${TitleLink} value=${one.value} />`}
      <span class="bar" style=${{ width: `${(100 * one.viewers_now) / most}%` }}></span></th>
    <td><${Behind} figure=${{ isCount: false }} filters=${filters}>${cells.viewers}<//></td>
    <td class=${cellClassOf("rebuffering", one)}><${Behind} figure=${{ isCount: false }} filters=${one.viewers_now ? filters : null}>${cells.rebuffering}<//> <span class="note">${cells.rebuffering_n}</span></td>
    <td class=${cellClassOf("bitrate", one)}><${Behind} figure=${{ isCount: false }} filters=${one.bitrate_viewers_now ? filters : null}>${cells.bitrate}<//> <span class="note">${cells.bitrate_n}</span></td>
    <td class=${cellClassOf("failures", one)}><${Behind} figure=${{ isCount: true, metric: "playback_failures" }} counted_ms=${counted_ms} filters=${one.failures ? filters : null}>${countText(one.failures)}<//> <span class="note" title="views started">n ${countText(one.views_started)}</span></td>
  </tr>`;
}

/** A figure that leads to its views. @param {{figure: {isCount: boolean, metric?: string}, filters: string[] | null, counted_ms?: number, children?: any}} props - Null: no filter says which they are. `counted_ms`: of a count, how long it is counted. */
const Behind = ({ figure, filters, counted_ms = 0, children }) => (filters ? html`<${Link} to=${viewsOfLive(figure, { customer: place.value.customer, filters })} title=${liveTitle(figure, counted_ms)}>${children}<//>` : children);

/** Leads to the screen of one title. Live figures have its name alone, so its id is asked for; several titles of that name are listed. @param {{value: string}} props */
function TitleLink({ value }) {
  const isAsking = useSignal(false);
  const list = { screen: "titles", filters: narrowedLive(place.value.filters, "video_title", value), more: {} };
  const open = async (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    const from = place.value;
    isAsking.value = true;
    const found = await fetchJson(addressFor("/v1/titles", { ...from, filters: list.filters }, { limit: 2 })).catch(() => null);
    isAsking.value = false;
    // Who has gone elsewhere meanwhile stays there.
    if (place.value === from) go(found?.titles.length === 1 ? { screen: "titles", more: { video: found.titles[0].video_id } } : list);
  };
  return html`<${Link} class="behind" to=${list} onClick=${open}>${isAsking.value ? "opening …" : "title"}<span class="unseen"> ${labelText(value)}: audience and quality</span><//>`;
}
