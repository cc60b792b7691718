// Viewers at a time, by title, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenOf, linesOfLive, linesOfTitles, liveOfTitle, toggled, viewsAt } from "../../../../../../services/dashboard/static/core/answers/audience.js";
import { filterOf } from "../../../../../../services/dashboard/static/core/place/filters.js";

test("titles that are drawn together are those of the address, and a click adds or takes one", () => {
  for (const text of [undefined, "", "no JSON", "{}", "[1]", '"a"']) assert.deepEqual(chosenOf(text), [], text);
  assert.deepEqual(chosenOf(toggled(["a"], "b, c")), ["a", "b, c"]);
  assert.deepEqual(chosenOf(toggled(["a", "b"], "a")), ["b"]);
  assert.equal(toggled(["a"], "a"), "");
});

test("each title has a line of its own, also two of one name and one without", () => {
  const titles = [["1", "Final"], ["2", "Final"], ["3", null], ["4", ""], ["5", " "]].map(([video_id, title], at) => ({ video_id, title, views: [at, at + 1] }));
  const { times, lines } = linesOfTitles({ at_ms: [60_000, 120_000], titles });
  assert.deepEqual(times, [60, 120]);
  assert.deepEqual(lines.map(({ title, key, values }) => [title, key, values]), [["Final (1)", ["1"], [0, 1]], ["Final (2)", ["2"], [1, 2]], ["3", ["3"], [2, 3]], ["4", ["4"], [3, 4]], ["5", ["5"], [4, 5]]]);
});

test("views that were open at a moment had begun, by a clock of at most a day before their first beacon, and had not ended", () => {
  const { from, to, filters } = viewsAt(200_000_000, { filters: [] }, { from_ms: 0, to_ms: 300_000_000 });
  assert.deepEqual([from, to], ["0", "386400000"]);
  assert.deepEqual(filters.map((one) => JSON.parse(one)), [
    { number: "view_start_ms", below: 200_000_001 },
    { number: "first_append_ms", below: 286_400_001 },
    { number: "view_end_ms", at_least: 200_000_001 },
  ]);
});

test("live figures know a title by its name, and under one filter that names a value", () => {
  const fastly = filterOf("cdn", ["fastly"]);
  assert.deepEqual(liveOfTitle([], "Final"), { dimension: "video_title", value: "Final" });
  assert.deepEqual(liveOfTitle([], "F".repeat(70)), { dimension: "video_title", value: "F".repeat(64) });
  assert.deepEqual(liveOfTitle([fastly], "Final"), { dimension: "cdn,video_title", value: "fastly\u001fFinal" });
  // The filter by a title gives way to that of this one.
  assert.deepEqual(liveOfTitle([filterOf("video_title", ["Other"])], "Final"), { dimension: "video_title", value: "Final" });
  assert.equal(liveOfTitle([fastly, filterOf("country", ["DE"])], "Final"), null);
  assert.equal(liveOfTitle([filterOf("cdn", ["fastly", "akamai"])], "Final"), null);
});

test("live viewers are drawn from the begin of each minute, and a title that is not known has a gap", () => {
  const named = [{ title: "A", value: "a" }, { title: "B", value: null }, { title: "C", value: "c" }];
  const past = { from_ms: 60_000, step_ms: 60_000, values: [{ value: "c", series: { viewers_now: [3, null] } }, { value: "other", series: { viewers_now: [1, 1] } }] };
  const drawn = linesOfLive(past, named);
  assert.deepEqual(drawn?.times, [60, 120]);
  assert.deepEqual(drawn?.lines.map(({ title, values }) => [title, values]), [["A", [null, null]], ["B", [null, null]], ["C", [3, null]]]);
  assert.equal(linesOfLive(past, named.slice(0, 2)), null);
  assert.equal(linesOfLive({ ...past, values: [] }, named), null);
});
