// When a question is asked again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { againAfter, everyOf } from "../../../../../../services/dashboard/static/core/time/again.js";

const none = () => 0;

test("a question that fails again and again waits longer each time, up to a minute", () => {
  const waits = [0, 1, 2, 3, 4, 30].map((failures) => againAfter({ status: 503 }, failures, 10_000, none));
  assert.deepEqual(waits, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
});

test("a server that has too much to do is asked no sooner than it would have been, and when it says", () => {
  assert.equal(againAfter({ status: 504 }, 0, 30_000, none), 30_000);
  assert.equal(againAfter({ status: 429, retry_ms: 90_000 }, 0, 30_000, none), 90_000);
  assert.equal(againAfter({ status: 0 }, 0, 30_000, none), 5_000, "one that is away may be back at once");
});

test("pages do not all ask at the same moment", () => {
  assert.ok(againAfter({ status: 503 }, 0, 0, () => 0.9) > againAfter({ status: 503 }, 0, 0, () => 0.1));
});

test("a range that is over is asked for less often, one up to now as before", () => {
  const now = Date.UTC(2026, 0, 1, 12);
  assert.equal(everyOf({ to_ms: now - 60_000 }, 30_000, now), 30_000);
  assert.equal(everyOf({ to_ms: now - 86_400_000 }, 30_000, now), 300_000);
  assert.equal(everyOf({ to_ms: now - 86_400_000 }, 0, now), 0, "what is asked once stays so");
  assert.equal(everyOf(null, 30_000, now), 30_000);
});
