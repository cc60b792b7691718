// Words and numbers as people read them, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { apart } from "../../../../../services/dashboard/static/core/place/filters.js";
import { ageText, axisTexts, changeText, valueText } from "../../../../../services/dashboard/static/core/words/format.js";
import { fieldText, openText } from "../../../../../services/dashboard/static/core/words/view_fields.js";
import { notesOf, termOf } from "../../../../../services/dashboard/static/core/words/glossary_lookup.js";
import { problemOf } from "../../../../../services/dashboard/static/core/words/problems.js";

test("figures are worded in their unit", () => {
  assert.deepEqual(
    [["fraction", 0.354], ["ms", 480], ["ms", 1234], ["ms", 600_000], ["bps", 3_210_000], ["views", 1234567], ["score", 81.25], ["fraction", null]].map(([unit, value]) => valueText(unit, value)),
    ["35.4%", "480 ms", "1.23 s", "10.0 min", "3.21 Mbps", "1,234,567", "81.3", "–"],
  );
  assert.equal(changeText("fraction", 0.05, 0.02), "+3.00 pp");
  assert.equal(changeText("ms", 900, 1000), "−10.0%");
  assert.equal(changeText("views", 3, 0), null);
  assert.deepEqual([5_000, 300_000, 7_200_000].map(ageText), ["5 s", "5 min", "2 h"]);
});

test("a problem says what is wrong, not the name of its status", () => {
  const unknown = { title: "There is no such customer", detail: "It does not exist, or you may not see it.", status: 404, way: "customer" };
  assert.deepEqual(problemOf({ title: "Not Found", detail: "there is no such customer" }, 404), unknown);
  assert.deepEqual(problemOf({ title: "There is no such customer" }, 404), unknown);
  assert.deepEqual(problemOf({ title: "Not Found", detail: "there is no such view" }, 404), { title: "There is no such view", detail: "", status: 404 });
  assert.equal(problemOf({ detail: "why" }, 500).title, "why");
  assert.equal(problemOf({}, 500).title, "The question is refused");
});

test("a question that is wrong is worded for who has typed it, with the way on", () => {
  const said = (parameter, detail) => {
    const { title, way } = problemOf({ title: "The question is wrong", errors: [{ parameter, detail }] }, 400);
    return [title, way];
  };
  assert.deepEqual(said("from", "before `to`"), ["The range ends before it begins", "range"]);
  assert.deepEqual(said("from", "a range has at most 400 days"), ["A range has at most 400 days", "range"]);
  assert.deepEqual(said("score_below", "Expected `float | null`, got `str`"), ["“Score below” is no number", "score_below"]);
  assert.deepEqual(said("metrics", "no metric is named 'x': see /v1/metrics"), ["No metric is named x", "metrics"]);
  assert.deepEqual(said("by", "no dimension is named 'x': see /v1/dimensions"), ["No dimension is named x", "by"]);
  const other = problemOf({ title: "The question is wrong", errors: [{ parameter: "bucket", detail: "no `bucket`" }] }, 400);
  assert.equal(other.detail, "bucket: no bucket.");
});

test("metrics of the API are found in the table of docs/view.md by their titles", () => {
  for (const [title, name] of [
    ["views", "views"],
    ["video start-up time, p95", "video start-up time"],
    ["rebuffer percentage", "rebuffer percentage"],
    ["rebuffer frequency", "rebuffer frequency, per minute"],
    ["downscale percentage", "upscale, downscale percentage"],
    ["experience, good views", "experience"],
    ["exits before video start", "exits before video start"],
    ["playback failures, number", "playback failures"],
    ["page load time, median", "page load time"],
    ["watch time of a view, p75", "watch time of a view"],
    ["viewers", "viewers"],
    ["smoothness score", "smoothness score"],
  ]) assert.equal(termOf(title)?.name, name, title);
  assert.equal(termOf("time of no metric, median"), null);
});

test("a list of open views says of how many it is, and that more may have come", () => {
  const list = { views_n: 1_200, is_cut: true, seconds: 600 };
  assert.equal(openText(50, 80, list), "at least 1,200 views had beacons in the last 10 min. Of the 80 with the newest beacons, 50 are open and match.");
  assert.equal(openText(1, 1, { ...list, views_n: 1, is_cut: false }), "1 view had beacons in the last 10 min. Of the 1 with the newest beacons, 1 is open and matches.");
});

