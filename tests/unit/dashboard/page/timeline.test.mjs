// The timeline of a view. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adsOf, endText, errorsOf, errorsSaid, EVENTS_MAX, factsOf, levelsOf, markText, playheadText, statesOf, unkeptFrom } from "../../../../services/dashboard/static/core/timeline.js";

test("the only error of a timeline has the code and text of its row, of several each says that it has none", () => {
  const at = (at_ms, event) => ({ at_ms, event });
  const row = { error_code: "404", error_message: "no manifest", events: [at(0, "viewstart"), at(1_200, "warning"), at(2_000, "error")] };
  assert.deepEqual(errorsOf(row), [
    { at: 1, at_ms: 1_200, event: "warning", text: "" },
    { at: 2, at_ms: 2_000, event: "error", text: "404: no manifest" },
  ]);
  assert.deepEqual(errorsOf(row).map(markText), ["warning, at 1.20 s", "error 404: no manifest, at 2.00 s"]);
  // The row keeps the last code that was reported; the last error may have had none.
  assert.deepEqual(errorsOf({ ...row, events: [at(900, "error"), ...row.events] }).filter((one) => one.text), []);
  // The error that it is of may not be among the first 200 events.
  const long = [at(0, "error"), ...Array.from({ length: 199 }, (_, n) => at(n, "playing"))];
  assert.deepEqual(errorsOf({ ...row, events: long }).filter((one) => one.text), []);
  assert.deepEqual(errorsOf({}), []);
});

test("errors of a timeline have the codes of their beacons where there are as many, each once and in the client's order", () => {
  const beacon = (event, client_time_ms, attrs, seq = client_time_ms) => ({ beacon: { event, client_time_ms, seq, attrs } });
  const row = { error_code: "404", events: ["error", "warning", "error"].map((event, at) => ({ at_ms: at, event })) };
  const mux = beacon("error", 1, { player_error_code: "2", player_error_message: "late" });
  const found = errorsSaid([
    beacon("error", 9, { error_code: "404", error_message: "gone" }),
    mux,
    mux,
    beacon("playing", 3, {}),
    { beacon: null },
    beacon("warning", 5, { payload: { code: 0, message: "" } }),
  ]);
  assert.deepEqual(found.map(({ event, text }) => [event, text]), [["error", "2: late"], ["warning", "0"], ["error", "404: gone"]]);
  assert.deepEqual(errorsOf(row, found).map((one) => one.text), ["2: late", "0", "404: gone"]);
  // One beacon is missing: which of the errors it was, nobody knows.
  assert.deepEqual(errorsOf(row, found.slice(1)).map((one) => one.text), ["", "0", ""]);
  // A clock that is set back changes no order, a code may be in the name of an event, and an object is no code.
  const cmcd = errorsSaid([beacon("error", 5, { ec: { a: 1 } }, 2), beacon("ce", 9, { cen: "playhead-error:27" }, 1)]);
  assert.deepEqual(cmcd.map(({ event, text }) => [event, text]), [["error", "27"], ["error", ""]]);
});

test("a place in a video is told as players show it", () => {
  assert.deepEqual([5_400, 59_949, 60_000, 754_000, 14_372_220].map(playheadText), ["5.40 s", "59.9 s", "1:00", "12:34", "3:59:32"]);
});

test("that a view failed comes before what its viewer did then", () => {
  assert.equal(endText({ end_reason: "clean", startup_failed: true, playback_failed: true }, false), "failed to start, ended by the viewer");
  assert.equal(endText({ end_reason: "timeout", playback_failed: true }, false), "failed, ended in silence");
  assert.equal(endText({ end_reason: "error", playback_failed: true }, false), "ended with an error");
  assert.equal(endText({ end_reason: "clean" }, false), "ended by the viewer");
  assert.equal(endText({ end_reason: "error", startup_failed: true }, true), "failed to start, still open");
  assert.equal(endText({}, true), "still open");
});

test("a bitrate holds until the next one, also where the client's clock was set back", () => {
  const at = (at_ms, bitrate_bps) => ({ at_ms, event: "playing", bitrate_bps });
  const events = [{ at_ms: 0, event: "viewstart" }, at(1_000, 4e6), at(9_000, 2e6), at(5_000, 1e6), at(8_000, 3e6)];
  assert.deepEqual(levelsOf({ events }, 10_000), [
    { from_ms: 1_000, to_ms: 9_000, bitrate_bps: 4e6 },
    { from_ms: 9_000, to_ms: 9_000, bitrate_bps: 2e6 },
    { from_ms: 9_000, to_ms: 9_000, bitrate_bps: 1e6 },
    { from_ms: 9_000, to_ms: 10_000, bitrate_bps: 3e6 },
  ]);
  assert.deepEqual(levelsOf({ events: [at(-500, 4e6)] }, 1_000), [{ from_ms: 0, to_ms: 1_000, bitrate_bps: 4e6 }]);
  assert.deepEqual(levelsOf({}, 1_000), []);
});

test("behind the last event that a row keeps nothing is known, whatever that event was", () => {
  const at = (n) => ({ at_ms: n * 6_000, event: n % 2 ? "playing" : "rebufferstart", bitrate_bps: 4e6 });
  const events = Array.from({ length: EVENTS_MAX - 1 }, (_, n) => at(n + 1));
  const [begun, last] = [{ at_ms: 0, event: "viewstart" }, 6_000 * (EVENTS_MAX - 1)];
  const [kept, span] = [{ events: [begun, ...events.slice(0, -2), { at_ms: last - 6_000, event: "adplaying" }, { at_ms: last, event: "rebufferstart" }] }, 3 * 3_600_000];
  assert.equal(kept.events.length, EVENTS_MAX);
  assert.equal(unkeptFrom(kept), last);
  for (const found of [statesOf(kept, span), adsOf(kept, span)]) assert.deepEqual(found.filter(([, , to]) => to > last), []);
  assert.deepEqual(adsOf(kept, span), [["ad", last - 6_000, last]]);
  assert.equal(levelsOf(kept, span).at(-1).to_ms, last);
  // One event fewer, and the row has all: the last state goes on to the end.
  const all = { events: kept.events.slice(1) };
  assert.equal(unkeptFrom(all), null);
  assert.deepEqual(statesOf(all, span).at(-1), ["rebuffering", last, span]);
  assert.deepEqual(adsOf(all, span), [["ad", last - 6_000, span]]);
  assert.equal(levelsOf(all, span).at(-1).to_ms, span);
  // A clock that was set back puts no event of these behind the last one that is kept.
  assert.equal(unkeptFrom({ events: [...kept.events.slice(0, -1), { at_ms: 5, event: "pause" }] }), last - 6_000);
  assert.deepEqual([unkeptFrom({}), unkeptFrom({ events: [] })], [null, null]);
});

test("an open view that has not started was not left before", () => {
  const startup = (/** @type {any} */ row, /** @type {boolean} */ isOpen) => Object.fromEntries(factsOf({ beacon_count: 1, ...row }, isOpen))["Start-up"];
  assert.equal(startup({ startup_ms: null, startup_unknown: null }, true), "not yet");
  assert.equal(startup({ startup_ms: null, startup_unknown: null, playback_failed: true }, true), "failed");
  assert.equal(startup({ startup_ms: null, startup_unknown: "start_lost" }, true), "not known");
  assert.equal(startup({ startup_ms: null, startup_unknown: "not_started" }, false), "left before");
  assert.equal(startup({ startup_ms: 700 }, true), "700 ms");
});
