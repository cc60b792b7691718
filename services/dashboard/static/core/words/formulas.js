// @ts-check
// Formulas in words: those of docs/view.md and of /v1/metrics have names of fields, which only the API's readers know. Pure.

/** What the names of formulas stand for; docs/view.md says how each field comes about. @type {Record<string, string>} */
const WORDS = {
  V: "all views",
  ebvs: "exits before video start",
  exits_before_start: "exits before video start",
  startup_failed: "video start-up failures",
  startup_failures: "video start-up failures",
  playback_failed: "views that failed",
  playback_failures: "views that failed",
  view_dropped: "views that ended by silence or a long stall",
  views_dropped: "views that ended by silence or a long stall",
  watch_ms: "watch time",
  playing_ms: "playing time",
  rebuffer_ms: "rebuffering time",
  rebuffer_count: "rebuffer events",
  rebuffer_fraction: "rebuffering time / watch time",
  rebuffer_ratio: "rebuffering time / (rebuffering time + playing time)",
  seek_ms: "time of seeks",
  seek_count: "seeks",
  bitrate_integral: "bitrate × time played at it",
  bitrate_time_ms: "time played at a known bitrate",
  upscale_integral: "upscaling × its time",
  downscale_integral: "downscaling × its time",
  scale_time_ms: "time with a known size",
  startup_ms: "start-up time",
  content_startup_ms: "content start-up time",
  aggregate_startup_ms: "aggregate start-up time",
  player_startup_ms: "player start-up time",
  page_load_ms: "page load time",
  live_latency_ms_avg: "mean live latency of a view",
  ttfb_sum_ms: "time to the first byte",
  req_count: "requests",
  req_failed: "failed requests",
  req_canceled: "canceled requests",
  req_bytes: "bytes of requests",
  req_time_ms: "time of requests",
  dropped_frames: "dropped frames",
  score_view: "experience score",
  score_startup: "start-up score",
  score_smooth: "smoothness score",
  score_quality: "quality score",
  score_success: "success score",
  spi_good: "good views",
  viewer_user_id: "user id",
  viewer_id: "viewer id",
};
const NAME = new RegExp(`\\b(?:${Object.keys(WORDS).join("|")})\\b`, "g");

/**
 * A formula in words. Times are in ms, so that a minute is 60,000 of them, and 8,000 makes bits a second of bytes a ms.
 * @param {string} formula
 */
export const inWords = (formula) =>
  formula
    .replace(/\(Σ (\w+) \/ 60,000\)/g, "Σ $1 in minutes")
    .replace(/8,000 · Σ req_bytes \/ Σ req_time_ms(?:, bps)?/, "Σ bits of requests / Σ req_time_ms")
    .replace(NAME, (name) => WORDS[name])
    .replaceAll("Σ ", "sum of ");
