// @ts-check
// Beacons that arrive: what is missing for which figure, and what a rejection means. Pure.

import { ageText } from "./words/format.js";

/** Fields of views, and what is lost without each. */
export const NEEDED = [
  { name: "video_title", title: "Title", loses: "Titles, and views by title" },
  { name: "video_id", title: "Video id", loses: "the screen of a title: audience and retention" },
  { name: "viewer", title: "Viewer id", loses: "the search for a viewer, and the number of viewers" },
  { name: "player_name", title: "Player", loses: "figures by player" },
  { name: "player_version", title: "Player version", loses: "what a release changed" },
  { name: "cdn", title: "CDN", loses: "figures by CDN, and suspects among them" },
  { name: "country", title: "Country", loses: "figures by country (the collector needs COLLECTOR_GEO_COUNTRIES, or the client sends it)" },
  { name: "asn", title: "Network (ASN)", loses: "figures by network (the collector needs COLLECTOR_GEO_ASNS)" },
  { name: "device", title: "Device", loses: "figures by device" },
  { name: "stream_type", title: "Live or on demand", loses: "figures by stream type" },
  { name: "startup_ms", title: "Start-up time", loses: "start-up time, its percentiles and the score" },
  { name: "avg_bitrate_bps", title: "Bitrate", loses: "average bitrate" },
];

/**
 * How many of the views have each field.
 * @param {Record<string, any>[]} rows
 */
export function missingOf(rows) {
  const known = (/** @type {any} */ value) => value !== null && value !== undefined && value !== "";
  return NEEDED.map((one) => ({ ...one, has: rows.filter((row) => known(row[one.name])).length, of: rows.length }));
}

/** What a reason of a rejection asks one to do. @type {Record<string, string>} */
const ADVICE = {
  undecodable: "The body is not what its path or content type says: look at the client's version and the address.",
  invalid: "A field is missing or of another kind: the detail names it.",
  too_large: "One beacon is too large: send less at a time.",
  unknown_customer: "The write key is none that is known: compare it with those above.",
  revoked_key: "The write key was revoked or has ended: use a present one.",
  forbidden_origin: "The page's origin is not among those of the key: add it in Settings.",
  unnumbered: "CMCD without sn: switch it on, since repetitions look like new records without it.",
  unsigned: "The view has no valid signature, and the customer wants one.",
};

/** @param {string} reason */
export const adviceOf = (reason) => ADVICE[reason] ?? "";

/** Players report every ten seconds or so while they play: after this silence nothing arrives any more. */
const SILENT_MS = 60_000;

/**
 * The state of things as a sentence, and whether it is as it should be.
 * @param {any} data - As /v1/arrivals has it.
 * @param {number} now_ms - By the server's clock.
 */
export function verdictOf(data, now_ms) {
  const [last] = data.beacons;
  if (!last && data.rejected_n) return { level: "broken", text: "Input comes in, and all of it is rejected: see below why." };
  if (!last) return { level: "waiting", text: "No beacon in the last 10 minutes. Play a video in your player: the first beacon shows here as it comes." };
  const age_ms = now_ms - last.appended_ms;
  const isSilent = age_ms > SILENT_MS;
  const wrong = data.rejected_n ? ` ${data.rejected_n} of its inputs were rejected.` : "";
  const arrive = isSilent ? "Beacons came, but none arrives now." : "Beacons arrive.";
  return { level: isSilent || data.rejected_n ? "old" : "good", text: `${arrive} The last one, ${last.event} by ${last.source}, came ${ageText(age_ms)} ago.${wrong}` };
}
