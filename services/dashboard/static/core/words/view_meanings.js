// @ts-check
// What the columns of views have of one view, for those who ask: docs/view.md says how each field comes about. Pure.

import { fieldTitle } from "./view_fields.js";

/** `term`: the metric of docs/view.md that is made of it. @typedef {{term: string, formula: string}} Meant */

/** @type {Record<string, Meant>} */
const MEANT = {
  counted_ms: { term: "", formula: "the view's end by its client's clock, but not before its first beacon came, nor after its last" },
  view_start_ms: { term: "", formula: "when its client began the view, by a corrected clock" },
  view_end_ms: { term: "", formula: "when the view ended, by a corrected clock" },
  watch_ms: { term: "watch time of a view", formula: "time in which it started, played, rebuffered or sought" },
  playing_ms: { term: "playing time", formula: "time in which it played" },
  startup_ms: { term: "video start-up time", formula: "from the request to play to the first frame" },
  rebuffer_ms: { term: "rebuffer duration", formula: "time in which it rebuffered" },
  rebuffer_count: { term: "rebuffer events", formula: "how often it rebuffered" },
  seek_count: { term: "seeks", formula: "how often its viewer sought" },
  seek_ms: { term: "seek latency", formula: "time of its seeks" },
  avg_bitrate_bps: { term: "weighted average bitrate", formula: "bitrate × time played at it / time played at a known bitrate" },
  upscale_integral: { term: "upscale, downscale percentage", formula: "upscaling × its time" },
  downscale_integral: { term: "upscale, downscale percentage", formula: "downscaling × its time" },
  ttfb_sum_ms: { term: "request latency", formula: "time to the first byte, of all its requests" },
  req_time_ms: { term: "request throughput", formula: "time of all its requests" },
  dropped_frames: { term: "dropped frames", formula: "frames that its player dropped" },
  score_view: { term: "experience", formula: "success score / 100 · mean of the pairwise geometric means of its other scores" },
  beacon_count: { term: "", formula: "beacons that came of it" },
};

/** What a field of a view means, by its title. @param {string} title @returns {Meant | null} */
export const meantByTitle = (title) => meantOf(Object.keys(MEANT).find((name) => fieldTitle(name) === title) ?? "");

/** What a column means; null of what needs no words, or has those of a metric. @param {string} name @returns {Meant | null} */
export const meantOf = (name) => MEANT[name] ?? null;
