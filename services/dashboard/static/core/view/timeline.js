// @ts-check
// The life of a view from its events: states, ads, bitrates, and what its row says. Pure.

import { missingText, noBeaconsText } from "./requests.js";
import { bitrateText, countText, durationText, shareText } from "../words/format.js";

const STATES = {
  viewstart: "starting",
  playing: "playing",
  pause: "paused",
  rebufferstart: "rebuffering",
  seekstart: "seeking",
  error: "failed",
  ended: "ended",
};
export const LEGEND = ["starting", "playing", "paused", "rebuffering", "seeking", "failed"];

/** `code` and `message` are those of an error or a warning that was read from its beacon. @typedef {{at_ms: number, event: string, playhead_ms?: number, bitrate_bps?: number, code?: string, message?: string}} Event */
/** A timeline as it was read from beacons, `/v1/views/{view_id}/timeline`. @typedef {{events: Event[], beacons_n: number, known_to_ms: number, is_cut: boolean, agrees: boolean}} Read */
/** `at`: its place among the events; `text`: its code and text, empty where the row does not have them. @typedef {{at: number, at_ms: number, event: string, text: string}} Mark */
/** What a beacon says of an error, by the client's clock. @typedef {{event: string, at_ms: number, text: string}} Said */
/** @typedef {[kind: string, from_ms: number, to_ms: number]} Stretch */
/** @typedef {{from_ms: number, to_ms: number, bitrate_bps: number}} Level */

/** A row keeps so many events at most: the first ones. */
export const EVENTS_MAX = 200;

/** Whether every beacon that a view counts was read. @param {any} row @param {Read} read */
const isWhole = (row, read) => !read.is_cut && read.beacons_n >= row.beacon_count;

/** A row with the events that were read from its beacons, where these are more. Behind what was read nothing is known. @param {any} row @param {Read | null} read */
export function withRead(row, read) {
  if (!read || read.events.length <= (row.events ?? []).length) return row;
  return { ...row, events: read.events, known_to_ms: isWhole(row, read) ? null : read.known_to_ms };
}

/** Whether reading them again may find more beacons. @param {any} row @param {Read} read */
export const mayBeMore = (row, read) => !read.is_cut && !isWhole(row, read);

/** How much of a timeline was read, and why there may be more. @param {Read} read @param {any} row @param {number} now_ms */
export function timelineText(read, row, now_ms) {
  const { beacons_n, events } = read;
  if (beacons_n === 0) return noBeaconsText(row, now_ms, "the rest of its timeline is known from them alone");
  if (!read.agrees) return "The beacons of this view that are left do not lead to the events that it has kept: some before them are missing. So nothing is drawn from them.";
  const beacons = beacons_n === 1 ? "1 beacon" : `${countText(beacons_n)} beacons`;
  const others = read.is_cut ? "It has more beacons, which are not read for this." : `The other ${countText(row.beacon_count - beacons_n)} ${missingText(row, now_ms)}.`;
  if (!isWhole(row, read) && events.length <= (row.events ?? []).length) return `The first ${beacons} of this view say no more than it has kept. ${others}`;
  if (isWhole(row, read)) return `The timeline has all ${countText(events.length)} events of this view, from its ${beacons}.`;
  return `The timeline has the events of the first ${beacons} of this view, up to ${durationText(read.known_to_ms)}. ${others}`;
}

/** What the end of a lane is called of which the row has no events, and none were read. @param {any} row */
export const restName = (row) => (row.known_to_ms === undefined ? "not kept" : "not read");

/** From when on a row has no events, since it may not have kept them, in ms; null where it has all. @param {any} row @returns {number | null} */
export function unkeptFrom(row) {
  if (row.known_to_ms !== undefined) return row.known_to_ms;
  const events = /** @type {Event[]} */ (row.events ?? []);
  return events.length < EVENTS_MAX ? null : Math.max(0, ...events.map((one) => one.at_ms));
}

/** Up to when it is known what a view did. @param {any} row @param {number} span_ms */
const knownTo = (row, span_ms) => unkeptFrom(row) ?? span_ms;

/**
 * From each event that begins something to the next one that ends it.
 * @param {Event[]} events
 * @param {number} end_ms - Of the last one.
 * @param {(event: string, at: number) => string | null | undefined} kindOf - Null: ends; undefined: changes nothing.
 * @returns {Stretch[]}
 */
