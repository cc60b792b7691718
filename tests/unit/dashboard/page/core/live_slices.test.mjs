// Figures by dimension of many customers: as of when they are, and how they go on with what was earlier. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, spanOf, stretchOf, TILES, withSteps } from "../../../../../services/dashboard/static/core/live/live.js";
import { isUnknown, slicesNote } from "../../../../../services/dashboard/static/core/live/slices.js";

const AS_OF_MS = Date.UTC(2026, 10, 24, 11, 34);
const picture = { slice: "", slices: { cdn: [] }, slices_state: "by_minute", slices_as_of_ms: AS_OF_MS };
const note = (/** @type {object} */ of, age_ms = 20_000) => slicesNote({ ...picture, ...of }, AS_OF_MS + age_ms, "Europe/Berlin");

test("figures by minute say as of when they are, by the clock of the zone, and those of this moment say nothing", () => {
  assert.equal(note({ slices_state: "live" }), null);
  assert.deepEqual(note({}), { isOld: false, text: "As of 12:34, added up by minute because there are more than 20 customers." });
  // Until the next minute has been added up.
  assert.equal(note({}, 110_000)?.isOld, false);
});

test("figures that are old say their age, and why nothing is newer", () => {
  const begins = "As of 12:34, 7 min ago, added up by minute because there are more than 20 customers.";
  for (const [slices_state, why] of [
    ["by_minute", "Nothing newer has been added up since."],
    ["away", "Postgres does not answer, so nothing newer is known."],
    ["failed", "Newer ones take too long to add up. The server goes on trying."],
  ]) assert.deepEqual(note({ slices_state }, 420_000), { isOld: true, text: `${begins} ${why}` });
  // What fails once in a minute is not old by that.
  assert.equal(note({ slices_state: "away" })?.isOld, false);
  assert.match(note({}, 30 * 3_600_000)?.text ?? "", /^As of 24 Nov, 12:34, 30 h ago/);
});

test("where there are no figures by dimension it is said why", () => {
  const none = { slices: null, slices_as_of_ms: null };
  assert.match(note({ ...none, slices_state: "coming" })?.text ?? "", /are being added up/);
  assert.equal(note({ ...none, slices_state: "coming" })?.isOld, false);
  assert.match(note({ ...none, slices_state: "none" })?.text ?? "", /^Of the last hour no figures by dimension/);
  assert.match(note({ ...none, slices_state: "away" })?.text ?? "", /^Postgres does not answer/);
  assert.match(note({ ...none, slices_state: "failed" })?.text ?? "", /take too long to add up/);
  assert.deepEqual([isUnknown({ ...picture, ...none, slice: "cdn=x" }), isUnknown({ ...picture, ...none }), isUnknown({ ...picture, slice: "cdn=x" })], [true, false, false]);
});

test("a picture by minute goes on with earlier minutes, and none of its counts is by 5 s", () => {
  const stretch = stretchOf("1h", undefined, AS_OF_MS);
  assert.deepEqual([stretch.step_ms, withSteps(stretch, 60_000).step_ms, withSteps(stretch, 5_000).step_ms], [5_000, 60_000, 5_000]);
  const earlier = stretchOf("1h", String(AS_OF_MS - 3_600_000), AS_OF_MS);
  assert.equal(withSteps(earlier, 60_000).step_ms, 5_000);
  const starts = TILES.find((one) => one.name === "starts");
  const past = { from_ms: AS_OF_MS - 240_000, step_ms: 60_000, values: [{ value: "x", series: { views_started: [1, 2, 99, 99] } }] };
  const live = { from_ms: AS_OF_MS - 120_000, bucket_ms: 60_000, series: { viewers_now: [7, 8], views_started: [3, 4] } };
  assert.equal(spanOf(live), 120_000);
  assert.equal(spanOf({ bucket_ms: 5_000, series: {} }), 0);
  assert.deepEqual(joined(/** @type {any} */ (starts), past, live, "x").values, [1, 2, 3, 4]);
});
