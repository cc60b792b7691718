// @ts-check
// Figures of a live picture: what tiles and lines show, and what the status line says. Pure.

import { OTHER, UNKNOWN } from "../place/filters.js";
import { ageText, bitrateText, countText, shareText } from "../words/format.js";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../place/ranges.js";

/** Of the stream, and of the last day of what was landed. */
const STEP_MS = 5_000;

/** A picture that is older than this is not the present. */
const STALE_MS = 20_000;
/** The server sends something every 3 s. A stream that is silent for longer has no server behind it. */
export const SILENT_MS = 10_000;

/** @typedef {Record<string, number>} Figures */
/** @typedef {{name: string, title: string, term: string, unit: string, isCount: boolean, metric?: string, n?: string, fields: string[], of: (figures: Figures) => number | null, aside: (figures: Figures) => string}} Tile */

/** @param {number} above @param {number} below */
const ratio = (above, below) => (below ? above / below : null);
const none = () => "";

/** What Now shows of viewers, in this order. `isCount`: what happened in a step, and is added up. `metric`: the one of views by which those behind it are found. `n`: the field of how many viewers or views it is of. @type {Tile[]} */
export const TILES = [
  { name: "viewers", title: "Viewers", term: "live viewers", unit: "viewers", isCount: false, fields: ["viewers_now"], of: (one) => one.viewers_now, aside: none },
  {
    name: "rebuffering",
    title: "Rebuffering now",
    term: "live rebuffering",
    unit: "fraction",
    isCount: false,
    n: "viewers_now",
    fields: ["rebuffering_now", "viewers_now"],
    of: (one) => ratio(one.rebuffering_now, one.viewers_now),
    aside: (one) => `${countText(one.rebuffering_now)} of ${countText(one.viewers_now)} viewers`,
  },
  {
    name: "bitrate",
    title: "Bitrate now",
    term: "live bitrate",
    unit: "bps",
    isCount: false,
    n: "bitrate_viewers_now",
    fields: ["bitrate_bps_now", "bitrate_viewers_now"],
    of: (one) => ratio(one.bitrate_bps_now, one.bitrate_viewers_now),
    aside: (one) => `n ${countText(one.bitrate_viewers_now)}`,
  },
  { name: "starts", title: "Views started", term: "live views started", unit: "views", isCount: true, fields: ["views_started"], of: (one) => one.views_started, aside: none },
  {
    name: "failures",
    title: "Failures",
    term: "playback failures",
    unit: "views",
    isCount: true,
    metric: "playback_failures",
    n: "views_started",
    fields: ["failures", "views_started"],
    of: (one) => one.failures,
    aside: (one) => `n ${countText(one.views_started)} started`,
  },
  {
    name: "exits",
    title: "Exits before start",
    term: "exits before video start",
    unit: "views",
    isCount: true,
    metric: "exits_before_start",
    n: "views_finished",
    fields: ["exits_before_start", "views_finished"],
    of: (one) => one.exits_before_start,
    aside: (one) => `n ${countText(one.views_finished)} finished`,
  },
  {
    name: "startup",
    title: "Start-up, mean",
    term: "video start-up time",
    unit: "ms",
    isCount: true,
    metric: "startup_ms_p50",
    n: "startups",
    fields: ["startup_ms", "startups"],
    of: (one) => ratio(one.startup_ms, one.startups),
    aside: (one) => `n ${countText(one.startups)}`,
  },
];

/**
 * A tile's values, one for each step of a picture.
 * @param {Tile} tile
 * @param {Record<string, (number | null)[]>} series
 */
export function valuesOf(tile, series) {
  const names = Object.keys(series);
  const length = series.viewers_now?.length ?? 0;
  return Array.from({ length }, (_, at) => {
    if (series.viewers_now[at] === null) return null;
    return tile.of(Object.fromEntries(names.map((name) => [name, series[name][at] ?? 0])));
  });
}

/** How far back the chart of Now goes, beside the stream's own minutes: with the step of what is asked for. @type {Record<string, {title: string, ms: number, step_ms: number}>} */
export const BACK = {
  "1h": { title: "1 h", ms: HOUR_MS, step_ms: STEP_MS },
  "6h": { title: "6 h", ms: 6 * HOUR_MS, step_ms: MINUTE_MS },
  "24h": { title: "24 h", ms: 24 * HOUR_MS, step_ms: MINUTE_MS },
};

