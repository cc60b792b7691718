// The server's clock, and how new finished views are, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serverNow } from "../../../../../../services/dashboard/static/core/time/clock.js";
import { freshnessOf, OLD_MS } from "../../../../../../services/dashboard/static/core/time/freshness.js";

test("the server's clock goes on from what an answer says, whatever the viewer's shows", () => {
  assert.equal(serverNow(1_000_000, 500, 3_500), 1_003_000);
  // The answer came after the last tick.
  assert.equal(serverNow(1_000_000, 500, 100), 1_000_000);
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
