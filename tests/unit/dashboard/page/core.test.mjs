// What the page computes, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenOf, linesOfLive, linesOfTitles, liveOfTitle, openStretch, toggled } from "../../../../services/dashboard/static/core/audience.js";
import { serverNow } from "../../../../services/dashboard/static/core/clock.js";
import { adviceOf, countedText, missingOf, verdictOf } from "../../../../services/dashboard/static/core/arrivals.js";
import { apart, both, bounded, chipOf, containing, cut, either, filterOf, filterOfSlice, filterText, inverted, liveParts, narrowed, narrowedLive, pastOf, typedValues } from "../../../../services/dashboard/static/core/place/filters.js";
import { viewsBehind, viewsOf, viewsOfBin, viewsWith, whichBehind } from "../../../../services/dashboard/static/core/figures/behind.js";
import { exportOf } from "../../../../services/dashboard/static/core/exported.js";
import { metricsAsked } from "../../../../services/dashboard/static/core/asked.js";
import { isNoneLarge, leastOf, moreRows, rowsOf, tableOf } from "../../../../services/dashboard/static/core/groups.js";
import { hiddenNote, interval, isShown, levelOf, quantileMin, viewsMin } from "../../../../services/dashboard/static/core/figures/figures.js";
import { ageText, axisTexts, changeText, valueText } from "../../../../services/dashboard/static/core/words/format.js";
import { fieldText, openText } from "../../../../services/dashboard/static/core/words/view_fields.js";
import { holds } from "./meaning.mjs";
import { freshnessOf, OLD_MS } from "../../../../services/dashboard/static/core/freshness.js";
import { notesOf, termOf } from "../../../../services/dashboard/static/core/words/glossary_lookup.js";
import { joined, ordered, sortOf, sortText, statusOf, stretchOf, TILES, valuesOf } from "../../../../services/dashboard/static/core/live/live.js";
import { liveTitle, viewsOfLive } from "../../../../services/dashboard/static/core/live/views.js";
import { judgedOf } from "../../../../services/dashboard/static/core/live/judged.js";
import { judgedGroups } from "../../../../services/dashboard/static/core/figures/judged.js";
import { shapesOf, strengthOf } from "../../../../services/dashboard/static/core/map.js";
import { problemOf } from "../../../../services/dashboard/static/core/words/problems.js";
import { collectorOf, keysFor, linesFor } from "../../../../services/dashboard/static/core/pasting.js";
import { CLIENTS } from "../../../../services/dashboard/static/core/words/client_lines.js";
import { addressOf, changed, lasting, placeOf, viewAddress } from "../../../../services/dashboard/static/core/place/place.js";
import { SCREENS } from "../../../../services/dashboard/static/core/place/screens.js";
import { bucketsFor, comparedFrom, comparedRange, comparedText, DAY_MS, HOUR_MS, localText, longerThan, momentsAgo, momentText, msOf, placeText, rangeWith, resolved, sameOnClocks, wholeMinutes } from "../../../../services/dashboard/static/core/place/ranges.js";
import { axisOf, binsBeside, linesOf, movedTo, partialOf, pointOf, topOf, unfinishedFrom } from "../../../../services/dashboard/static/core/series.js";

test("an address and its place are the same thing", () => {
  const filters = [filterOf("cdn", ["fastly", null]), filterOf("country", ["DE"], true)];
  const place = { screen: "explore", customer: "acme", range: "7d", from: "", to: "", tz: "Europe/Berlin", filters, more: { metrics: "views", by: "cdn,asn" } };
  const { pathname, search } = new URL(addressOf(place), "http://x");
  assert.deepEqual(placeOf(pathname, search, "UTC"), place);
  const own = { ...place, range: "", from: "2026-03-01T10:00", to: "1772400000000" };
  const address = new URL(addressOf(own), "http://x");
  assert.deepEqual(placeOf(address.pathname, address.search, "UTC"), own);
});

test("an address that says nothing means all customers, a day, and the browser's zone", () => {
  const found = placeOf("/", "", "Asia/Kathmandu");
  assert.deepEqual([found.screen, found.customer, found.range, found.tz, found.filters], ["", "*", "24h", "Asia/Kathmandu", []]);
  assert.equal(placeOf("/", "?tz=Nowhere/None", "UTC").tz, "UTC");
});

test("another screen keeps customer, range and filters, and nothing of the screen before", () => {
  const place = placeOf("/explore", "?customer=acme&metrics=views&filter=%7B%7D", "UTC");
  const moved = changed(place, { screen: "errors", more: { since: "1" } });
  assert.deepEqual([moved.customer, moved.filters, moved.more], ["acme", ["{}"], { since: "1" }]);
  assert.deepEqual(changed(place, { more: { by: "cdn" } }).more, { metrics: "views", by: "cdn" });
  // A cursor is of its list and question.
  const older = changed(place, { more: { cursor: "x" } });
  assert.deepEqual([older.more.cursor, changed(older, { customer: "globex" }).more.cursor], ["x", undefined]);
});

test("a replay leads back to a view of this page, and nowhere else", () => {
  const here = "https://playhead.example";
  assert.equal(viewAddress("/view?customer=acme&view=v&tz=UTC", here), "/view?customer=acme&view=v&tz=UTC");
  for (const other of [null, "", "//evil.example/view?view=v", "https://evil.example/view", "javascript:alert(1)", "/settings", "/view/../settings", "\\\\evil.example/view", "https://"]) {
    assert.equal(viewAddress(other, here), null, String(other));
  }
});

test("a range of one's own ends one up to now, and the other way round", () => {
  const place = placeOf("/", "?range=7d", "UTC");
  const own = changed(place, { from: "2026-01-01", to: "2026-01-02" });
  assert.deepEqual([own.range, own.from], ["", "2026-01-01"]);
  assert.deepEqual([changed(own, { range: "1h" }).range, changed(own, { range: "1h" }).from], ["1h", ""]);
});

test("clocks of a zone are read as they show, also where they change", () => {
  assert.equal(msOf("2026-03-29T01:59", "Europe/Berlin"), Date.UTC(2026, 2, 29, 0, 59));
  assert.equal(msOf("2026-03-29T03:00", "Europe/Berlin"), Date.UTC(2026, 2, 29, 1, 0));
  // 02:30 comes twice that night: the first is meant.
  assert.equal(msOf("2026-10-25T02:30", "Europe/Berlin"), Date.UTC(2026, 9, 25, 0, 30));
  assert.equal(msOf("2026-10-25T03:00", "Europe/Berlin"), Date.UTC(2026, 9, 25, 2, 0));
  assert.equal(msOf("2026-07-01", "Asia/Kathmandu"), Date.UTC(2026, 5, 30, 18, 15));
  assert.equal(msOf("2026-07-01T00:00:00+02:00", "UTC"), Date.UTC(2026, 5, 30, 22));
  assert.equal(msOf("1772400000000", "UTC"), 1772400000000);
  assert.equal(msOf("yesterday", "UTC"), null);
  assert.equal(localText(Date.UTC(2026, 6, 1, 22, 5), "Europe/Berlin"), "2026-07-02T00:05");
  for (const at of [0, 1772400000000, Date.UTC(2026, 9, 25, 3, 17)]) assert.equal(msOf(localText(at, "America/New_York"), "America/New_York"), at);
});