/**
 * Which stretch the chart of Now shows. An earlier one is by 5 s as long as steps are kept, a day, and then by minute.
 * @param {string} back - Key of `BACK`.
 * @param {string | undefined} until - Where an earlier stretch ends, ms since 1970; else it ends with this minute.
 * @param {number} now_ms
 * @returns {{from_ms: number, until_ms: number, step_ms: number, isEarlier: boolean}}
 */
export function stretchOf(back, until, now_ms) {
  const { ms, step_ms } = BACK[back];
  const now = (Math.floor(now_ms / MINUTE_MS) + 1) * MINUTE_MS;
  const given = Math.floor(Number(until || NaN) / MINUTE_MS) * MINUTE_MS;
  const isEarlier = given > 0 && given < now;
  const until_ms = isEarlier ? given : now;
  return { from_ms: until_ms - ms, until_ms, step_ms: until_ms - ms < now - DAY_MS ? Math.max(step_ms, MINUTE_MS) : step_ms, isEarlier };
}

/** How long a picture's series are. @param {any} picture - As /v1/live has it. */
export const spanOf = (picture) => (picture.series.viewers_now?.length ?? 0) * picture.bucket_ms;

/** A stretch up to now whose steps are no shorter than those of the picture that goes on with it: counts of both are of one step. @param {ReturnType<typeof stretchOf>} stretch @param {number} bucket_ms */
export const withSteps = (stretch, bucket_ms) => (stretch.isEarlier ? stretch : { ...stretch, step_ms: Math.max(stretch.step_ms, bucket_ms) });

/**
 * A tile's values of earlier, then those of the stream. Where earlier ones are by minute, what is counted is by minute all along.
 * @param {Tile} tile
 * @param {{from_ms: number, step_ms: number, values: {value: string, series: Record<string, (number | null)[]>}[]}} past - As /v1/live/history has it.
 * @param {any} picture - As /v1/live has it.
 * @param {string} value - Of the dimension that the past is by; empty for the whole.
 * @returns {{times: number[], values: (number | null)[], counts: number[]}} Each at the end of its step, in seconds since 1970; with the n of each value, of
 *   a tile that has one.
 */
export function joined(tile, past, picture, value) {
  const series = past.values.find((one) => one.value === value)?.series ?? {};
  const length = Math.max(0, ...past.values.map((one) => one.series[tile.fields[0]]?.length ?? 0));
  const isByMinute = tile.isCount && past.step_ms > picture.bucket_ms;
  const live = isByMinute ? minutesOf(tile, picture) : stepsOf(tile, picture);
  const live_ms = live.from_ms ?? Infinity;
  const times = [];
  const values = [];
  const counts = [];
  for (let at = 0; at < length; at += 1) {
    const end_ms = past.from_ms + (at + 1) * past.step_ms;
    if (end_ms > live_ms) break;
    const isKnown = tile.fields.every((name) => typeof series[name]?.[at] === "number");
    times.push(end_ms / 1_000);
    values.push(isKnown ? tile.of(Object.fromEntries(tile.fields.map((name) => [name, Number(series[name][at])]))) : null);
    if (tile.n) counts.push(series[tile.n]?.[at] ?? 0);
  }
  return { times: [...times, ...live.times], values: [...values, ...live.values], counts: [...counts, ...live.counts] };
}

/** @param {Tile} tile @param {any} picture */
function stepsOf(tile, picture) {
  const all = valuesOf(tile, picture.series);
  // A stream that has just begun knows nothing of its first minutes; what was landed does.
  const first = Math.max(0, picture.series.viewers_now?.findIndex((/** @type {any} */ one) => one !== null) ?? 0);
  const from_ms = picture.from_ms === null ? null : picture.from_ms + first * picture.bucket_ms;
  const values = all.slice(first);
  const counts = tile.n ? values.map((_, at) => picture.series[/** @type {string} */ (tile.n)]?.[first + at] ?? 0) : [];
  return { from_ms, times: values.map((_, at) => ((from_ms ?? 0) + (at + 1) * picture.bucket_ms) / 1_000), values, counts };
}