function stretches(events, end_ms, kindOf) {
  /** @type {Stretch[]} */
  const found = [];
  /** @type {[string, number] | null} */
  let open = null;
  for (const [n, { at_ms, event }] of events.entries()) {
    const kind = kindOf(event, n);
    if (kind === undefined) continue;
    if (open) found.push([open[0], open[1], at_ms]);
    open = kind ? [kind, at_ms] : null;
  }
  if (open && open[0] !== "ended") found.push([open[0], open[1], end_ms]);
  // A failure is often the last event of all.
  return found.filter(([kind, from, to]) => (to > from && kind !== "ended") || kind === "failed");
}

/** @param {any} row */
export const spanOf = (row) => Math.max(1, row.view_end_ms - row.view_start_ms, ...(row.events ?? []).map((/** @type {Event} */ one) => one.at_ms));

/** @param {any} row @param {number} span_ms */
export function statesOf(row, span_ms) {
  const events = /** @type {Event[]} */ (row.events ?? []);
  // Not every error is the end: one after which something plays, or of a view that did not fail, changes no state.
  const hasFailed = row.playback_failed || row.business_exception;
  const lastPlaying = events.findLastIndex(({ event }) => event === "playing");
  return stretches(events, knownTo(row, span_ms), (event, n) =>
    event === "error" && !(hasFailed && n > lastPlaying) ? undefined : /** @type {any} */ (STATES)[event],
  );
}

/** @param {any} row @param {number} span_ms */
export function adsOf(row, span_ms) {
  return stretches(row.events ?? [], knownTo(row, span_ms), (event) => {
    if (event === "adplaying") return "ad";
    return /^ad(pause|ended|error|breakend)$/.test(event) ? null : undefined;
  });
}

/** @param {string} [code] @param {string} [message] */
const saidText = (code, message) => [code, message].filter(Boolean).join(": ");

const isError = (/** @type {string} */ event) => event === "error" || event === "warning";

/**
 * Errors and warnings. A row keeps the last code and text that were reported alone: of which of several errors, their beacons say.
 * @param {any} row
 * @param {Said[]} [said] - Of the beacons: they are those of the timeline where there are as many of a kind.
 * @returns {Mark[]}
 */
export function errorsOf(row, said = []) {
  const events = /** @type {Event[]} */ (row.events ?? []);
  const isOnly = unkeptFrom(row) === null && events.filter(({ event }) => event === "error").length === 1;
  const text = saidText(row.error_code, row.error_message);
  const marks = events.flatMap(({ at_ms, event, code, message }, at) => (isError(event) ? [{ at, at_ms, event, text: saidText(code, message) || (isOnly && event === "error" ? text : "") }] : []));
  return marks.map((mark) => {
    const own = marks.filter(({ event }) => event === mark.event);
    const theirs = said.filter(({ event }) => event === mark.event);
    return own.length === theirs.length ? { ...mark, text: theirs[own.indexOf(mark)].text || mark.text } : mark;
  });
}

/** The code in the name of an event of one's own, as dash.js and hls.js send it by CMCD (`cen`, docs/clients.md). */
const NAMED_CODE = /^playhead-error:(.+)$/;
const isSaid = (/** @type {any} */ one) => typeof one === "string" ? one !== "" : typeof one === "number";

/**
 * The errors and warnings among beacons as they came, each once and in the client's order.
 * @param {{beacon: any}[]} beacons - As the API lists them.
 * @returns {Said[]}
 */
export function errorsSaid(beacons) {
  const found = new Map();
  for (const { beacon } of beacons) {
    const attrs = { ...beacon?.attrs, ...beacon?.attrs?.payload };
    const named = NAMED_CODE.exec(attrs.cen ?? "")?.[1];
    const event = named ? "error" : beacon?.event;
    if (!isError(event)) continue;
    const parts = [named ?? attrs.player_error_code ?? attrs.error_code ?? attrs.code ?? attrs.ec, attrs.player_error_message ?? attrs.error_message ?? attrs.message];
    const text = parts.filter(isSaid).join(": ");
    found.set(JSON.stringify([beacon.seq, beacon.client_time_ms, event, text]), { event, at_ms: beacon.client_time_ms, seq: beacon.seq, text });
  }
  // A clock may be set back, a number is not. Clients without numbers have times.
  return [...found.values()].sort((one, other) => (one.seq ?? 0) - (other.seq ?? 0) || one.at_ms - other.at_ms).map(({ event, at_ms, text }) => ({ event, at_ms, text }));
}

/** A mark as its tooltip and its label say it. @param {Mark} mark */
export const markText = ({ event, text, at_ms }) => `${event}${text && ` ${text}`}, at ${durationText(at_ms)}`;

