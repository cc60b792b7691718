// Requests of a view, as they are drawn and worded. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf, outcomeText, readText, requestText, totalText, TRACKS, whatText } from "../../../../../../services/dashboard/static/core/view/requests.js";
import { durationText, sizeText } from "../../../../../../services/dashboard/static/core/words/format.js";

const whole = { at_ms: 3_000, outcome: "completed", ttfb_ms: 40, time_ms: 190, size_bytes: 100_000, throughput_bps: 4_210_526, kind: "video", file: "1.ts", host: "cdn.example" };

test("a request says what it was, how it went and what it took, with units", () => {
  assert.equal(requestText(whole), "completed, video · 1.ts · cdn.example, first byte after 40 ms, took 190 ms, 100.0 kB, 4.21 Mbps, from 3.00 s");
  // What a client does not report is left out, and a zero is a figure.
  assert.equal(requestText({ at_ms: -20, outcome: "canceled" }), "○ canceled, from -20 ms");
  assert.equal(requestText({ at_ms: 0, outcome: "completed", ttfb_ms: 0, time_ms: 0, size_bytes: 0 }), "completed, first byte after 0 ms, took 0 ms, 0 B, from 0 ms");
  assert.equal(outcomeText({ at_ms: 0, outcome: "failed", code: "404" }), "✕ failed (404)");
  assert.equal(whatText({ at_ms: 0, outcome: "failed" }), "");
  assert.deepEqual([undefined, null, 999, 999.6, 1_000, 999_949, 999_960, 1e6, 2.5e9].map(sizeText), ["–", "–", "999 B", "1.0 kB", "1.0 kB", "999.9 kB", "1.00 MB", "1.00 MB", "2,500.00 MB"]);
  assert.deepEqual([-20, -999.6, -5_000, -60_000, -600_000, -90_000_000].map(durationText), ["-20 ms", "-1.00 s", "-5.00 s", "-60.0 s", "-10.0 min", "-25.0 h"]);
});

test("requests at one time have tracks of their own, and none is drawn outside the view", () => {
  const at = (at_ms, time_ms, ttfb_ms) => ({ at_ms, time_ms, ttfb_ms, outcome: "completed" });
  const bars = barsOf([at(0, 500, 100), at(100, 100), at(300, 200), at(600, 100)], 1_000);
  assert.deepEqual(bars.map(({ track, x, first_x, end_x }) => [track, x, first_x, end_x]), [[0, 0, 100, 500], [1, 100, 100, 200], [1, 300, 300, 500], [0, 600, 600, 700]]);
  const hostile = barsOf([at(-5e12, 1), at(-10, 30, 9e15), at(5e15, 5e15, 5e15), { at_ms: 999, outcome: "failed" }, at(0, -5, -9)], 1_000);
  for (const { x, first_x, end_x, track } of hostile) {
    assert.ok(x >= 0 && x <= first_x && first_x <= end_x && end_x <= 1_000 && end_x - x >= 2, `${x} ${first_x} ${end_x}`);
    assert.ok(track >= 0 && track < TRACKS);
  }
  // More at a time than there are tracks: they cover each other.
  assert.deepEqual(barsOf(Array.from({ length: 6 }, () => at(0, 9)), 10).map(({ track }) => track), [0, 1, 2, 3, 0, 0]);
  assert.deepEqual(barsOf([], 1), []);
  // A view that began and ended at one moment.
  assert.deepEqual(barsOf([at(0, 0), at(0, 5, 1)], 0).map(({ x, first_x, end_x }) => [x, first_x, end_x]), [[0, 0, 2], [0, 1_000, 1_000]]);
});

test("the slowest first byte is that of completed requests alone, as a view counts it", () => {
  const total = (requests, requests_n = requests.length) => totalText({ requests, requests_n });
  assert.equal(total([whole, { ...whole, ttfb_ms: 60 }, { at_ms: 0, outcome: "failed", ttfb_ms: 9_000 }, { at_ms: 0, outcome: "canceled" }]), "4 requests, 1 failed, 1 canceled, slowest first byte 60 ms");
  assert.equal(total([{ at_ms: 0, outcome: "completed" }]), "1 request, 0 failed, 0 canceled");
  // Of more than were read it is not known how they went.
  assert.equal(total([{ at_ms: 0, outcome: "failed" }], 2_500), "the first 1 of 2,500 requests, 1 failed, 0 canceled");
});

test("it is said how much was read, what is missing and why", () => {
  const requests = [whole];
  const row = { req_count: 1, last_append_ms: 0 };
  const of = (read, more = {}, now_ms = 1e9) => readText({ requests, requests_n: 1, beacons_n: 9, ...read }, { ...row, ...more }, now_ms);
  assert.equal(of({}), "1 request, in 9 beacons of this view.");
  assert.equal(of({ requests_n: 1_200, beacons_n: 4_000 }), "Shown are the first 1 of 1,200 requests, in 4,000 beacons of this view.");
  assert.equal(of({ is_cut: true, beacons_n: 10_000 }), "1 request, in the first 10,000 beacons of this view. It has more beacons, which are not read for this.");
  assert.equal(of({}, { req_count: 5 }), "1 request, in 9 beacons of this view. It counts 4 more: their beacons are no longer kept.");
  assert.equal(of({}, { req_count: 5 }, 60_000), "1 request, in 9 beacons of this view. It counts 4 more: their beacons have not reached the warehouse yet.");
  // More may have come since the view was asked for.
  assert.equal(of({}, { req_count: null }), "1 request, in 9 beacons of this view.");
  assert.match(of({ beacons_n: 0, requests_n: 0 }), /no longer kept/);
  assert.match(of({ beacons_n: 0, requests_n: 0 }, {}, 60_000), /about a minute after/);
});
