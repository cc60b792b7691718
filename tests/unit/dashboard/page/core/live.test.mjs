// Figures of now, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { either, filterOf } from "../../../../../services/dashboard/static/core/place/filters.js";
import { viewsBehind } from "../../../../../services/dashboard/static/core/figures/behind.js";
import { levelOf } from "../../../../../services/dashboard/static/core/figures/figures.js";
import { joined, ordered, sortOf, sortText, statusOf, stretchOf, TILES, valuesOf } from "../../../../../services/dashboard/static/core/live/live.js";
import { liveTitle, viewsOfLive } from "../../../../../services/dashboard/static/core/live/views.js";
import { judgedOf } from "../../../../../services/dashboard/static/core/live/judged.js";
import { HOUR_MS } from "../../../../../services/dashboard/static/core/place/ranges.js";

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