test("an axis has whole numbers of what is counted, and no zeros behind a point", () => {
  assert.deepEqual(axisTexts("views", [0, 0.5, 1, 1_500]), ["0", "", "1", "1,500"]);
  assert.deepEqual(axisTexts("fraction", [0, 0.005, 0.25, 1]), ["0%", "0.50%", "25%", "100%"]);
  assert.deepEqual(axisTexts("ms", [0, 500, 1_500, 2_000]), ["0 ms", "500 ms", "1.50 s", "2 s"]);
  assert.deepEqual(axisTexts("bps", [0, 2e6, 2_500_000]), ["0 Mbps", "2 Mbps", "2.50 Mbps"]);
  assert.deepEqual(axisTexts("bps", [0, 100, 200, 20_000]), ["0 Mbps", "", "", "0.02 Mbps"]);
});

test("a customer's own dimension is a text, whatever its name ends with", () => {
  for (const name of ["custom.load_ms", "custom.session_start_ms", "custom.best_bps", "custom.retry_count"]) assert.equal(fieldText(name, "abc", "UTC"), "abc");
});

test("a moment of comparison outside of the range is named, with a way on", () => {
  const found = problemOf({ title: "The question is wrong", errors: [{ parameter: "since", detail: "a moment after from and before to" }] }, 400);
  assert.deepEqual([found.title, found.way], ["“New since” is not within the range", "since"]);
});

test("numbers are written as browsers write them in English", () => {
  const written = (/** @type {number} */ decimals) => new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const [whole, tenth, two] = [0, 1, 2].map(written);
  for (let power = -3; power < 9; power += 0.01) {
    const value = 10 ** power;
    assert.equal(valueText("count", value), whole.format(value));
    assert.equal(valueText("score", -value), tenth.format(-value));
    assert.equal(valueText("per_minute", value), `${two.format(value)}/min`);
  }
  // Halves, too, which no double is in most cases: every millisecond of a duration, every hundredth of a score.
  for (let ms = 1_000; ms < 10_000; ms++) assert.equal(valueText("ms", ms), `${two.format(ms / 1_000)} s`);
  for (let ms = 10_000; ms < 120_000; ms++) assert.equal(valueText("ms", ms), `${tenth.format(ms / 1_000)} s`);
  for (let score = 0; score < 10_000; score++) assert.equal(valueText("score", score / 100), tenth.format(score / 100));
  // The largest and smallest as well, whole numbers that doubles barely tell apart, and the neighbours of halves.
  const wide = Array.from({ length: 633 }, (_, at) => [1, 1.2345678901234567, 9.995].map((digits) => digits * 10 ** (at - 324))).flat();
  const barely = [50, 51, 52, 53, 54, 60, 63, 64, 70].flatMap((power) => [-2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2].map((more) => 2 ** power + more));
  const halves = [0.5, 1.5, 2.5, 1.005, 1.505, 8.345, 1e6 + 0.005, 1e14 + 0.25].flatMap((half) => [-1, 0, 1].map((ulps) => half * (1 + ulps * Number.EPSILON)));
  for (const value of [...wide, ...barely, ...halves, Number.MAX_VALUE, Number.MIN_VALUE, 1e21, 1e23, 2.4999999999999996, 0.49999999999999994].filter((one) => one && Number.isFinite(one))) {
    assert.equal(valueText("count", value), whole.format(value), String(value));
    assert.equal(valueText("score", -value), tenth.format(-value), String(value));
    assert.equal(valueText("per_minute", value), `${two.format(value)}/min`, String(value));
  }
  assert.equal(valueText("count", -0), "0");
  assert.deepEqual([0, 0.5, 999.5, 1_000, 1_234_567].map((value) => valueText("count", value)), ["0", "1", "1,000", "1,000", "1,234,567"]);
});

test("what is said of a metric leaves out what nobody else has", () => {
  assert.deepEqual(notesOf({ source: "own", clients: "all", mux: "–", cta: "–" }), [["Defined by", "Playhead"], ["Clients that report it", "all"]]);
  assert.deepEqual(notesOf({ source: "Mux, views", clients: "all", mux: "same", cta: "– (neither has a viewer)" }).slice(2), [["Compared with Mux Data", "same"], ["Compared with CTA", "neither has a viewer"]]);
});
