// @ts-check
// Which figures can be judged, in groups of a form. Pure: a new metric of the API finds its group by what it is.

/** Figures of live viewers, which are no metrics of views: their titles, meanings and units. @type {Record<string, {title: string, term: string, unit: string}>} */
export const LIVE = {
  live_rebuffering_fraction: { title: "Viewers of this moment that rebuffer", term: "live rebuffering", unit: "fraction" },
  live_bitrate_bps: { title: "Bitrate of viewers of this moment", term: "live bitrate", unit: "bps" },
};

/** @typedef {{metric: string, n: number | null}} Judged */
/** @typedef {{title: string, unit: string, kind: string}} Known */

/** In this order, before percentiles. */
const FIRST = ["viewers of this moment", "shares", "means and rates", "scores"];
const TOTALS = "totals of a range";

/** @param {string} name @param {Known} metric */
function groupOf(name, { title, unit, kind }) {
  if (LIVE[name]) return FIRST[0];
  if (kind === "percentile") return title.split(",")[0];
  if (kind === "sum") return TOTALS;
  return unit === "fraction" ? FIRST[1] : unit === "score" ? FIRST[3] : FIRST[2];
}

/**
 * Thresholds by group, those that somebody looks for alone.
 * @template {Judged} T
 * @param {T[]} thresholds
 * @param {(name: string) => Known} metricOf
 * @param {string} search - A part of a title or a name; empty: all.
 * @returns {{title: string, isOfTotals: boolean, judged: number, thresholds: T[]}[]} `judged`: how many of them are coloured.
 */
export function judgedGroups(thresholds, metricOf, search) {
  const wanted = search.trim().toLowerCase();
  /** @type {Map<string, T[]>} */
  const found = new Map(FIRST.map((title) => [title, []]));
  for (const one of thresholds) {
    const title = groupOf(one.metric, metricOf(one.metric));
    const said = `${LIVE[one.metric]?.title ?? metricOf(one.metric).title} ${one.metric} ${title}`.toLowerCase();
    if (said.includes(wanted)) found.set(title, [...(found.get(title) ?? []), one]);
  }
  const totals = found.get(TOTALS) ?? [];
  found.delete(TOTALS);
  return [...found, /** @type {const} */ ([TOTALS, totals])]
    .filter(([, own]) => own.length)
    .map(([title, own]) => ({ title, isOfTotals: title === TOTALS, judged: own.filter((one) => one.n !== null).length, thresholds: own }));
}
