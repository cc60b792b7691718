// Lines, bins and shapes of charts, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { shapesOf, strengthOf } from "../../../../../../services/dashboard/static/core/map.js";
import { axisOf, binsBeside, linesOf, movedTo, partialOf, pointOf, topOf, unfinishedFrom, lonePoints } from "../../../../../../services/dashboard/static/core/answers/series.js";

test("a count of no view is 0 where views are counted, a share of none is a gap, and so is what is to come", () => {
  const point = (/** @type {number} */ from_ms, /** @type {number} */ n) => ({ from_ms, to_ms: from_ms + 1_000, n, metrics: { views: { value: n, n }, rebuffer_fraction: { value: n ? 0.5 : null, n } } });
  const answer = { points: [point(0, 5), point(1_000, 0), point(2_000, 7), point(3_000, 0)], about: { as_of_ms: 3_000 } };
  assert.deepEqual(linesOf(answer, "views", "").lines[0].values, [5, 0, 7, null]);
  assert.deepEqual(linesOf(answer, "rebuffer_fraction", "").lines[0].values, [0.5, null, 0.5, null]);
  // What is counted of the range before is said there.
  const compared = { points: [point(-9_000, 0), point(-8_000, 3), point(-7_000, 0), point(-6_000, 1)], about: { as_of_ms: 3_000 } };
  assert.deepEqual(linesOf({ ...answer, compared }, "views", "").lines[1].values, [0, 3, 0, 1]);
  assert.deepEqual(linesOf({ ...answer, about: { as_of_ms: null } }, "views", "").lines[0].values, [5, null, 7, null]);
});

test("a point of earlier that stands alone is a ring, one of now is full", () => {
  const line = { title: "", kind: "value", key: [], values: [], counts: [] };
  const [now, before] = [pointOf(line, "red", "white"), pointOf({ ...line, beside: 0 }, "red", "white")];
  assert.deepEqual([now.fill, before.fill, now.stroke, before.stroke], ["red", "white", "red", "red"]);
  assert.ok(before.size > now.size);
});

test("points of a part of their time are found", () => {
  const point = (/** @type {boolean | undefined} */ is_partial) => ({ from_ms: 0, to_ms: 1, n: 1, metrics: {}, ...(is_partial ? { is_partial } : {}) });
  const points = [point(true), point(false), point(true)];
  assert.deepEqual(partialOf({ points }), [points[0], points[2]]);
  assert.deepEqual(partialOf({ points: [], groups: [{ kind: "value", key: [], labels: [], n: 1, metrics: {}, points }] }), [points[0], points[2]]);
});

test("lines have gaps where too few views are, and the range before beside them", () => {
  const point = (from_ms, value, n) => ({ from_ms, to_ms: from_ms + 1, n, metrics: { startup_ms_p95: { value, n } } });
  const answer = { points: [point(0, 900, 100), point(1000, 800, 99)], compared: { points: [point(-2000, 700, 100)] } };
  const { times, lines } = linesOf(answer, "startup_ms_p95", "Start-up");
  assert.deepEqual(times, [0, 1]);
  assert.deepEqual(lines.map((line) => line.values), [[900, null], [700, null]]);
  assert.deepEqual([lines[1].title, lines[1].beside, lines[1].counts], ["Start-up, before", 0, [100, 0]]);
  // Of groups by their keys: null is no text, and one without views in the range before has no figures there.
  const group = (kind, key, n) => ({ kind, key, labels: [key[0] ?? "(unknown)"], n, points: [point(0, n, 100 * n)] });
  const groups = linesOf({ points: [], groups: [group("value", ["a"], 1), group("value", ["b"], 2), group("unknown", [null], 3)], compared: { points: [], groups: [group("unknown", [null], 9), group("value", ["b"], 8)] } }, "startup_ms_p95", "");
  assert.deepEqual(
    groups.lines.map(({ title, beside, values }) => [title, beside, values[0]]),
    [["a", undefined, 1], ["a, before", 0, null], ["b", undefined, 2], ["b, before", 1, 8], ["(unknown)", undefined, 3], ["(unknown), before", 2, 9]],
  );
});

