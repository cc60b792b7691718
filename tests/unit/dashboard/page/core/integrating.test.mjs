// Lines to paste, and what arrives of a client, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adviceOf, countedText, missingOf, verdictOf } from "../../../../../services/dashboard/static/core/arriving/arrivals.js";
import { collectorOf, keysFor, linesFor } from "../../../../../services/dashboard/static/core/arriving/pasting.js";
import { CLIENTS } from "../../../../../services/dashboard/static/core/words/client_lines.js";

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
  // Input under a mistyped key belongs to no customer, so the advice says where else to look.
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