test("a range up to now ends with the last whole minute, a long one with the hour that runs, and has its whole length", () => {
  const now_ms = Date.UTC(2026, 0, 1, 12, 34, 56);
  for (const [range, ms] of [["1h", HOUR_MS], ["6h", 6 * HOUR_MS], ["24h", DAY_MS]]) {
    const to_ms = Date.UTC(2026, 0, 1, 12, 34);
    assert.deepEqual(resolved(placeOf("/", `?range=${range}`, "UTC"), now_ms), { from_ms: to_ms - Number(ms), to_ms });
  }
  // Nothing of it is still to come: the day before is as long.
  const place = placeOf("/explore", "?range=24h&tz=UTC", "UTC");
  const { from_ms, to_ms } = /** @type {any} */ (comparedRange("previous", place, now_ms));
  assert.deepEqual([to_ms - from_ms, to_ms], [DAY_MS, Date.UTC(2025, 11, 31, 12, 34)]);
  const week = /** @type {any} */ (resolved(placeOf("/", "?range=7d", "UTC"), now_ms));
  assert.deepEqual(week, { from_ms: Date.UTC(2025, 11, 25, 13), to_ms: Date.UTC(2026, 0, 1, 13) });
  assert.equal(resolved(placeOf("/", "?from=2026-01-02&to=2026-01-01", "UTC"), now_ms), null);
});

test("of an hour that comes twice, moments say which, and addresses too", () => {
  const tz = "America/New_York";
  const [first, second] = [Date.UTC(2026, 10, 1, 5, 15), Date.UTC(2026, 10, 1, 6, 15)];
  assert.equal(momentText(first, tz), "1 Nov, 01:15 (UTC-04:00)");
  assert.equal(momentText(second, tz), "1 Nov, 01:15 (UTC-05:00)");
  assert.deepEqual([sameOnClocks(first, tz), sameOnClocks(second, tz)], [[first, second], [first, second]]);
  for (const at_ms of [first, second]) assert.equal(msOf(placeText(at_ms, tz), tz), at_ms);
  // Just before and after, and where an hour is missing, clocks say enough.
  for (const at_ms of [Date.UTC(2026, 10, 1, 4, 59), Date.UTC(2026, 10, 1, 7), Date.UTC(2026, 2, 8, 6, 59), Date.UTC(2026, 2, 8, 7)]) {
    assert.deepEqual(sameOnClocks(at_ms, tz), [at_ms]);
    assert.ok(!momentText(at_ms, tz).includes("UTC"));
    assert.equal(placeText(at_ms, tz), localText(at_ms, tz));
  }
  assert.equal(momentText(Date.UTC(2026, 3, 4, 15, 10), "Australia/Lord_Howe"), "5 Apr, 01:40 (UTC+10:30)");
});

test("buckets can be chosen of which a range has no more than the API answers, and more than one", () => {
  const of = (/** @type {number} */ length_ms) => bucketsFor({ from_ms: 0, to_ms: length_ms });
  assert.deepEqual(of(HOUR_MS), ["minute", "5minutes", "15minutes"]);
  assert.deepEqual(of(DAY_MS), ["minute", "5minutes", "15minutes", "hour"]);
  assert.deepEqual(of(30 * DAY_MS), ["hour", "day", "week"]);
  assert.deepEqual(of(90 * DAY_MS), ["day", "week"]);
  assert.deepEqual(bucketsFor(null), []);
});

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

test("a stretch that is marked has whole minutes", () => {
  assert.deepEqual(wholeMinutes(61_000, 119_999), [60_000, 120_000]);
  assert.deepEqual(wholeMinutes(60_000, 180_000), [60_000, 180_000]);
});

test("a click narrows a dimension to one value, and leaves what is excluded", () => {
  const before = [filterOf("cdn", ["akamai"]), filterOf("cdn", ["bad"], true), filterOf("country", ["DE"])];
  assert.deepEqual(narrowed(before, "cdn", "fastly"), [before[1], before[2], filterOf("cdn", ["fastly"])]);
  assert.equal(filterText(filterOf("cdn", ["a", null], true), (name) => name.toUpperCase()), "CDN is not a or (unknown)");
  assert.equal(filterText("no json", String), "no json");
});

test("the figure of a second suspect is looked at without the views of the first", () => {
  const first = { and: [{ dimension: "cdn", in: ["a"] }, { dimension: "asn", in: ["1"] }] };
  const second = { and: [{ dimension: "country", in: ["DE"] }, { not: first }] };
  assert.deepEqual(apart(first), [filterOf("cdn", ["a"]), filterOf("asn", ["1"])]);
  assert.deepEqual(apart(second), [filterOf("country", ["DE"]), JSON.stringify({ not: first })]);
  assert.equal(filterText(apart(second)[1], String), "not (cdn is a and asn is 1)");
  assert.deepEqual(apart({ dimension: "cdn", in: [null] }), [filterOf("cdn", [null])]);
});

test("several values are typed with a sign between them, and a title that has it is chosen whole", () => {
  assert.deepEqual(typedValues(" a | (unknown)|b ", ["a"]), ["a", null, "b"]);
  assert.deepEqual(typedValues("News | Tuesday", ["News | Tuesday"]), ["News | Tuesday"]);
  assert.deepEqual([typedValues("(unknown)", ["(unknown)"]), typedValues("", [])], [[null], []]);
});

test("live figures are of what is counted of the filters: of more than two, of any two", () => {
  const [cdn, asn, version] = [filterOf("cdn", ["fastly"]), filterOf("asn", ["64500"]), filterOf("player_version", [null])];
  const slices = (/** @type {string[]} */ filters, /** @type {string[] | null} */ counted) => liveParts(filters, counted).map((one) => one.slice);
  assert.deepEqual(slices([cdn], null), ["cdn=fastly"]);
  assert.deepEqual(slices([version], null), ["player_version=(unknown)"]);
  assert.deepEqual(slices([cdn, asn], null), ["cdn,asn=fastly\u001f64500"]);
  assert.deepEqual(liveParts([cdn, asn, version], null).map((one) => one.name), ["cdn,asn", "cdn,player_version", "asn,player_version"]);
  assert.deepEqual(liveParts([cdn, asn, version], null)[1].filters, [cdn, version]);
  // What is not counted, or names no single value, is left out.
  const others = [filterOf("error_code", ["3016"]), filterOf("country", ["DE", "FR"]), filterOf("country", ["DE"], true), "no json"];
  assert.deepEqual(slices([...others, cdn, version], ["cdn", "asn", "country"]), ["cdn=fastly"]);
  assert.deepEqual([slices(others, ["cdn", "country"]), slices([cdn], []), slices([], null)], [[], [], []]);
  // Nobody is within two values of one dimension: each can be looked at.
  assert.deepEqual(slices([cdn, filterOf("cdn", ["akamai"])], null), ["cdn=fastly", "cdn=akamai"]);
});