/**
 * The bitrates, each from its event to the next one that has any. Times never go back, as a client's clock does when it is set back.
 * @param {any} row
 * @param {number} span_ms
 * @returns {Level[]}
 */
export function levelsOf(row, span_ms) {
  let from_ms = 0;
  const found = /** @type {Event[]} */ (row.events ?? []).flatMap(({ at_ms, bitrate_bps }) => {
    if (!bitrate_bps) return [];
    from_ms = Math.max(from_ms, at_ms);
    return [{ from_ms, bitrate_bps }];
  });
  return found.map((one, n) => ({ ...one, to_ms: found[n + 1]?.from_ms ?? knownTo(row, span_ms) }));
}

/** Seconds between two marks of an axis that has at most eight of them. @param {number} span_ms */
export const axisStep = (span_ms) =>
  [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 14_400].find((s) => span_ms / (s * 1000) <= 8) ?? 28_800;

/** Time since the beginning. @param {number} s */
export function sinceText(s) {
  if (s < 60) return `${Number(s.toFixed(1))} s`;
  const [h, m, rest] = [Math.floor(s / 3600), Math.floor(s / 60) % 60, Math.floor(s % 60)];
  return h ? `${h}:${String(m).padStart(2, "0")} h` : `${m}:${String(rest).padStart(2, "0")}`;
}

/** A place in a video: as a player shows it from a minute on, since 4.0 h is the same for minutes of a live stream. @param {number} ms */
export function playheadText(ms) {
  if (ms < 60_000) return durationText(ms);
  const s = Math.floor(ms / 1_000);
  const [h, m, rest] = [Math.floor(s / 3_600), Math.floor(s / 60) % 60, s % 60].map((part) => String(part).padStart(2, "0"));
  return h === "00" ? `${Number(m)}:${rest}` : `${Number(h)}:${m}:${rest}`;
}

/** @type {Record<string, string>} */
const ENDS = {
  clean: "ended by the viewer",
  timeout: "ended in silence",
  error: "ended with an error",
  long_rebuffer: "given up while it rebuffered",
  superseded: "ended by the next view",
};

/** How a view ended: that it failed comes first, before what the viewer did then. @param {any} row @param {boolean} isOpen */
export function endText(row, isOpen) {
  const end = isOpen ? "still open" : (ENDS[row.end_reason] ?? row.end_reason);
  if (row.end_reason === "error" && !isOpen) return end;
  if (row.startup_failed) return `failed to start, ${end}`;
  return row.playback_failed ? `failed, ${end}` : end;
}

/** @param {any} row @param {boolean} isOpen */
function startupText(row, isOpen) {
  if (row.startup_ms !== undefined && row.startup_ms !== null) return durationText(row.startup_ms);
  if (isOpen && !row.startup_unknown) return row.playback_failed ? "failed" : "not yet";
  if (row.startup_unknown === "not_started") return row.playback_failed ? "failed" : "left before";
  return row.startup_ms_max ? `not known, ${durationText(row.startup_ms_max)} at most` : "not known";
}

/** What is shown of a view above its timeline. @param {any} row @param {boolean} isOpen @returns {[name: string, value: string][]} */
export function factsOf(row, isOpen) {
  const share = row.watch_ms ? ` (${shareText((row.rebuffer_ms ?? 0) / row.watch_ms)})` : "";
  const rows = /** @type {[string, any][]} */ ([
    ["Start-up", startupText(row, isOpen)],
    ["Watched", durationText(row.watch_ms ?? 0)],
    ["Rebuffering", `${row.rebuffer_count ?? 0} × · ${durationText(row.rebuffer_ms ?? 0)}${share}`],
    ["Seeks", `${row.seek_count ?? 0} × · ${durationText(row.seek_ms ?? 0)}`],
    ["Bitrate", row.avg_bitrate_bps ? bitrateText(row.avg_bitrate_bps) : null],
    ["Experience", row.score_view === undefined || row.score_view === null ? null : countText(row.score_view)],
    ["Error", row.error_code && saidText(row.error_code, row.error_message)],
    ["Ads", row.ad_impressions ? `${row.ad_impressions} · ${durationText(row.ad_playing_ms ?? 0)}` : null],
    ["Requests", row.req_count ? `${countText(row.req_count)}, ${countText(row.req_failed ?? 0)} failed${row.req_canceled ? `, ${countText(row.req_canceled)} canceled` : ""}` : null],
    ["Beacons", `${countText(row.beacon_count)}${row.complete ? ", complete" : ""}${row.seq_gaps ? `, ${row.seq_gaps} missing` : ""}`],
  ]);
  return rows.filter(([, value]) => value);
}
