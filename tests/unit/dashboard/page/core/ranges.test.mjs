// Ranges of time, buckets, and what is compared with, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openStretch } from "../../../../../services/dashboard/static/core/answers/audience.js";
import { changed, placeOf } from "../../../../../services/dashboard/static/core/place/place.js";
import { bucketsFor, comparedFrom, comparedRange, comparedText, DAY_MS, HOUR_MS, localText, momentsAgo, momentText, msOf, placeText, rangeWith, resolved, sameOnClocks, wholeMinutes } from "../../../../../services/dashboard/static/core/place/ranges.js";

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

test("a stretch that is marked has whole minutes", () => {
  assert.deepEqual(wholeMinutes(61_000, 119_999), [60_000, 120_000]);
  assert.deepEqual(wholeMinutes(60_000, 180_000), [60_000, 180_000]);
});

test("what is compared with is said in words", () => {
  assert.equal(comparedText("", "UTC"), "with nothing");
  assert.equal(comparedText("no time", "UTC"), "with nothing");
  assert.equal(comparedText("week", "UTC"), "with the same time a week before");
  assert.equal(comparedText("2026-03-27T10:00", "Europe/Berlin"), "with the range from 27 Mar, 10:00");
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

test("views may be open still in the last six hours of a range up to now", () => {
  const now_ms = 1_000 * HOUR_MS + 30_000;
  const minute_ms = 1_000 * HOUR_MS + 60_000;
  assert.deepEqual(openStretch({ from_ms: now_ms - DAY_MS, to_ms: now_ms + DAY_MS }, now_ms), { from_ms: minute_ms - 6 * HOUR_MS, until_ms: minute_ms });
  assert.deepEqual(openStretch({ from_ms: now_ms - HOUR_MS, to_ms: now_ms - 60_000 }, now_ms), { from_ms: 999 * HOUR_MS, until_ms: 1_000 * HOUR_MS });
  assert.equal(openStretch({ from_ms: now_ms - 2 * DAY_MS, to_ms: now_ms - DAY_MS }, now_ms), null);
  assert.equal(openStretch({ from_ms: now_ms + HOUR_MS, to_ms: now_ms + DAY_MS }, now_ms), null);
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