test("a title that live figures have cut is found among finished views, and its viewers under the same filter", () => {
  const title = `The film ${"\u{1f600}".repeat(60)} ends`;
  const short = [...title].slice(0, 64).join("");
  const clicked = narrowedLive([filterOf("cdn", ["a"]), filterOf("video_title", ["Sintel"])], "video_title", short);
  assert.deepEqual(clicked, [filterOf("cdn", ["a"]), JSON.stringify({ dimension: "video_title", contains: short })]);
  assert.ok(holds(clicked, { cdn: "a", video_title: title }));
  assert.deepEqual(liveParts(clicked, null).map((one) => one.slice), [`cdn,video_title=a\u001f${short}`]);
  assert.deepEqual(liveParts([filterOf("video_title", [title])], null).map((one) => one.slice), [`video_title=${short}`]);
  assert.equal(filterOfSlice(`video_title=${short}`), clicked[1]);
  // Another click takes its place, also where it names a group of finished views; a part of a text stays a filter of its own.
  assert.deepEqual(narrowedLive(clicked, "video_title", "Sintel"), [clicked[0], filterOf("video_title", ["Sintel"])]);
  assert.deepEqual(narrowed(clicked, "video_title", null), [clicked[0], filterOf("video_title", [null])]);
  const part = JSON.stringify({ dimension: "video_title", contains: "film" });
  assert.deepEqual([narrowedLive([part], "cdn", "(unknown)"), liveParts([part], null)], [[part, filterOf("cdn", [null])], []]);
  // What somebody wrote into an address.
  assert.deepEqual(liveParts(["null", "[]", JSON.stringify({ dimension: "asn", in: [7] })], null).map((one) => one.slice), ["asn=7"]);
});

test("a live slice of one dimension is a filter, whatever its value holds", () => {
  assert.deepEqual([filterOfSlice("video_title=a=b"), filterOfSlice("cdn=(unknown)")], [filterOf("video_title", ["a=b"]), filterOf("cdn", [null])]);
  assert.deepEqual([pastOf("cdn,asn=(unknown)\u001f(unknown)"), pastOf("cdn,asn=(other)\u001f(other)"), pastOf("cdn=(unknown)"), pastOf("")], [["cdn,asn", "(unknown)"], ["cdn,asn", "(other)"], ["cdn", "(unknown)"], ["", ""]]);
  assert.deepEqual([cut(""), cut("cdn,asn=a=b\u001fc")], [["", ""], ["cdn,asn", "a=b\u001fc"]]);
});

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

