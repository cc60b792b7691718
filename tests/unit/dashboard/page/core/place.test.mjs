// Addresses of the page, and the place that each means, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf } from "../../../../../services/dashboard/static/core/place/filters.js";
import { addressOf, changed, lasting, placeOf, viewAddress } from "../../../../../services/dashboard/static/core/place/place.js";
import { SCREENS } from "../../../../../services/dashboard/static/core/place/screens.js";
import { comparedRange, HOUR_MS, resolved } from "../../../../../services/dashboard/static/core/place/ranges.js";

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
  for (const [typed, meant] of Object.entries({ utc: "UTC", "europe/berlin": "Europe/Berlin", "EUROPE/BERLIN": "Europe/Berlin", "US/Pacific": "US/Pacific" })) {
    assert.equal(placeOf("/", `?tz=${typed}`, "Asia/Kathmandu").tz, meant);
  }
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

test("a screen that the navigation does not list is within one that it lists", () => {
  const listed = SCREENS.filter((one) => one.isListed).map((one) => one.name);
  for (const one of SCREENS) assert.equal(one.isListed || listed.includes(one.within), true, one.name);
});
