// The views behind a figure, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, filterText } from "../../../../../services/dashboard/static/core/place/filters.js";
import { viewsBehind, viewsOf, viewsOfBin, viewsWith, whichBehind } from "../../../../../services/dashboard/static/core/figures/behind.js";
import { holds } from "./meaning.mjs";

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
