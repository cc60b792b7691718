// The timeline of a view. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adsOf, endText, errorsOf, errorsSaid, EVENTS_MAX, factsOf, levelsOf, markText, mayBeMore, playheadText, restName, statesOf, timelineText, unkeptFrom, withRead } from "../../../../../../services/dashboard/static/core/view/timeline.js";

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

test("a timeline that was read from beacons is drawn as far as they were read, and no further", () => {
  const events = Array.from({ length: 300 }, (_, n) => ({ at_ms: n * 1_000, event: n % 2 ? "playing" : "rebufferstart" }));
  const row = { events: events.slice(0, EVENTS_MAX), beacon_count: 400, last_append_ms: 0 };
  const read = { events, beacons_n: 400, known_to_ms: 310_000, is_cut: false, agrees: true };
  assert.equal(withRead(row, null), row);
  // All of its beacons: the last state goes on to the end.
  const whole = withRead(row, read);
  assert.deepEqual([unkeptFrom(whole), statesOf(whole, 400_000).at(-1)], [null, ["playing", 299_000, 400_000]]);
  assert.equal(mayBeMore(row, read), false);
  for (const part of [{ ...read, is_cut: true }, { ...read, beacons_n: 399 }]) {
    const drawn = withRead(row, part);
    assert.deepEqual([unkeptFrom(drawn), statesOf(drawn, 400_000).at(-1)], [310_000, ["playing", 299_000, 310_000]]);
    assert.equal(mayBeMore(row, part), !part.is_cut);
  }
  assert.deepEqual([restName(row), restName(withRead(row, { ...read, is_cut: true }))], ["not kept", "not read"]);
  // Neither events that are others than those of the view, nor fewer than it has.
  assert.equal(withRead(row, { ...read, agrees: false, events: [] }), row);
  assert.equal(withRead(row, { ...read, events: events.slice(0, 100), beacons_n: 100 }), row);
});

test("how much of a timeline was read is said, and why there may be more", () => {
  const events = Array.from({ length: 300 }, (_, n) => ({ at_ms: n, event: "playing" }));
  const row = { events: events.slice(0, EVENTS_MAX), beacon_count: 1_400, last_append_ms: 0 };
  const read = { events, beacons_n: 1_400, known_to_ms: 90_000, is_cut: false, agrees: true };
  const [soon, later] = [60_000, 3_600_000];
  assert.equal(timelineText(read, row, soon), "The timeline has all 300 events of this view, from its 1,400 beacons.");
  assert.equal(
    timelineText({ ...read, is_cut: true }, row, soon),
    "The timeline has the events of the first 1,400 beacons of this view, up to 90.0 s. It has more beacons, which are not read for this.",
  );
  assert.match(timelineText({ ...read, beacons_n: 1_390 }, row, soon), /up to 90.0 s. The other 10 have not reached the warehouse yet\.$/);
  assert.match(timelineText({ ...read, beacons_n: 1_390 }, row, later), /The other 10 are no longer kept\.$/);
  assert.match(timelineText({ ...read, events: events.slice(0, 9), beacons_n: 9 }, row, soon), /say no more than it has kept. The other 1,391 have not reached/);
  assert.match(timelineText({ ...read, agrees: false, events: [] }, row, later), /nothing is drawn from them/);
  assert.match(timelineText({ ...read, events: [], beacons_n: 0 }, row, later), /no longer kept, and the rest of its timeline/);
});

test("errors that were read from beacons have the code and text of their own beacon", () => {
  const events = [{ at_ms: 1, event: "error", code: "E1" }, { at_ms: 2, event: "error", code: "E2", message: "gone" }, { at_ms: 3, event: "warning" }];
  assert.deepEqual(errorsOf({ error_code: "E2", events, known_to_ms: null }).map(({ text }) => text), ["E1", "E2: gone", ""]);
});
