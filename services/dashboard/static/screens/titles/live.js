// @ts-check
// Live viewers of titles: those of the last hours by minute, where curves of finished views fall towards now.

import { linesOfLive, liveOfTitle, openStretch } from "../../core/answers/audience.js";
import { MINUTE_MS, resolved } from "../../core/place/ranges.js";
import { presentNow_ms, useFetched } from "../../parts/data/asking.js";
import { Chart } from "../../parts/drawing/chart.js";
import { Term } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { go, place } from "../../parts/place.js";

const AGAIN_MS = 30_000;

/**
 * The live viewers of titles below their curves, where figures know them: by the title, and by one filter besides. Of several titles
 * those with the most viewers are known, without filters.
 * @param {{titles: {title: string, name: string | null}[]}} props - `title` of its line; `name`: as players report it.
 */
export function LiveViewers({ titles }) {
  const { customer, range, from, to, tz, filters } = place.value;
  const found = titles.map(({ name }) => (name ? liveOfTitle(filters, name) : null));
  const dimension = found.find((one) => one)?.dimension;
  const stretch = () => openStretch(resolved(place.value, presentNow_ms()) ?? { from_ms: 0, to_ms: 0 }, presentNow_ms());
  // Of several titles one question has all.
  const value = titles.length === 1 ? (found[0]?.value ?? "") : "";
  const key = dimension && (value || !filters.length) && stretch() ? JSON.stringify(["live titles", customer, range, from, to, dimension, value]) : null;
  const addressOf = () => {
    const { from_ms, until_ms } = stretch() ?? { from_ms: 0, until_ms: 0 };
    return `/v1/live/history?${new URLSearchParams({ customer, dimension: String(dimension), value, step_ms: String(MINUTE_MS), from_ms: String(from_ms), until_ms: String(until_ms) })}`;
  };
  const { data } = useFetched(key, addressOf, AGAIN_MS);
  const drawn = key && data && linesOfLive(data, titles.map(({ title }, at) => ({ title, value: found[at]?.value ?? null })));
  if (!drawn) return null;
  const { times, lines } = drawn;
  return html`<div id="live-viewers">
    <h3><${Term} title="Live viewers" term="live viewers" /> <span class="note">by minute, of players that name the title</span></h3>
    <${Chart} times=${times} lines=${lines} unit="viewers" tz=${tz} title="Live viewers" height=${190} hasCounts=${false} range=${{ from_ms: 1_000 * times[0], to_ms: 1_000 * times[0] + times.length * MINUTE_MS }}
      zoom=${(/** @type {number} */ begin, /** @type {number} */ end) => go({ from: String(begin), to: String(end), range: "" })} />
  </div>`;
}