test("a single time is drawn within the range that was asked for, and without one within an hour around it", () => {
  const range = { from_ms: 600_000, to_ms: 7_200_000 };
  assert.deepEqual(axisOf([3_600], range), [600, 7_200]);
  // A bucket begins before a range that begins within it.
  assert.deepEqual(axisOf([0], range), [0, 7_200]);
  assert.deepEqual(axisOf([3_600], undefined), [1_800, 5_400]);
  assert.deepEqual(axisOf([3_600, 7_200], { from_ms: 0, to_ms: 9e9 }), [3_600, 7_200]);
  assert.equal(axisOf([], range), null);
});

test("arrow keys move the place that is read, from either end", () => {
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End"].map((key) => movedTo(key, null, 5)), [0, 4, 0, 4]);
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End"].map((key) => movedTo(key, 4, 5)), [4, 3, 0, 4]);
  assert.deepEqual([movedTo("Enter", 1, 5), movedTo("ArrowRight", null, 0)], [null, null]);
});

test("bins of two distributions stand beside each other by their bounds", () => {
  const bin = (from_value, n) => ({ from_value, to_value: 2 * from_value, n });
  assert.deepEqual(
    binsBeside([bin(1, 5), bin(4, 6)], [bin(2, 7), bin(4, 8)]).map(({ from_value, n, before }) => [from_value, n, before]),
    [[1, 5, 0], [2, 0, 7], [4, 6, 8]],
  );
});

test("a country is found by its letters, and drawn in degrees from the north-west", () => {
  const square = [[[0, 0], [10, 0], [10, 10], [0, 0]]];
  const features = [
    { id: "4", geometry: { type: "Polygon", coordinates: square } },
    { id: "276", geometry: { type: "MultiPolygon", coordinates: [square, square] } },
    { id: "999", geometry: null },
  ];
  const found = shapesOf(features, [["AF", "AFG", "004"], ["DE", "DEU", "276"]]);
  assert.deepEqual(found[0], { code: "AF", path: "M180.0 85.0L190.0 85.0L190.0 75.0L180.0 85.0Z" });
  assert.deepEqual([found[1].code, found[1].path.split("M").length], ["DE", 3]);
  assert.deepEqual(found[2], { code: "", path: "" });
  const across = [[[179, 0], [-179, 0], [-179, 5], [179, 5], [179, 0]]];
  assert.equal(shapesOf([{ id: "643", geometry: { type: "Polygon", coordinates: across } }], [])[0].path, "M359.0 85.0L361.0 85.0L361.0 80.0L359.0 80.0L359.0 85.0Z");
  assert.ok(strengthOf(0, 5) === 0 && strengthOf(1, 1_000) > 0.2 && strengthOf(1_000, 1_000) === 1);
});

test("charts beside each other have one scale", () => {
  const line = (/** @type {(number | null)[]} */ ...values) => ({ title: "", kind: "value", key: [], values, counts: [] });
  assert.equal(topOf([line(1, null), line(3, 2)]), 3);
  assert.equal(topOf([line(null)]), 0);
});

test("the last time of a chart that has views is not complete until what is counted is beyond it", () => {
  const point = (/** @type {number} */ minute, /** @type {number} */ n) => ({ from_ms: minute * 60_000, to_ms: (minute + 1) * 60_000, n, metrics: {} });
  const points = [point(0, 5), point(1, 1), point(2, 0)];
  assert.equal(unfinishedFrom({ points, about: { as_of_ms: 90_000 } }), 60_000);
  assert.equal(unfinishedFrom({ points, about: { as_of_ms: 120_000 } }), null);
  assert.equal(unfinishedFrom({ points, about: { as_of_ms: null } }), null);
  assert.equal(unfinishedFrom({ points: [point(0, 0)], about: { as_of_ms: 1 } }), null);
  // Of a breakdown: the last of any of its lines.
  const groups = [{ points: [point(0, 5), point(1, 0)] }, { points: [point(0, 0), point(1, 2)] }];
  assert.equal(unfinishedFrom({ points: [], groups, about: { as_of_ms: 61_000 } }), 60_000);
});

test("a value between two gaps is drawn as a point, of the newest answer too", () => {
  const plot = { data: [[1, 2, 3, 4, 5], [1, null, 2, null, null]] };
  assert.deepEqual(lonePoints(plot, 1, false), [0, 2]);
  plot.data = [[2, 3, 4, 5, 6], [null, 2, null, null, 3]];
  assert.deepEqual(lonePoints(plot, 1, false), [1, 4]);
  assert.equal(lonePoints(plot, 1, true), null);
});
