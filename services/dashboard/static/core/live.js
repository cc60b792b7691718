// @ts-check
// Figures of a live picture: what tiles and lines show, and what the status line says. Pure.

import { ageText, bitrateText, countText, shareText } from "./format.js";

/** A picture that is older than this is not the present. */
const STALE_MS = 20_000;
/** The server sends something every 3 s. A stream that is silent for longer has no server behind it. */
export const SILENT_MS = 10_000;

/** @typedef {Record<string, number>} Figures */
/** @typedef {{name: string, title: string, term: string, unit: string, isCount: boolean, of: (figures: Figures) => number | null, aside: (figures: Figures) => string}} Tile */

/** @param {number} above @param {number} below */
const ratio = (above, below) => (below ? above / below : null);
const none = () => "";

/** What Now shows of viewers, in this order. `isCount`: what happened in 5 s, and is added up. @type {Tile[]} */
export const TILES = [
  { name: "viewers", title: "Viewers", term: "live viewers", unit: "viewers", isCount: false, of: (one) => one.viewers_now, aside: none },
  {
    name: "rebuffering",
    title: "Rebuffering now",
    term: "",
    unit: "fraction",
    isCount: false,
    of: (one) => ratio(one.rebuffering_now, one.viewers_now),
    aside: (one) => `${countText(one.rebuffering_now)} of ${countText(one.viewers_now)} viewers`,
  },
  {
    name: "bitrate",
    title: "Bitrate now",
    term: "weighted average bitrate",
    unit: "bps",
    isCount: false,
    of: (one) => ratio(one.bitrate_bps_now, one.bitrate_viewers_now),
    aside: (one) => `n ${countText(one.bitrate_viewers_now)}`,
  },
  { name: "starts", title: "Views started", term: "", unit: "views", isCount: true, of: (one) => one.views_started, aside: none },
  {
    name: "failures",
    title: "Failures",
    term: "playback failures",
    unit: "views",
    isCount: true,
    of: (one) => one.failures,
    aside: (one) => `n ${countText(one.views_started)} started`,
  },
  {
    name: "exits",
    title: "Exits before start",
    term: "exits before video start",
    unit: "views",
    isCount: true,
    of: (one) => one.exits_before_start,
    aside: (one) => `n ${countText(one.views_finished)} finished`,
  },
  {
    name: "startup",
    title: "Start-up, mean",
    term: "video start-up time",
    unit: "ms",
    isCount: true,
    of: (one) => ratio(one.startup_ms, one.startups),
    aside: (one) => `n ${countText(one.startups)}`,
  },
];

/**
 * A tile's values, one for each 5 s.
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

/**
 * How fresh the picture is: a level, a few words, and a sentence where something is wrong.
 * @param {{picture: any, isListening: boolean, isUnconfirmed: boolean, silent_ms: number, now_ms: number}} state - `now_ms` by the server's clock.
 * @returns {{level: string, text: string, notice: string}}
 */
export function statusOf({ picture, isListening, isUnconfirmed, silent_ms, now_ms }) {
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
    const notice = `${behind.length} of ${heard} partitions are behind, for up to ${ageText(Math.max(0, now_ms - oldest_ms))}: their viewers are missing here.`;
    return { level: "old", text: `Incomplete · ${data}`, notice };
  }
  if (isOld) {
    const notice = "No newer figures come in: either nobody has watched for a while, or the processor does not run.";
    return { level: "old", text: `Stalled · ${data}`, notice };
  }
  return { level: "good", text: `Live · ${ageText(age_ms ?? 0)} old`, notice: "" };
}

/**
 * The cells of a slice or customer: viewers, rebuffering, bitrate, failures.
 * @param {Figures | null} now
 */
export function cellsOf(now) {
  const rebuffering = now && ratio(now.rebuffering_now, now.viewers_now);
  const bitrate = now && ratio(now.bitrate_bps_now, now.bitrate_viewers_now);
  return { viewers: countText(now?.viewers_now), rebuffering: shareText(rebuffering), share: rebuffering, bitrate: bitrateText(bitrate) };
}