test("what is compared with is said in words", () => {
  assert.equal(comparedText("", "UTC"), "with nothing");
  assert.equal(comparedText("no time", "UTC"), "with nothing");
  assert.equal(comparedText("week", "UTC"), "with the same time a week before");
  assert.equal(comparedText("2026-03-27T10:00", "Europe/Berlin"), "with the range from 27 Mar, 10:00");
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

test("live tiles are ratios of the newest figures, and unknown where nobody watches", () => {
  const rebuffering = TILES.find((one) => one.name === "rebuffering");
  assert.deepEqual(valuesOf(rebuffering, { viewers_now: [10, 0, null], rebuffering_now: [1, 0, null] }), [0.1, null, null]);
});

test("live figures are judged as finished views are: failures and exits by their share of n", () => {
  const figures = { viewers_now: 200, rebuffering_now: 30, bitrate_bps_now: 190e6, bitrate_viewers_now: 190, views_started: 50, failures: 4, views_finished: 40, exits_before_start: 10, startups: 9, startup_ms: 90 };
  const found = Object.fromEntries(TILES.map(({ name }) => [name, judgedOf(name, figures)]));
  assert.deepEqual(found, {
    viewers: null,
    rebuffering: { metric: "live_rebuffering_fraction", figure: { value: 0.15, n: 200 } },
    bitrate: { metric: "live_bitrate_bps", figure: { value: 1e6, n: 190 } },
    starts: null,
    failures: { metric: "playback_failure_fraction", figure: { value: 0.08, n: 50 } },
    exits: { metric: "exit_before_start_fraction", figure: { value: 0.25, n: 40 } },
    startup: null,
  });
  const none = { metric: "playback_failure_fraction", figure: { value: null, n: 0 } };
  // Of nobody nothing is known, and views that fail may have started earlier.
  assert.deepEqual([judgedOf("failures", { failures: 3, views_started: 0 }), judgedOf("failures", {}), judgedOf("failures", null)], [none, none, null]);
  assert.equal(judgedOf("failures", { failures: 30, views_started: 20 })?.figure.value, 1);
  // 1 of 20 may be chance, 10 of 200 are none.
  const threshold = { worse: /** @type {const} */ ("higher"), good: 0.005, bad: 0.02, n: 20 };
  const levels = [1, 10].map((failures) => judgedOf("failures", { failures, views_started: 20 * failures })).map((one) => levelOf(threshold, String(one?.metric), one?.figure));
  assert.deepEqual(levels, ["", "bad"]);
});

test("a problem says what is wrong, not the name of its status", () => {
  const unknown = { title: "There is no such customer", detail: "It does not exist, or you may not see it.", status: 404, way: "customer" };
  assert.deepEqual(problemOf({ title: "Not Found", detail: "there is no such customer" }, 404), unknown);
  assert.deepEqual(problemOf({ title: "There is no such customer" }, 404), unknown);
  assert.deepEqual(problemOf({ title: "Not Found", detail: "there is no such view" }, 404), { title: "There is no such view", detail: "", status: 404 });
  assert.equal(problemOf({ detail: "why" }, 500).title, "why");
  assert.equal(problemOf({}, 500).title, "The question is refused");
});

test("alternatives of several conditions each are made one condition after the other", () => {
  const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => filterOf(name, ["1"]));
  const made = both(either(both(a, b), c), d);
  assert.equal(filterText(made, (name) => name), "(a is 1 and b is 1) or (c is 1 and d is 1)");
  assert.equal(filterText(both(filterOf("a", ["1"], true), b), (name) => name), "a is not 1 and b is 1");
});

test("a filter may be a part of a text, or a bound of a number in the unit that is typed", () => {
  const title = (name) => name;
  assert.equal(filterText(containing("video_title", "cup", false), title), "video_title contains cup");
  assert.equal(filterText(containing("video_title", "cup", true), title), "video_title does not contain cup");
  assert.deepEqual(JSON.parse(bounded("startup_ms", "at_least", 10)), { number: "startup_ms", at_least: 10_000 });
  assert.deepEqual(JSON.parse(bounded("avg_bitrate_bps", "below", 0.7)), { number: "avg_bitrate_bps", below: 700_000 });
  assert.equal(filterText(bounded("startup_ms", "at_least", 10), title), "startup_ms is at least 10.0 s");
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

test("the status names what is away", () => {
  const picture = { state: "live", shown_until_ms: 1_000_000, partitions: { heard: 2, behind: [] } };
  const state = { picture, isListening: true, isUnconfirmed: false, silent_ms: 0, now_ms: 1_002_000 };
  const words = (change) => statusOf({ ...state, ...change }).text;
  assert.equal(words({}), "Live · 2 s old");
  assert.equal(words({ now_ms: 1_060_000 }), "Stalled · live data 60 s old");
  assert.match(words({ isListening: false }), /Dashboard out of reach/);
  assert.equal(words({ picture: null, isListening: false, refused: "There is no such customer" }), "No live figures");
  assert.match(words({ silent_ms: 11_000 }), /Dashboard does not answer/);
  assert.equal(words({ isBack: true, now_ms: 1_060_000 }), "Catching up · live data 60 s old");
  assert.match(words({ isUnconfirmed: true }), /Postgres out of reach/);
  assert.match(words({ picture: { ...picture, state: "away" } }), /Kafka out of reach/);
  assert.match(words({ picture: { ...picture, partitions: { heard: 2, behind: [{ until_ms: 990_000 }] } } }), /Incomplete/);
  const { notice } = statusOf({ ...state, picture: { ...picture, partitions: { heard: 2, behind: [{ until_ms: 990_000 }] } } });
  assert.equal(notice, "1 of 2 parts of the viewers are counted late, for up to 12 s: they are missing here.");
  assert.equal(words({ picture: { ...picture, state: "waiting", shown_until_ms: null } }), "No live data yet");
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

test("an hour of the last day is by 5 s, an older one by minute, and an address that means nothing is the present", () => {
  const now_ms = Date.UTC(2026, 0, 2, 12, 34, 56);
  const until_ms = Date.UTC(2026, 0, 2, 12, 35);
  assert.deepEqual(stretchOf("1h", undefined, now_ms), { from_ms: until_ms - HOUR_MS, until_ms, step_ms: 5_000, isEarlier: false });
  for (const nothing of ["", "soon", "-1", String(until_ms), "9e99"]) assert.equal(stretchOf("1h", nothing, now_ms).isEarlier, false, nothing);
  const earlier_ms = until_ms - 23 * HOUR_MS;
  assert.deepEqual(stretchOf("1h", String(earlier_ms + 999), now_ms), { from_ms: earlier_ms - HOUR_MS, until_ms: earlier_ms, step_ms: 5_000, isEarlier: true });
  assert.equal(stretchOf("1h", String(earlier_ms - 60_000), now_ms).step_ms, 60_000);
  assert.equal(stretchOf("6h", String(until_ms - HOUR_MS), now_ms).step_ms, 60_000);
});

test("what was earlier comes before the stream, each at the end of its step, and counts have one step all along", () => {
  const tile = (/** @type {string} */ name) => TILES.find((one) => one.name === name);
  const at_ms = 1_000 * 60_000;
  const past = { from_ms: at_ms - 120_000, step_ms: 60_000, values: [{ value: "", series: { viewers_now: [5, null, 99], views_started: [30, null, 99] } }] };
  const steps = Array.from({ length: 24 }, () => 2);
  const picture = { from_ms: at_ms, bucket_ms: 5_000, series: { viewers_now: steps, views_started: steps } };
  const viewers = joined(tile("viewers"), past, picture, "");
  assert.deepEqual(viewers.times.slice(0, 4), [at_ms / 1_000 - 60, at_ms / 1_000, at_ms / 1_000 + 5, at_ms / 1_000 + 10]);
  assert.deepEqual(viewers.values.slice(0, 4), [5, null, 2, 2]);
  const starts = joined(tile("starts"), past, picture, "");
  assert.deepEqual(starts.times, [at_ms / 1_000 - 60, at_ms / 1_000, at_ms / 1_000 + 60, at_ms / 1_000 + 120]);
  assert.deepEqual(starts.values, [30, null, 24, 24]);
  const begun = joined(tile("viewers"), past, { ...picture, series: { viewers_now: [null, null, ...steps.slice(2)] } }, "");
  assert.deepEqual(begun.times.slice(0, 4), [at_ms / 1_000 - 60, at_ms / 1_000, at_ms / 1_000 + 15, at_ms / 1_000 + 20]);
  // A stream that begins within a minute leaves that minute to what was landed.
  const later = joined(tile("starts"), past, { ...picture, from_ms: at_ms + 30_000 }, "");
  assert.deepEqual(later.times, [at_ms / 1_000 - 60, at_ms / 1_000, at_ms / 1_000 + 60, at_ms / 1_000 + 120]);
  assert.deepEqual(later.values, [30, null, 99, 24]);
});

test("a slice that the past does not have is unknown there, and not zero", () => {
  const past = { from_ms: 0, step_ms: 60_000, values: [{ value: "akamai", series: { viewers_now: [7] } }] };
  const picture = { from_ms: 60_000, bucket_ms: 5_000, series: { viewers_now: [3] } };
  assert.deepEqual(joined(TILES[0], past, picture, "fastly"), { times: [60, 65], values: [null, 3], counts: [] });
  assert.deepEqual(joined(TILES[0], past, { from_ms: null, bucket_ms: 5_000, series: {} }, "akamai"), { times: [60], values: [7], counts: [] });
});

test("each value of a live share has its n: of what was landed, of the stream, and of whole minutes", () => {
  const tile = (/** @type {string} */ name) => TILES.find((one) => one.name === name);
  const past = { from_ms: 0, step_ms: 60_000, values: [{ value: "", series: { viewers_now: [80], rebuffering_now: [8], failures: [1], views_started: [50] } }] };
  const ones = Array.from({ length: 12 }, () => 1);
  const picture = { from_ms: 60_000, bucket_ms: 5_000, series: { viewers_now: [40, ...ones.slice(1)], rebuffering_now: [20, ...ones.slice(1)], failures: ones, views_started: [5, ...ones.slice(1)] } };
  const share = joined(tile("rebuffering"), past, picture, "");
  assert.deepEqual([share.values.slice(0, 3), share.counts.slice(0, 3), share.counts.length], [[0.1, 0.5, 1], [80, 40, 1], share.times.length]);
  const failed = joined(tile("failures"), past, picture, "");
  assert.deepEqual([failed.values, failed.counts], [[1, 12], [50, 16]]);
  // A stream that begins later than its picture.
  const begun = joined(tile("rebuffering"), { ...past, values: [] }, { ...picture, series: { viewers_now: [null, 7], rebuffering_now: [0, 1] } }, "");
  assert.deepEqual([begun.counts, joined(tile("viewers"), past, picture, "").counts], [[7], []]);
  for (const one of TILES) assert.ok(!one.n || one.fields.includes(one.n), one.name);
});

test("the worst of a card comes first by its share or its failures, and what has no name last", () => {
  const value = (name, viewers_now, rebuffering_now, failures) => ({ value: name, viewers_now, rebuffering_now, failures });
  const values = [value("a", 90, 9, 0), value("b", 50, 1, 7), value("c", 10, 9, 2), value("gone", 0, 0, 5), value("(other)", 99, 99, 99), value("(unknown)", 1, 1, 0)];
  const names = (by, isAscending = false) => ordered(values, { by, isAscending }).map((one) => one.value);
  assert.deepEqual(names("viewers"), ["a", "b", "c", "gone", "(other)", "(unknown)"]);
  assert.deepEqual(names("viewers", true), ["gone", "c", "b", "a", "(other)", "(unknown)"]);
  // Of nobody there is no share, in either order.
  assert.deepEqual(names("rebuffering"), ["c", "a", "b", "gone", "(other)", "(unknown)"]);
  assert.deepEqual(names("rebuffering", true), ["b", "a", "c", "gone", "(other)", "(unknown)"]);
  assert.deepEqual(names("failures"), ["b", "gone", "c", "a", "(other)", "(unknown)"]);
});

test("how a card is sorted stands in the address, and a word that means nothing is by viewers", () => {
  for (const sort of [{ by: "viewers", isAscending: false }, { by: "viewers", isAscending: true }, { by: "failures", isAscending: false }, { by: "rebuffering", isAscending: true }]) {
    assert.deepEqual(sortOf(sortText(sort)), sort);
  }
  for (const text of [undefined, "", "bitrate", "constructor", "toString.ascending"]) assert.deepEqual(sortOf(text), { by: "viewers", isAscending: false }, text);
});

test("the customer's own id is a key where keys are not managed, and nowhere else", () => {
  const asked = { customer: "acme", chosen: "", made: "" };
  const key = (/** @type {string} */ name, more = {}) => ({ key: name, name: "", revoked_ms: null, expires_ms: null, ...more });
  const of = (/** @type {any} */ found, more = {}) => keysFor({ data: null, problem: null, ...found }, { ...asked, ...more }, 1_000);
  assert.equal(of({ problem: { title: "Write keys are not managed here", status: 503 } }).key, "acme");
  // Not known yet, not to be known, or none that is taken still.
  assert.equal(of({}).key, "");
  assert.equal(of({ problem: { title: "Postgres does not answer", status: 503 } }).key, "");
  assert.deepEqual(of({ data: { keys: [key("a", { revoked_ms: 5 }), key("b", { expires_ms: 999 })] } }), { keys: [], key: "", isMissing: true });
  const two = { data: { keys: [key("acme"), key("pk_1")] } };
  assert.equal(of(two).key, "acme");
  assert.equal(of(two, { chosen: "pk_1" }).key, "pk_1");
  assert.equal(of(two, { chosen: "gone" }).key, "acme");
  // The one that was just made, also before the list has it.
  assert.equal(of(two, { made: "pk_2" }).key, "pk_2");
  assert.deepEqual(of({}, { made: "pk_2" }), { keys: [], key: "pk_2", isMissing: false });
});

test("a checker says what arrives, and what views do not have", () => {
  const none = { beacons: [], rejected_n: 0 };
  const beacon = { event: "playing", source: "mux", appended_ms: 9_000 };
  assert.equal(verdictOf(none, 10_000).level, "waiting");
  // Whose key is mistyped is told where to look, as its input is nobody's.
  assert.match(String(verdictOf(none, 10_000).advice), /Compare the write key in the player .* unknown key, .* status 401\./);
  assert.equal(verdictOf({ ...none, rejected_n: 2 }, 10_000).level, "broken");
  // Nothing is pointed at that need not be on the page: keys with beacons, lines to paste.
  for (const text of [adviceOf("unknown_customer"), verdictOf(none, 10_000).advice]) assert.doesNotMatch(String(text), /above|below/);
  assert.match(adviceOf("invalid"), /missing, of another kind or unknown/);
  // Too much of all customers' input is not this one's.
  assert.equal(countedText({ beacons_n: 0, views_n: 0, rejected_n: 0, seconds: 600, is_cut: false }), "0 beacons of 0 views and 0 rejected inputs in the last 10 minutes.");
  assert.match(countedText({ beacons_n: 0, views_n: 0, rejected_n: 0, seconds: 600, is_cut: true }), /minutes\. More input of all customers together came than is looked at: some of this customer's may not be shown\.$/);
  // What is rejected is of all keys: it says nothing of one.
  const underOne = verdictOf({ ...none, keys: [{ key: "pk_b" }], rejected_n: 2 }, 10_000, "pk_a");
  assert.deepEqual([underOne.level, underOne.text], ["waiting", "No beacon under pk_a in the last 10 minutes. Other keys have some."]);
  assert.match(verdictOf({ beacons: [beacon], rejected_n: 2 }, 10_000, "pk_a").text, / 2 inputs of all keys were rejected\.$/);
  assert.match(verdictOf({ beacons: [beacon], rejected_n: 0 }, 10_000).text, /playing by mux, came 1 s ago\.$/);
  assert.equal(verdictOf({ beacons: [beacon], rejected_n: 1 }, 10_000).level, "old");
  assert.equal(verdictOf({ beacons: [beacon], rejected_n: 0 }, 69_000).level, "good");
  const silent = verdictOf({ beacons: [beacon], rejected_n: 0 }, 9_000 + 4 * 60_000);
  assert.deepEqual(silent, { level: "old", text: "Beacons came, but none arrives now. The last one, playing by mux, came 4 min ago." });
  const found = Object.fromEntries(missingOf([{ source: "mux", cdn: "a", startup_ms: 0 }, { source: "native", cdn: "" }]).map((one) => [one.name, one.has]));
  assert.deepEqual([found.cdn, found.startup_ms, found.video_title], [1, 1, 0]);
});

test("a checker asks of a client what it can report, and of a live stream its latency", () => {
  const of = (/** @type {any[]} */ rows) => Object.fromEntries(missingOf(rows).map(({ name, has, of: n }) => [name, [has, n]]));
  const [mux, cmcd, epas] = ["mux", "cmcd", "epas"].map((source) => ({ source, seek_count: 0, ttfb_sum_ms: 5, req_bytes: null, playback_ranges_count: null }));
  const found = of([mux, { ...cmcd, stream_type: "live" }, { ...epas, seek_count: 2 }]);
  assert.deepEqual(found.ttfb_sum_ms, [2, 2]);
  assert.deepEqual(found.req_bytes, [0, 1]);
  assert.deepEqual(found.playback_ranges_count, [0, 1]);
  assert.deepEqual(found.live_latency_ms_avg, [0, 1]);
  assert.deepEqual(found.seek_count, [1, 3]);
  // What no client of these views can report is not missing.
  assert.deepEqual(["req_bytes", "page_load_ms", "live_latency_ms_avg", "scale_time_ms"].filter((name) => name in of([cmcd])), []);
  assert.deepEqual(missingOf([]), []);
});

test("the server's clock goes on from what an answer says, whatever the viewer's shows", () => {
  assert.equal(serverNow(1_000_000, 500, 3_500), 1_003_000);
  // The answer came after the last tick.
  assert.equal(serverNow(1_000_000, 500, 100), 1_000_000);
});

test("the lines to paste have one's own collector and key, whatever these are made of", () => {
  const own = { scheme: "https", host: "acme.collect.example.com:8443" };
  for (const client of CLIENTS) {
    const text = linesFor(client, own, "acme-2");
    assert.ok(text.includes(own.host) && text.includes("acme-2"), client.name);
    const document = text.replaceAll(own.host, "collect.example.com").replaceAll("acme-2", "acme");
    assert.equal(document, client.text, client.name);
  }
});

test("lines call a collector by http where it has no TLS: on this machine, beside a page without, or where http is typed", () => {
  const safe = { protocol: "https:", hostname: "playhead.example" };
  const plain = { protocol: "http:", hostname: "10.0.0.5" };
  const cases = [
    ["127.0.0.1:8080", safe, "http"],
    ["localhost:8080", safe, "http"],
    ["[::1]:8080", safe, "http"],
    ["10.0.0.5:8080", plain, "http"],
    ["collect.example.org", plain, "https"],
    ["playhead.example:8080", safe, "https"],
    ["http://collect.internal", safe, "http"],
    ["https://localhost", plain, "https"],
    ["localhost.example.org", safe, "https"],
  ];
  for (const [text, page, scheme] of cases) assert.equal(collectorOf(text, page)?.scheme, scheme, text);
  const lines = (name, host) => linesFor(CLIENTS.find((one) => one.name === name), collectorOf(host, safe), "k-1");
  assert.ok(lines("hls.js", "127.0.0.1:8080").includes("'http://127.0.0.1:8080/cmcd/k-1'"));
  // The SDKs of Mux know http at localhost alone.
  assert.ok(lines("mux-embed", "127.0.0.1:8080").includes("beaconCollectionDomain: 'localhost:8080'"));
  assert.ok(lines("mux-embed", "127.0.0.10:8080").includes("'127.0.0.10:8080'"));
});

test("nothing but an address gets into lines that somebody pastes", () => {
  for (const text of ["", "x'});alert(1)//", "a b", "//evil.example", "javascript:alert(1)", "c.example/path", "c.example:8080'", "user@c.example", "<b>", "c.example:"]) {
    assert.equal(collectorOf(text, { protocol: "https:", hostname: "x" }), null, text);
  }
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

test("filters are turned round and given alternatives, and are read as what they say", () => {
  const fastly = filterOf("cdn", ["fastly"]);
  const either_ = either(either(fastly, filterOf("country", ["DE", "FR"], true)), filterOf("asn", [null]));
  assert.equal(filterText(either_, String), "cdn is fastly or country is not DE or FR or asn is (unknown)");
  assert.equal(filterText(inverted(either_), String), "not (cdn is fastly or country is not DE or FR or asn is (unknown))");
  assert.equal(inverted(inverted(either_)), either_);
  assert.equal(filterText(either(inverted(either_), fastly), String), "not (cdn is fastly or country is not DE or FR or asn is (unknown)) or cdn is fastly");
  const nested = JSON.stringify({ and: [{ or: [JSON.parse(fastly), { dimension: "error_code", contains: "Net" }] }, { number: "startup_ms", at_least: 5000 }] });
  assert.equal(filterText(nested, String), "(cdn is fastly or error_code contains Net) and startup_ms is at least 5.00 s");
  const rows = [{ cdn: "fastly", country: "DE" }, { cdn: "akamai", country: "DE", asn: 1 }, { cdn: "akamai", country: "US", asn: 1 }, { cdn: "akamai", country: "DE" }];
  assert.deepEqual(rows.map((row) => holds([either_], row)), [true, false, true, true]);
  assert.deepEqual(rows.map((row) => holds([inverted(either_)], row)), [false, true, false, false]);
  assert.deepEqual([{ cdn: "fastly", startup_ms: 4999 }, { error_code: "a net b", startup_ms: 5000 }, { cdn: "fastly" }].map((row) => holds([nested], row)), [false, true, false]);
});

test("whole days are compared with as many days of the calendar, other ranges with stretches as long", () => {
  const tz = "America/New_York";
  const at = (/** @type {string} */ text) => msOf(text, tz);
  const between = (/** @type {string} */ from, /** @type {string} */ to) => ({ ...placeOf("/explore", "", tz), range: "", from, to });
  const days = between("2026-11-01", "2026-11-17");
  assert.deepEqual(comparedRange("previous", days, 0), { from_ms: at("2026-10-16"), to_ms: at("2026-11-01") });
  assert.deepEqual(comparedRange("week", days, 0), { from_ms: at("2026-10-25"), to_ms: at("2026-11-10") });
  // From a moment within a day on as long: the hour that came twice is part of it.
  assert.deepEqual(comparedRange("2026-09-01T10:00", days, 0), { from_ms: at("2026-09-01T10:00"), to_ms: at("2026-09-17T11:00") });
  const stretch = between("2026-11-01T10:00", "2026-11-03T10:00");
  assert.deepEqual(comparedRange("previous", stretch, 0), { from_ms: at("2026-10-30T11:00"), to_ms: at("2026-11-01T10:00") });
});

test("a range is compared with one before it, with days before by the calendar, or with any other", () => {
  const summer = { range: "", from: "2026-03-30T12:00", to: "2026-03-30T18:00", tz: "Europe/Berlin" };
  assert.equal(comparedFrom("", summer, 0), "");
  assert.equal(comparedFrom("previous", summer, 0), "previous");
  // The clocks changed on the 29th: noon stays noon.
  assert.equal(comparedFrom("day", summer, 0), String(msOf("2026-03-29T12:00", summer.tz)));
  assert.equal(comparedFrom("week", summer, 0), String(msOf("2026-03-23T12:00", summer.tz)));
  assert.equal(comparedFrom("2026-01-01T00:00", summer, 0), String(Date.UTC(2025, 11, 31, 23)));
  assert.equal(comparedFrom("nonsense", summer, 0), "");
  const moving = { range: "24h", from: "", to: "", tz: "UTC" };
  assert.equal(comparedFrom("day", moving, 10 * DAY_MS), String(10 * DAY_MS - 2 * DAY_MS));
});

test("how new finished views are is said, and said loudly once they are old", () => {
  const at = Date.UTC(2026, 10, 26, 15, 0, 5);
  const of = (more) => freshnessOf({ as_of_ms: at, until_ms: null, now_ms: at + 3_000, tz: "UTC", ...more });
  assert.deepEqual(of({}), { isOld: false, text: "Finished views up to 26 Nov, 15:00:05" });
  const old = of({ now_ms: at + OLD_MS });
  assert.equal(old.isOld, true);
  assert.match(old.text, /^Finished views are as of 26 Nov, 15:00:05, 2 min ago\./);
  assert.equal(of({ until_ms: at }), null);
  assert.equal(of({ as_of_ms: null }), null);
});

test("a quantile of a distribution is shown once five views lie beyond it on its side", () => {
  assert.deepEqual(["p5", "p25", "p50", "p75", "p90", "p95", "p99"].map(quantileMin), [100, 20, 1, 20, 50, 100, 500]);
});

test("a breakdown has more rows until all with enough views are listed, or as many as the API lists", () => {
  const groups = (/** @type {number} */ values, /** @type {string[]} */ ...others) => [
    ...Array.from({ length: values }, (_, at) => ({ kind: "value", key: [String(at)] })),
    ...others.map((kind) => ({ kind, key: [null] })),
  ];
  assert.deepEqual([moreRows(groups(20, "unknown", "other"), 20), moreRows(groups(100, "other"), 100), moreRows(groups(500, "other"), 500)], [100, 500, 1_000]);
  assert.equal(moreRows(groups(20, "unknown"), 20), null);
  // The others have too few views; what is unknown is listed beside as many as were asked for, but among pairs.
  assert.equal(moreRows(groups(19, "unknown", "other"), 20), null);
  assert.equal(moreRows([...groups(19, "other"), { kind: "unknown", key: [null, null] }], 20), 100);
  assert.equal(moreRows(groups(1_000, "other"), 1_000), null);
  assert.deepEqual([undefined, "", "100", "7.5", "-3", "0", "x", "9e9"].map(rowsOf), [20, 20, 100, 7, 20, 20, 20, 1_000]);
});

test("a figure leads to the views that it counts or to those that weigh most in it, and its n to all of them", () => {
  const within = { customer: "acme", filters: [filterOf("cdn", ["a"]), filterOf("playback_failed", ["false"])] };
  const failed = viewsBehind("playback_failure_fraction", within);
  assert.deepEqual(failed, { screen: "views", customer: "acme", filters: [filterOf("cdn", ["a"]), filterOf("playback_failed", ["true"])], more: {} });
  assert.deepEqual([viewsBehind("playback_failures", within), whichBehind("playback_failures")], [failed, "those that failed"]);
  assert.deepEqual(viewsOf("playback_failure_fraction", within), { ...failed, filters: within.filters });
  const start = viewsBehind("startup_ms_p95", within);
  assert.deepEqual([start.filters, start.more], [within.filters, { sort: "startup_ms", order: "" }]);
  assert.deepEqual(viewsOf("startup_ms_p95", within).filters, [...within.filters, JSON.stringify({ number: "startup_ms", at_least: 0 })]);
  // What no column shows gets one, behind the customer where there are several.
  const bitrate = viewsBehind("bitrate_bps", { ...within, customer: "*" }).more;
  assert.deepEqual([bitrate.order, bitrate.columns?.split(",").at(0), bitrate.columns?.split(",").at(-1)], ["ascending", "customer", "avg_bitrate_bps"]);
  assert.deepEqual([viewsBehind("views", within).more, whichBehind("views"), whichBehind("no metric")], [{}, "", ""]);
});

test("a customer's own dimension is a text, whatever its name ends with", () => {
  for (const name of ["custom.load_ms", "custom.session_start_ms", "custom.best_bps", "custom.retry_count"]) assert.equal(fieldText(name, "abc", "UTC"), "abc");
});

test("a value of blanks alone has a word wherever it is a label, and its filter is exact", () => {
  assert.equal(fieldText("video_title", "  ", "UTC"), "(blank)");
  assert.equal(fieldText("custom.plan", " \t", "UTC"), "(blank)");
  assert.equal(fieldText("video_title", " Sintel ", "UTC"), " Sintel ");
  const [filter] = narrowed([], "video_title", "  ");
  assert.deepEqual(JSON.parse(filter), { dimension: "video_title", in: ["  "] });
  assert.equal(filterText(filter, (name) => name), "video_title is (blank)");
  assert.equal(filterText(filterOf("video_title", [null, "  "]), (name) => name), "video_title is (unknown) or (blank)");
  const groups = [{ kind: "value", key: ["  "], labels: ["  "], n: 1, points: [], metrics: {} }];
  assert.equal(linesOf({ points: [], groups }, "views", "").lines[0].title, "(blank)");
  assert.equal(linesOfTitles({ at_ms: [], titles: [{ video_id: " ", title: "  ", views: [] }] }).lines[0].title, "(blank)");
});

test("a moment of comparison outside of the range is named, with a way on", () => {
  const found = problemOf({ title: "The question is wrong", errors: [{ parameter: "since", detail: "a moment after from and before to" }] }, 400);
  assert.deepEqual([found.title, found.way], ["“New since” is not within the range", "since"]);
});

test("a live count leads to the same views of the last hour, open ones too where no end is waited for, and what is now to open ones", () => {
  const within = { customer: "acme", filters: [filterOf("cdn", ["a"])] };
  const hour = { range: "1h", from: "", to: "" };
  const of = Object.fromEntries(TILES.map((tile) => [tile.name, viewsOfLive(tile, within)]));
  const isOpen = (/** @type {any} */ found) => ({ ...found, more: { ...found.more, open: "1" } });
  assert.deepEqual(of.failures, { ...isOpen(viewsBehind("playback_failure_fraction", within)), ...hour });
  assert.deepEqual(of.exits, { ...viewsBehind("exits_before_start", within), ...hour });
  assert.deepEqual(of.startup, { ...isOpen(viewsBehind("startup_ms_p50", within)), ...hour });
  assert.deepEqual(of.starts, { screen: "views", ...within, more: { open: "1" }, ...hour });
  for (const name of ["viewers", "rebuffering", "bitrate"]) assert.deepEqual(of[name], { screen: "views", ...within, more: { open: "1" }, ...hour }, name);
});

test("a live count says of how long it is, beside the hour that its link lists", () => {
  assert.equal(liveTitle({ isCount: true }, 300_000), "counted over the last 5 min; listed are views of the last hour");
  assert.equal(liveTitle({ isCount: false }, 300_000), "the open views behind it");
});

test("a filter for views without a number says that it is unknown", () => {
  const place = viewsWith("startup_ms", { customer: "*", filters: [] }, false);
  assert.deepEqual([place.filters.map((text) => filterText(text, (name) => name, "UTC")), place.more], [["startup_ms is (unknown)"], {}]);
  assert.equal(filterText(viewsWith("startup_ms", { customer: "*", filters: [] }, true).filters[0], (name) => name, "UTC"), "startup_ms is at least 0 ms");
});

test("a bin of a distribution leads to its views, also that of 0, which has no width", () => {
  const numbers = [0, 1, 1000, 1267, 1268];
  const views = (/** @type {number} */ from_value, /** @type {number} */ to_value) => {
    const { filters, more } = viewsOfBin("startup_ms", { from_value, to_value }, { customer: "*", filters: [] });
    assert.deepEqual(more, { sort: "startup_ms" });
    return numbers.filter((startup_ms) => holds(filters, { startup_ms }));
  };
  assert.deepEqual([views(0, 0), views(1, 1.268), views(1000, 1268)], [[0], [1], [1000, 1267]]);
});

test("a link that is copied shows the same range an hour later, and Now the present", () => {
  const now_ms = Date.UTC(2026, 0, 1, 12, 34, 56);
  const place = placeOf("/explore", "?customer=acme&range=24h&tz=UTC&compare=previous&filter=%7B%7D", "UTC");
  const { pathname, search } = new URL(addressOf(lasting(place, now_ms)), "http://x");
  const opened = placeOf(pathname, search, "Asia/Kathmandu");
  assert.deepEqual(resolved(opened, now_ms + HOUR_MS), resolved(place, now_ms));
  assert.deepEqual(comparedRange("previous", opened, now_ms + HOUR_MS), comparedRange("previous", place, now_ms));
  assert.deepEqual([opened.customer, opened.filters, opened.more, opened.tz], ["acme", ["{}"], { compare: "previous" }, "UTC"]);
  const own = placeOf("/views", "?from=2026-01-01&to=2026-01-02&tz=UTC", "UTC");
  const present = placeOf("/", "?range=24h", "UTC");
  assert.deepEqual([lasting(own, now_ms), lasting(present, now_ms)], [own, present]);
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

test("what is drawn is what is exported", () => {
  const drawn = { metric: "startup_ms_p50", as: "line", by: "", second: "", compare: "week", table: tableOf({ sort: "views", order: "ascending", views_min: "5" }, { name: "startup_ms_p50", kind: "percentile" }) };
  const of = (/** @type {object} */ change) => {
    const { of: kind, params } = exportOf({ ...drawn, ...change });
    return [kind, params];
  };
  const asked = { metrics: "startup_ms_p50", compare: "week" };
  assert.deepEqual(of({}), ["timeseries", asked]);
  assert.deepEqual(of({ bucket: "hour" }), ["timeseries", { ...asked, bucket: "hour" }]);
  // The lines are by the first dimension alone.
  assert.deepEqual(of({ by: "cdn", second: "asn" }), ["timeseries", { ...asked, by: "cdn", limit: 8 }]);
  assert.deepEqual(of({ as: "multiples", by: "cdn" }), ["timeseries", { ...asked, by: "cdn", limit: 12 }]);
  assert.deepEqual(of({ as: "table", by: "cdn", second: "asn" }), ["breakdown", { ...asked, by: "cdn,asn", order_by: "views", order: "ascending", views_min: "5", limit: 1_000 }]);
  assert.deepEqual(of({ as: "distribution", by: "cdn" }), ["distribution", { of: "startup_ms", compare: "week" }]);
  // Where a form draws nothing, the figure alone is drawn.
  for (const nothing of [{ as: "table" }, { as: "multiples" }, { as: "distribution", metric: "views" }]) assert.equal(of(nothing)[0], "overall", JSON.stringify(nothing));
  // A table that was sorted by another metric is sorted by its own one.
  const bySort = (/** @type {string} */ sort) => tableOf({ sort }, { name: "startup_ms_p95", kind: "percentile" }).order_by;
  assert.deepEqual(["rebuffer_fraction", "startup_ms_p95", "views", ""].map(bySort), ["startup_ms_p95", "startup_ms_p95", "views", "views"]);
  assert.deepEqual([tableOf({}, { name: "views", kind: "sum" }).order_by, tableOf({}, { name: "rebuffer_fraction", kind: "ratio" }).order_by], ["views", "views"]);
});

test("an address that names several metrics shows the first that is known", () => {
  const known = { views: {}, viewers: {} };
  assert.deepEqual(metricsAsked("nothing, viewers,views", known, "rebuffer_fraction"), { metric: "viewers", others: ["views"] });
  assert.deepEqual(metricsAsked("views,viewers", {}, "rebuffer_fraction"), { metric: "views", others: [] });
  assert.deepEqual([undefined, "", ",", "nothing", "constructor,views"].map((text) => metricsAsked(text, known, "started").metric), ["started", "started", "started", "nothing", "views"]);
});

test("where no group has enough views a longer range may have some", () => {
  const rest = [{ kind: "unknown", key: [null] }, { kind: "other", key: [null] }];
  assert.deepEqual([isNoneLarge(rest), isNoneLarge([{ kind: "value", key: ["a"] }, ...rest]), isNoneLarge([]), isNoneLarge([{ kind: "unknown", key: [null] }])], [true, false, false, false]);
  assert.deepEqual(["24h", "30d", "90d", "", "x"].map(longerThan), ["7d", "90d", null, null, null]);
});

test("a table that is sorted by a percentile lists groups whose figure is shown, unless somebody says otherwise", () => {
  const p95 = { name: "startup_ms_p95", kind: "percentile" };
  const asked = (/** @type {Record<string, string>} */ more, metric = p95) => tableOf(more, metric).views_min;
  assert.deepEqual([asked({ sort: "startup_ms_p95" }), asked({ sort: "startup_ms_p95", views_min: "" }), asked({ sort: "startup_ms_p95", order: "ascending" })], ["100", "100", "100"]);
  assert.deepEqual([asked({ sort: "startup_ms_p95", views_min: "7" }), asked({ sort: "startup_ms_p95", views_min: "0" })], ["7", "0"]);
  // By views every group has its place, and a median is shown of any.
  assert.deepEqual([asked({}), asked({ sort: "views" }), asked({ sort: "x" }, { name: "startup_ms_p50", kind: "percentile" })], ["", "", ""]);
  assert.deepEqual([leastOf({ sort: "startup_ms_p95", views_min: "7" }, p95), leastOf({ sort: "views" }, p95)], ["100", ""]);
});

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

test("views may be open still in the last six hours of a range up to now", () => {
  const now_ms = 1_000 * HOUR_MS + 30_000;
  const minute_ms = 1_000 * HOUR_MS + 60_000;
  assert.deepEqual(openStretch({ from_ms: now_ms - DAY_MS, to_ms: now_ms + DAY_MS }, now_ms), { from_ms: minute_ms - 6 * HOUR_MS, until_ms: minute_ms });
  assert.deepEqual(openStretch({ from_ms: now_ms - HOUR_MS, to_ms: now_ms - 60_000 }, now_ms), { from_ms: 999 * HOUR_MS, until_ms: 1_000 * HOUR_MS });
  assert.equal(openStretch({ from_ms: now_ms - 2 * DAY_MS, to_ms: now_ms - DAY_MS }, now_ms), null);
  assert.equal(openStretch({ from_ms: now_ms + HOUR_MS, to_ms: now_ms + DAY_MS }, now_ms), null);
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

test("what is asked of one moment has it in its range: the place's own, or the day around it", () => {
  const now_ms = Date.UTC(2026, 10, 24, 20, 13);
  const day = placeOf("/view", "?range=24h", "UTC");
  assert.deepEqual(rangeWith(day, now_ms - HOUR_MS, now_ms), { range: "24h", from: "", to: "" });
  const before = now_ms - 3 * DAY_MS;
  assert.deepEqual(rangeWith(day, before, now_ms), { range: "", from: String(before - DAY_MS / 2), to: String(before + DAY_MS / 2) });
  // A day that is not over ends now.
  const own = placeOf("/view", "?from=2026-11-01&to=2026-11-02", "UTC");
  assert.equal(rangeWith(own, now_ms - HOUR_MS, now_ms).to, String(now_ms));
});

test("a screen that the navigation does not list is within one that it lists", () => {
  const listed = SCREENS.filter((one) => one.isListed).map((one) => one.name);
  for (const one of SCREENS) assert.equal(one.isListed || listed.includes(one.within), true, one.name);
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

test("what is said of a metric leaves out what nobody else has", () => {
  assert.deepEqual(notesOf({ source: "own", clients: "all", mux: "–", cta: "–" }), [["Defined by", "Playhead"], ["Clients that report it", "all"]]);
  assert.deepEqual(notesOf({ source: "Mux, views", clients: "all", mux: "same", cta: "– (neither has a viewer)" }).slice(2), [["Compared with Mux Data", "same"], ["Compared with CTA", "neither has a viewer"]]);
});

test("moments that a click chooses lie within the range, also in an hour that comes twice", () => {
  const now_ms = Date.UTC(2026, 10, 24, 20, 13, 30);
  const of = (/** @type {string} */ search) => momentsAgo(placeOf("/errors", search, "Europe/Berlin"), now_ms);
  assert.deepEqual(of("?range=1h"), [["15 min ago", String(Date.UTC(2026, 10, 24, 19, 58))]]);
  assert.deepEqual(of("?range=7d").map(([title]) => title), ["15 min ago", "1 h ago", "6 h ago", "24 h ago"]);
  assert.deepEqual(of("?from=2026-11-01&to=2026-11-02"), []);
  // Clocks in Berlin show 02:30 twice that night: at 00:30 and 01:30 of UTC.
  const night_ms = Date.UTC(2026, 9, 25, 1, 45);
  const [[, since]] = momentsAgo(placeOf("/errors", "?range=1h", "Europe/Berlin"), night_ms);
  assert.equal(msOf(since, "Europe/Berlin"), night_ms - 15 * 60_000);
});

test("a note says below how many views a percentile is not shown, where one is not", () => {
  assert.equal(hiddenNote("startup_ms_p95", [0, undefined, 99, 100], "Dash"), "Dash: a value is not shown below 100 views.");
  assert.deepEqual([hiddenNote("startup_ms_p95", [0, 100], "Gap"), hiddenNote("startup_ms_p50", [1], "Gap"), hiddenNote("views", [1], "Gap")], ["", "", ""]);
});
