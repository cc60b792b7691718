// @ts-check
// Beacons that arrive: what is missing for which figure, and what a rejection means. Pure.

import { ageText, countText } from "../words/format.js";

/**
 * What figures are lost without: `name` is a column of /v1/views, `metrics` are names of /v1/metrics without their ranks. `clients`: those that can report it,
 * where not all can (docs/view.md). `isOf`: of which views it can be known. `isCount`: 0 is none.
 * @typedef {{name: string, title: string, loses: string, metrics?: string[], clients?: string[], isOf?: (row: Record<string, any>) => boolean, isCount?: boolean}} Needed
 */

/** Fields of views, and what is lost without each. @type {Needed[]} */
export const NEEDED = [
  { name: "video_title", title: "Title", loses: "Titles, and views by title", clients: ["mux", "epas", "native"] },
  { name: "video_id", title: "Video id", loses: "the screen of a title: audience and retention" },
  { name: "viewer", title: "Viewer id", loses: "the search for a viewer, and the number of viewers", metrics: ["viewers"], clients: ["mux", "epas", "native"] },
  { name: "player_name", title: "Player", loses: "figures by player", clients: ["mux", "native"] },
  { name: "player_version", title: "Player version", loses: "what a release changed", clients: ["mux", "native"] },
  { name: "cdn", title: "CDN", loses: "figures by CDN, and suspects among them", clients: ["mux", "cmcd", "native"] },
  { name: "country", title: "Country", loses: "figures by country (the collector needs COLLECTOR_GEO_COUNTRIES, or the client sends it)" },
  { name: "asn", title: "Network (ASN)", loses: "figures by network (the collector needs COLLECTOR_GEO_ASNS)" },
  { name: "device", title: "Device", loses: "figures by device" },
  { name: "stream_type", title: "Live or on demand", loses: "figures by stream type" },
  { name: "startup_ms", title: "Start-up time", loses: "start-up time, its percentiles and the scores", metrics: ["startup_ms", "content_startup_ms", "startup_score", "smoothness_score", "spi_good_fraction"] },
  { name: "player_startup_ms", title: "Player start-up", loses: "player start-up time, and aggregate start-up time", metrics: ["player_startup_ms"], clients: ["mux", "native"] },
  { name: "page_load_ms", title: "Page load time", loses: "page load time, and aggregate start-up time", metrics: ["page_load_ms", "aggregate_startup_ms"], clients: ["mux", "native"] },
  { name: "seek_count", title: "Seeks", loses: "seeks and seek latency (a view in which nobody seeks has none)", metrics: ["seek_count", "seek_latency_ms"], isCount: true },
  { name: "avg_bitrate_bps", title: "Bitrate", loses: "average bitrate", metrics: ["bitrate_bps"] },
  { name: "scale_time_ms", title: "Sizes of player and video", loses: "upscale and downscale percentage, and the quality score", metrics: ["upscale_fraction", "downscale_fraction", "quality_score"], clients: ["mux", "native"] },
  { name: "dropped_frames", title: "Dropped frames", loses: "dropped frames, and how many a minute", metrics: ["dropped_frames", "dropped_frames_per_minute"], clients: ["mux", "cmcd", "native"] },
  { name: "live_latency_ms_avg", title: "Live latency", loses: "live latency (of live streams)", metrics: ["live_latency_ms"], clients: ["mux", "cmcd", "native"], isOf: (row) => row.stream_type === "live" },
  { name: "ttfb_sum_ms", title: "Requests, to the first byte", loses: "request latency", metrics: ["request_latency_ms"], clients: ["mux", "cmcd", "native"] },
  { name: "req_bytes", title: "Requests, bytes", loses: "request throughput", metrics: ["request_throughput_bps"], clients: ["mux", "native"] },
  { name: "playback_ranges_count", title: "Played ranges", loses: "retention by what was played and watched again", clients: ["mux"] },
];
/** Metrics that follow from the events alone that every client sends. */
export const NEEDS_NONE = [
  "views", "started", "exit_before_start_fraction", "startup_failure_fraction", "playback_failure_fraction", "view_dropped_fraction",
  "exits_before_start", "startup_failures", "playback_failures", "views_dropped", "watch_ms", "view_watch_ms", "playing_ms",
  "rebuffer_ms", "rebuffer_count", "rebuffer_fraction", "rebuffer_ratio", "rebuffers_per_minute", "experience_score", "success_score",
];
/** The columns of views that `missingOf` reads. */
export const READ = ["source", ...NEEDED.map(({ name }) => name)];

