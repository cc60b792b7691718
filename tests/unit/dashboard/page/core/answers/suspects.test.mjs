// Suspects: how they are asked for, and how they are worded. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, placeOf } from "../../../../../../services/dashboard/static/core/place/place.js";
import { comparedRange, DAY_MS, HOUR_MS } from "../../../../../../services/dashboard/static/core/place/ranges.js";
import { baselineOf, evidenceText, excessText, questionOf, ranked, foundText, sentText, typedText } from "../../../../../../services/dashboard/static/core/answers/suspects.js";

const NOW_MS = Date.UTC(2026, 0, 10, 12, 34, 56);
const explore = (search) => placeOf("/explore", search, "UTC");

test("a suspect's excess says what there is more of, counted or in time", () => {
  assert.equal(excessText("playback_failure_fraction", 59.4), "59 more failures than expected");
  assert.equal(excessText("playback_failure_fraction", 1_234), "1,234 more failures than expected");
  assert.equal(excessText("exit_before_start_fraction", 1.2), "1 more exit before start than expected");
  assert.equal(excessText("rebuffer_fraction", 8_280_000), "2.3 h more rebuffering than expected");
  assert.equal(excessText("dropped_frames_per_minute", 7), "7 more dropped frames than expected");
  assert.equal(excessText("upscale_fraction", 8_280_000), "more upscaling than expected");
  assert.equal(excessText("startup_ms", 7), "7 more bad views than expected");
  assert.deepEqual([evidenceText(3.06), evidenceText(41.4)], ["evidence 3.1", "evidence 41"]);
});

test("a question names the metric, its threshold and what is compared with, and leaves to the API what is not said", () => {
  const share = { by: "ratio", parameter: null, largest: null, rank: null };
  const value = { by: "below", parameter: "below", largest: 10_000_000_000, rank: 0.1 };
  assert.deepEqual(questionOf("rebuffer_fraction", share, "5000", null), { metric: "rebuffer_fraction" });
  assert.deepEqual(questionOf("bitrate_bps", value, "", null), { metric: "bitrate_bps" });
  assert.deepEqual(questionOf("bitrate_bps", value, "2500", { from_ms: 1, to_ms: 2 }), { metric: "bitrate_bps", below: "2500", baseline_from: 1, baseline_to: 2 });
});

test("the baseline is the range that is compared with, as long as the other", () => {
  const hour = explore("?range=1h");
  const to_ms = Date.UTC(2026, 0, 10, 12, 34);
  assert.deepEqual(baselineOf("previous", hour, NOW_MS), { from_ms: to_ms - 2 * HOUR_MS, to_ms: to_ms - HOUR_MS, doesOverlap: false });
  assert.deepEqual(baselineOf("week", hour, NOW_MS), { from_ms: to_ms - HOUR_MS - 7 * DAY_MS, to_ms: to_ms - 7 * DAY_MS, doesOverlap: false });
  assert.equal(baselineOf("", hour, NOW_MS), null);
  const own = explore("?from=2026-01-05T10:00&to=2026-01-05T12:00");
  assert.deepEqual(baselineOf("2026-01-05T12:00", own, NOW_MS), { from_ms: Date.UTC(2026, 0, 5, 12), to_ms: Date.UTC(2026, 0, 5, 14), doesOverlap: false });
});

test("a baseline within the range itself is told apart", () => {
  assert.equal(baselineOf("day", explore("?range=7d"), NOW_MS)?.doesOverlap, true);
  assert.equal(baselineOf("day", explore("?range=24h"), NOW_MS)?.doesOverlap, false);
  assert.equal(baselineOf("2026-01-05T11:59", explore("?from=2026-01-05T10:00&to=2026-01-05T12:00"), NOW_MS)?.doesOverlap, true);
});

test("a day that is compared with is a whole day, also where clocks change", () => {
  const night = placeOf("/explore", "?from=2026-03-29T00:00&to=2026-03-30T00:00", "Europe/Berlin");
  const found = comparedRange("day", night, NOW_MS);
  assert.deepEqual(found, { from_ms: Date.UTC(2026, 2, 27, 23), to_ms: Date.UTC(2026, 2, 28, 23) });
  assert.equal(comparedRange("day", explore("?from=2026-01-02&to=2026-01-01"), NOW_MS), null);
});

test("what was asked of one picture is not asked of another one", () => {
  const asked = explore("?customer=acme&range=7d&metrics=startup_ms_p95&compare=week&suspects=1&threshold=4000&by=cdn");
  for (const change of [{ customer: "globex" }, { range: "1h" }, { from: "2026-01-01", to: "2026-01-02" }, { tz: "Asia/Tokyo" }, { filters: ["{}"] }, { more: { metrics: "views" } }, { more: { compare: "" } }]) {
    const { more } = changed(asked, change);
    assert.deepEqual([more.suspects, more.threshold, more.by], [undefined, undefined, "cdn"], JSON.stringify(change));
  }
  // Another form, breakdown or order of the same figures.
  for (const more of [{ as: "table" }, { by: "country" }, { rank: "surprise" }, { threshold: "5000" }]) {
    assert.equal(changed(asked, { more }).more.suspects, "1", JSON.stringify(more));
  }
  assert.equal(changed(asked, { range: "1h", more: { suspects: "1" } }).more.suspects, "1");
  assert.equal(changed(placeOf("/", "", "UTC"), { screen: "explore", range: "1h", more: { suspects: "1" } }).more.suspects, "1");
});

test("a threshold that was found is shown in three digits, one that was typed as it was, in units of people", () => {
  assert.deepEqual([["ms", 5_873.2], ["ms", 940], ["bps", 1_234_567], ["score", 61.75], ["ms", null], ["ms", 0]].map(([unit, value]) => foundText(unit, value)), ["5.87", "0.94", "1.23", "61.8", "", "0"]);
  assert.deepEqual([typedText("ms", 12_345), typedText("bps", 1_234_567), typedText("ms", 0)], ["12.345", "1.234567", "0"]);
  assert.deepEqual([sentText("ms", 2.5), sentText("ms", 0.0004), sentText("bps", 1.5), sentText("score", 61.75)], ["2500", "0", "1500000", "61.75"]);
});

test("suspects are ranked by how much they explain, or by how sure they are", () => {
  const [large, sure] = [{ excess: 90, surprise: 5 }, { excess: 20, surprise: 50 }];
  assert.deepEqual(ranked([sure, large], ""), [large, sure]);
  assert.deepEqual(ranked([large, sure], "surprise"), [sure, large]);
});
