// Which figures are shown, and which are good or bad, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hiddenNote, interval, isShown, levelOf, quantileMin, viewsMin } from "../../../../../services/dashboard/static/core/figures/figures.js";
import { judgedGroups } from "../../../../../services/dashboard/static/core/figures/threshold_groups.js";

test("a percentile is shown where five views lie beyond it", () => {
  assert.deepEqual(["views", "startup_ms_p50", "startup_ms_p90", "startup_ms_p95", "startup_ms_p99"].map(viewsMin), [1, 1, 50, 100, 500]);
  assert.equal(isShown("startup_ms_p95", { value: 1, n: 99 }), false);
  assert.equal(isShown("startup_ms_p95", { value: 1, n: 100 }), true);
});

test("one failure of 83 is no disaster, and 20 of 100 are", () => {
  const judged = (/** @type {string} */ metric, /** @type {number} */ value, /** @type {number} */ n) => levelOf({ good: 0.005, bad: 0.02, n: metric === "rebuffer_fraction" ? 30 : 1 }, metric, { value, n });
  const cases = [
    ["playback_failure_fraction", 1 / 83, 83, ""],
    ["playback_failure_fraction", 1 / 3, 3, "bad"],
    ["playback_failure_fraction", 1 / 10, 10, ""],
    ["playback_failure_fraction", 0.2, 100, "bad"],
    // No failure of ten is no proof; of a thousand it is.
    ["playback_failure_fraction", 0, 10, ""],
    ["playback_failure_fraction", 0, 1000, "good"],
    ["rebuffer_fraction", 0.5, 3, ""],
    ["rebuffer_fraction", 0.35, 80, "bad"],
    ["rebuffer_fraction", 0.001, 80, "good"],
  ];
  for (const [metric, value, n, level] of cases) assert.equal(judged(metric, value, n), level, `${metric} ${value} of ${n}`);
  assert.equal(levelOf(undefined, "startup_ms_p50", { value: 9, n: 9 }), "");
  const [low, high] = interval(0.5, 100);
  assert.ok(Math.abs(low - 0.4038) < 1e-4 && Math.abs(high - 0.5962) < 1e-4, `${low} ${high}`);
});

test("a percentile that is not shown is neither good nor bad", () => {
  const threshold = { worse: /** @type {const} */ ("higher"), good: 1_000, bad: 2_000, n: 10 };
  assert.deepEqual([99, 100].map((n) => levelOf(threshold, "startup_ms_p95", { value: 9_000, n })), ["", "bad"]);
});

test("thresholds are in groups by what their metrics are, totals last, and are found by a part of a name", () => {
  /** @type {Record<string, any>} */
  const known = {
    playback_failure_fraction: { title: "playback failures", unit: "fraction", kind: "ratio" },
    playback_failures: { title: "playback failures, number", unit: "views", kind: "sum" },
    startup_ms_p50: { title: "video start-up time, median", unit: "ms", kind: "percentile" },
    startup_ms_p99: { title: "video start-up time, p99", unit: "ms", kind: "percentile" },
    request_latency_ms: { title: "request latency", unit: "ms", kind: "ratio" },
    experience_score: { title: "experience", unit: "score", kind: "mean" },
  };
  const all = [...Object.keys(known), "live_bitrate_bps"].map((metric) => ({ metric, n: metric === "startup_ms_p50" ? 30 : null }));
  const shown = (/** @type {string} */ search) => judgedGroups(all, (name) => known[name] ?? { title: name, unit: "", kind: "" }, search).map(({ title, judged, thresholds }) => [title, judged, thresholds.length]);
  assert.deepEqual(shown(""), [["viewers of this moment", 0, 1], ["shares", 0, 1], ["means and rates", 0, 1], ["scores", 0, 1], ["video start-up time", 1, 2], ["totals of a range", 0, 1]]);
  assert.deepEqual(shown(" P99 "), [["video start-up time", 0, 1]]);
  assert.deepEqual([shown("nothing"), shown("totals").length, shown("Bitrate of viewers").length], [[], 1, 1]);
});

test("a figure of which less is worse is bad below and good above its thresholds, as surely as any other", () => {
  const judged = (/** @type {string} */ metric, /** @type {any} */ threshold, /** @type {number | null} */ value, /** @type {number} */ n) => levelOf({ worse: "lower", ...threshold }, metric, { value, n });
  const [bitrate, share] = [{ good: 4e6, bad: 1e6, n: 30 }, { good: 0.9, bad: 0.7, n: 1 }];
  const cases = [
    ["bitrate_bps", bitrate, 0.9e6, 80, "bad"],
    ["bitrate_bps", bitrate, 1e6, 80, ""],
    ["bitrate_bps", bitrate, 3.9e6, 80, ""],
    ["bitrate_bps", bitrate, 4e6, 80, "good"],
    ["bitrate_bps", bitrate, 0.9e6, 29, ""],
    ["bitrate_bps", bitrate, null, 80, ""],
    // Of ten views six were good: that may be chance.
    ["spi_good_fraction", share, 0.6, 10, ""],
    ["spi_good_fraction", share, 0.6, 200, "bad"],
    ["spi_good_fraction", share, 1, 10, ""],
    ["spi_good_fraction", share, 0.98, 500, "good"],
  ];
  for (const [metric, threshold, value, n, level] of cases) assert.equal(judged(metric, threshold, value, n), level, `${metric} ${value} of ${n}`);
});

test("a quantile of a distribution is shown once five views lie beyond it on its side", () => {
  assert.deepEqual(["p5", "p25", "p50", "p75", "p90", "p95", "p99"].map(quantileMin), [100, 20, 1, 20, 50, 100, 500]);
});

test("a note says below how many views a percentile is not shown, where one is not", () => {
  assert.equal(hiddenNote("startup_ms_p95", [0, undefined, 99, 100], "Dash"), "Dash: a value is not shown below 100 views.");
  assert.deepEqual([hiddenNote("startup_ms_p95", [0, 100], "Gap"), hiddenNote("startup_ms_p50", [1], "Gap"), hiddenNote("views", [1], "Gap")], ["", "", ""]);
});