/**
 * How many of the views have each field, of those whose client can report it. A field that no client of them can report is left out.
 * @param {Record<string, any>[]} rows
 */
export function missingOf(rows) {
  const all = NEEDED.map((one) => {
    const of = rows.filter((row) => (one.clients?.includes(row.source) ?? true) && (one.isOf?.(row) ?? true));
    return { ...one, has: of.filter((row) => isKnown(row[one.name], one.isCount)).length, of: of.length };
  });
  return all.filter(({ of }) => of > 0);
}

/** @param {any} value @param {boolean} [isCount] */
const isKnown = (value, isCount) => value !== null && value !== undefined && value !== "" && !(isCount && value === 0);

/** Of what the sender can do nothing about. */
const TELL = "Tell who runs this installation, with the detail.";
/** What each reason of a rejection (shared/schemas/rejected.py) asks one to do. @type {Record<string, string>} */
const ADVICE = {
  undecodable: "The body is not what its path or content type says: look at the client's version and the address.",
  invalid: "A field is missing, of another kind or unknown: the detail names it.",
  too_large: "One beacon is too large: send less at a time.",
  unknown_customer: "No customer has this write key: compare the one in the player with the customer's keys.",
  revoked_key: "The write key was revoked or has ended: use a present one.",
  forbidden_origin: "The page's origin is not among those of the key: add it in Settings.",
  unnumbered: "CMCD without sn: switch it on, since repetitions look like new records without it.",
  unsigned: "The view has no valid signature, and the customer wants one.",
  unknown_version: "The client's format is newer than what is read here: set an earlier version in the client.",
  sampled: "The client sends some of its views alone. Switch sampling off: views are counted, not estimated.",
  fold_failed: `This input could not be counted, by an error here. ${TELL}`,
  fire_failed: `What was due for this view later could not be done, by an error here. ${TELL}`,
  quarantined: `Too much input of this view failed, so the rest is not counted. ${TELL}`,
  object_refused: `The store of files does not take what is kept for this input. ${TELL}`,
  table_full: `What this input adds has no room: too much of its kind is known already. ${TELL}`,
};

/** @param {string} reason */
export const adviceOf = (reason) => ADVICE[reason] ?? "";

/** A wrong key names no customer, so its owner sees nothing of its input (docs/collector.md has the answers). */
const MISTYPED =
  "Does it play already? Compare the write key in the player with the customer's keys. With an unknown key, native and EPAS players get status 401. Mux and CMCD players get an answer of success all the same.";

/**
 * How much came. What is looked at is the newest input of all customers.
 * @param {{beacons_n: number, views_n: number, rejected_n: number, seconds: number, is_cut: boolean}} data - As /v1/arrivals has it.
 */
export function countedText({ beacons_n, views_n, rejected_n, seconds, is_cut }) {
  const counted = `${countText(beacons_n)} beacons of ${countText(views_n)} views and ${countText(rejected_n)} rejected inputs in the last ${seconds / 60} minutes.`;
  return is_cut ? `${counted} More input of all customers together came than is looked at: some of this customer's may not be shown.` : counted;
}

/** Players report every ten seconds or so while they play: after this silence nothing arrives any more. */
const SILENT_MS = 60_000;

/**
 * The state of things as a sentence, and whether it is as it should be. `advice`: what to look at where nothing says what is wrong.
 * @param {any} data - As /v1/arrivals has it.
 * @param {number} now_ms - By the server's clock.
 * @param {string} [under] - The write key that is looked at alone; what is rejected is of all keys.
 * @returns {{level: string, text: string, advice?: string}}
 */
export function verdictOf(data, now_ms, under = "") {
  const [last] = data.beacons;
  if (!last && under) return { level: "waiting", text: `No beacon under ${under} in the last 10 minutes.${data.keys.length ? " Other keys have some." : ""}` };
  if (!last && data.rejected_n) return { level: "broken", text: "Input comes in, and all of it is rejected: see below why." };
  if (!last) return { level: "waiting", text: "No beacon in the last 10 minutes. Play a video in your player: the first beacon shows here as it comes.", advice: MISTYPED };
  const age_ms = now_ms - last.appended_ms;
  const isSilent = age_ms > SILENT_MS;
  const wrong = data.rejected_n ? ` ${data.rejected_n} ${under ? "inputs of all keys" : "of its inputs"} were rejected.` : "";
  const arrive = isSilent ? "Beacons came, but none arrives now." : "Beacons arrive.";
  return { level: isSilent || data.rejected_n ? "old" : "good", text: `${arrive} The last one, ${last.event} by ${last.source}, came ${ageText(age_ms)} ago.${wrong}` };
}