/** What was counted, by whole minutes of the clock. @param {Tile} tile @param {any} picture */
function minutesOf(tile, picture) {
  /** @type {Map<number, Record<string, number>>} */
  const sums = new Map();
  const buckets = picture.series.viewers_now?.length ?? 0;
  const first_ms = Math.ceil((picture.from_ms ?? 0) / MINUTE_MS) * MINUTE_MS;
  for (let at = 0; at < buckets; at += 1) {
    const minute_ms = Math.floor((picture.from_ms + at * picture.bucket_ms) / MINUTE_MS) * MINUTE_MS;
    if (minute_ms < first_ms || minute_ms + MINUTE_MS > picture.from_ms + buckets * picture.bucket_ms || picture.series.viewers_now[at] === null) continue;
    const into = sums.get(minute_ms) ?? Object.fromEntries(tile.fields.map((name) => [name, 0]));
    for (const name of tile.fields) into[name] += picture.series[name]?.[at] ?? 0;
    sums.set(minute_ms, into);
  }
  const found = [...sums];
  return { from_ms: found.length ? found[0][0] : picture.from_ms, times: found.map(([ms]) => (ms + MINUTE_MS) / 1_000), values: found.map(([, figures]) => tile.of(figures)), counts: tile.n ? found.map(([, figures]) => figures[/** @type {string} */ (tile.n)]) : [] };
}

/**
 * How fresh the picture is: a level, a few words, and a sentence where something is wrong.
 * @param {{picture: any, isListening: boolean, isUnconfirmed: boolean, silent_ms: number, now_ms: number, refused?: string, isBack?: boolean}} state - `now_ms` by the server's clock;
 *   `refused`: why there is no picture, though the server answers; `isBack`: nothing has come since the tab was hidden.
 * @returns {{level: string, text: string, notice: string}}
 */
export function statusOf({ picture, isListening, isUnconfirmed, silent_ms, now_ms, refused = "", isBack = false }) {
  // Why is said once, by the questions of the screen.
  if (refused) return { level: "refused", text: "No live figures", notice: "" };
  const age_ms = picture?.shown_until_ms ? Math.max(0, now_ms - picture.shown_until_ms) : null;
  const isOld = age_ms !== null && age_ms > STALE_MS;
  const data = age_ms === null ? "no live data yet" : `live data ${ageText(age_ms)} old`;
  if (!picture && !isListening) return { level: "broken", text: "Dashboard out of reach", notice: "" };
  if (!isListening) {
    return { level: "broken", text: `Dashboard out of reach · ${data}`, notice: "The dashboard's server does not answer. The page goes on trying." };
  }
  if (silent_ms > SILENT_MS) {
    const notice = `The dashboard's server has sent nothing for ${ageText(silent_ms)}. The figures below are as old as the status shows.`;
    return { level: "broken", text: `Dashboard does not answer · ${data}`, notice };
  }
  if (isUnconfirmed) {
    const notice = "Postgres does not answer, so the server cannot tell who may see what. The page goes on as soon as it is back.";
    return { level: "broken", text: `Postgres out of reach · ${data}`, notice };
  }
  if (isBack) return { level: "old", text: `Catching up · ${data}`, notice: "" };
  if (picture?.state === "away") {
    const notice = "Kafka does not answer, so nothing new comes in. The page goes on as soon as it is back.";
    return { level: "broken", text: `Kafka out of reach · ${data}`, notice };
  }
  if (!picture || picture.state === "waiting") {
    const notice = picture ? "Nothing has been counted in the last minutes. As soon as a player sends beacons, they show here." : "";
    return { level: "waiting", text: "No live data yet", notice };
  }
  const { heard, behind } = picture.partitions;
  if (behind.length && !isOld) {
    const oldest_ms = Math.min(...behind.map((/** @type {any} */ one) => one.until_ms));
    const notice = `${behind.length} of ${heard} parts of the viewers are counted late, for up to ${ageText(Math.max(0, now_ms - oldest_ms))}: they are missing here.`;
    return { level: "old", text: `Incomplete · ${data}`, notice };
  }
  if (isOld) {
    const notice = "No newer figures come in: either nobody has watched for a while, or counting has stopped.";
    return { level: "old", text: `Stalled · ${data}`, notice };
  }
  return { level: "good", text: `Live · ${ageText(age_ms ?? 0)} old`, notice: "" };
}

