// @ts-check
// The player's requests of a view as they are drawn and worded. What a request is, the API says. Pure.

import { bitrateText, countText, durationText, sizeText } from "../words/format.js";

/** @typedef {{at_ms: number, outcome: "completed" | "failed" | "canceled", ttfb_ms?: number, time_ms?: number, size_bytes?: number, throughput_bps?: number, kind?: string, host?: string, file?: string, code?: string}} MediaRequest */
/** What was read: `requests` of the `requests_n` in `beacons_n` beacons. @typedef {{requests: MediaRequest[], requests_n: number, beacons_n: number, is_cut?: boolean, next?: string}} Read */
/** A bar of one request: all of 1,000 from left to right. @typedef {{request: MediaRequest, track: number, x: number, first_x: number, end_x: number}} Bar */

/** So many requests at a time are drawn beside each other; more of them cover each other. */
export const TRACKS = 4;
/** What is shorter is drawn as wide: it could not be pointed at. */
const WIDTH_MIN = 2;
/** Beacons reach the warehouse about a minute after they came: after this one that is missing was deleted. */
const LANDED_MS = 600_000;

/** Beside the colour: failed and canceled ones have a sign. @type {Record<string, string>} */
export const SIGNS = { completed: "", failed: "✕", canceled: "○" };

/** @param {MediaRequest} one */
export const outcomeText = ({ outcome, code }) => [SIGNS[outcome], outcome, code && `(${code})`].filter(Boolean).join(" ");

/** What was asked for. @param {MediaRequest} one */
export const whatText = ({ kind, file, host }) => [kind, file, host].filter(Boolean).join(" · ");

/** A request as its tooltip says it. @param {MediaRequest} one */
export function requestText(one) {
  const figures = [
    one.ttfb_ms !== undefined && `first byte after ${durationText(one.ttfb_ms)}`,
    one.time_ms !== undefined && `took ${durationText(one.time_ms)}`,
    one.size_bytes !== undefined && sizeText(one.size_bytes),
    one.throughput_bps !== undefined && bitrateText(one.throughput_bps),
  ];
  return [outcomeText(one), whatText(one), ...figures, `from ${durationText(one.at_ms)}`].filter(Boolean).join(", ");
}

/**
 * Requests as bars, those at one time on tracks of their own. They are in the order in which they began.
 * @param {MediaRequest[]} requests
 * @param {number} span_ms
 * @returns {Bar[]}
 */
export function barsOf(requests, span_ms) {
  const ends = Array.from({ length: TRACKS }, () => -Infinity);
  const x = (/** @type {number} */ ms) => Math.min(1_000, Math.max(0, (1_000 * ms) / Math.max(1, span_ms)));
  return requests.map((request) => {
    const { at_ms, ttfb_ms = 0, time_ms = 0 } = request;
    const from = Math.min(1_000 - WIDTH_MIN, x(at_ms));
    const to = Math.max(from + WIDTH_MIN, x(at_ms + time_ms));
    const free = ends.findIndex((end) => end <= from);
    const track = free === -1 ? ends.indexOf(Math.min(...ends)) : free;
    ends[track] = to;
    return { request, track, x: from, first_x: Math.min(to, Math.max(from, x(at_ms + ttfb_ms))), end_x: to };
  });
}

/** How many of how many were read, and the slowest first byte of those that were completed. @param {Pick<Read, "requests" | "requests_n">} read */
export function totalText({ requests, requests_n }) {
  const n = (/** @type {string} */ outcome) => requests.filter((one) => one.outcome === outcome).length;
  const slowest = Math.max(-1, ...requests.flatMap((one) => (one.outcome === "completed" && one.ttfb_ms !== undefined ? [one.ttfb_ms] : [])));
  const n_all = requests_n === 1 ? "1 request" : `${countText(requests_n)} requests`;
  const parts = [
    requests.length < requests_n ? `the first ${countText(requests.length)} of ${n_all}` : n_all,
    `${countText(n("failed"))} failed`,
    `${countText(n("canceled"))} canceled`,
    slowest >= 0 && `slowest first byte ${durationText(slowest)}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Why beacons of a view are not there. @param {any} row @param {number} now_ms */
export const missingText = (row, now_ms) => (now_ms - row.last_append_ms > LANDED_MS ? "are no longer kept" : "have not reached the warehouse yet");

/** That none was found. @param {any} row @param {number} now_ms @param {string} what - Cannot be known then. */
export function noBeaconsText(row, now_ms, what) {
  if (now_ms - row.last_append_ms > LANDED_MS) return `The beacons of this view are no longer kept, and ${what}.`;
  return "The warehouse has none of its beacons yet: they reach it about a minute after they came.";
}

/**
 * How much was read, and why there may be more.
 * @param {Read} read
 * @param {any} row - Of the view.
 * @param {number} now_ms
 */
export function readText({ requests, requests_n, beacons_n, is_cut = false }, row, now_ms) {
  if (beacons_n === 0) return noBeaconsText(row, now_ms, "its requests are known from them alone");
  const shown = requests.length < requests_n ? `Shown are the first ${countText(requests.length)} of ` : "";
  const read = `${shown}${countText(requests_n)} ${requests_n === 1 ? "request" : "requests"}, in ${is_cut ? "the first " : ""}${countText(beacons_n)} ${beacons_n === 1 ? "beacon" : "beacons"} of this view`;
  if (is_cut) return `${read}. It has more beacons, which are not read for this.`;
  const missing_n = (row.req_count ?? 0) - requests_n;
  if (missing_n <= 0) return `${read}.`;
  return `${read}. It counts ${countText(missing_n)} more: their beacons ${missingText(row, now_ms)}.`;
}