/**
 * The cells of a slice or customer: viewers, rebuffering and bitrate, each with the number of viewers of whom it is known.
 * @param {Figures | null} now
 */
export function cellsOf(now) {
  const rebuffering = now && ratio(now.rebuffering_now, now.viewers_now);
  const bitrate = now && ratio(now.bitrate_bps_now, now.bitrate_viewers_now);
  return { viewers: countText(now?.viewers_now), rebuffering: shareText(rebuffering), share: rebuffering, rebuffering_n: `n ${countText(now?.viewers_now ?? 0)}`, bitrate: bitrateText(bitrate), bitrate_n: `n ${countText(now?.bitrate_viewers_now ?? 0)}` };
}

/** By what a card of Now is sorted: what a column shows. @type {Record<string, (one: any) => number | null>} */
const SORTED_BY = { viewers: (one) => one.viewers_now, rebuffering: (one) => cellsOf(one).share, failures: (one) => one.failures };

/** How a card is sorted, as the address has it; by viewers without a word of it. @param {string | undefined} text @returns {{by: string, isAscending: boolean}} */
export function sortOf(text) {
  const [by, order] = (text ?? "").split(".");
  return Object.hasOwn(SORTED_BY, by) ? { by, isAscending: order === "ascending" } : { by: "viewers", isAscending: false };
}

/** The same for the address. @param {{by: string, isAscending: boolean}} sort */
export const sortText = ({ by, isAscending }) => (isAscending ? `${by}.ascending` : by === "viewers" ? "" : by);

/**
 * The values of a dimension in an order. One without the figure comes after those with it; views without a value, and all others together, come last.
 * @param {any[]} values - As a picture has them, those with the most viewers first.
 * @param {{by: string, isAscending: boolean}} sort
 */
export function ordered(values, { by, isAscending }) {
  const figure = SORTED_BY[by];
  const isRest = (/** @type {any} */ one) => one.value === OTHER || one.value === UNKNOWN;
  const place = (/** @type {any} */ one) => (figure(one) === null ? Infinity : (isAscending ? 1 : -1) * Number(figure(one)));
  const named = values.filter((one) => !isRest(one)).sort((one, other) => (place(one) < place(other) ? -1 : place(one) > place(other) ? 1 : 0));
  return [...named, ...values.filter(isRest)];
}

/** What a share is of at least, where customers are sorted by it: of fewer it is chance. */
export const CUSTOMERS_MIN = 20;
/** By what the table of customers is sorted: heads of its columns, and whether each is a share. @type {Record<string, {title: string, isShare: boolean}>} */
export const CUSTOMER_COLUMNS = {
  viewers: { title: "Viewers", isShare: false },
  rebuffering: { title: "Rebuffering", isShare: true },
  bitrate: { title: "Bitrate", isShare: true },
  starts: { title: "Started", isShare: false },
  failures: { title: "Failures", isShare: true },
  exits: { title: "Exits before start", isShare: true },
};

/** How the table of customers is sorted, as the address has it. @param {string | undefined} text @returns {{by: string, isAscending: boolean}} */
export function customersSort(text) {
  const [by, order] = (text ?? "").split(".");
  return { by: Object.hasOwn(CUSTOMER_COLUMNS, by) ? by : "viewers", isAscending: order === "ascending" };
}

/** The parameters of /v1/live that list customers so. @param {Record<string, string>} more @returns {Record<string, string>} */
export function customersAsked(more) {
  const { by, isAscending } = customersSort(more["sort.customer"]);
  const least = more.customers_min ?? String(CUSTOMERS_MIN);
  if (by === "viewers" && !isAscending) return {};
  return { customers_by: by, customers_order: isAscending ? "ascending" : "descending", ...(CUSTOMER_COLUMNS[by].isShare && /^\d+$/.test(least) && { customers_min: least }) };
}
