// Tables of groups, and their export, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { exportOf } from "../../../../../../services/dashboard/static/core/answers/exported.js";
import { metricsAsked } from "../../../../../../services/dashboard/static/core/answers/asked.js";
import { isNoneLarge, leastOf, moreRows, rowsOf, tableOf } from "../../../../../../services/dashboard/static/core/answers/groups.js";
import { longerThan } from "../../../../../../services/dashboard/static/core/place/ranges.js";

test("a breakdown has more rows until all with enough views are listed, or as many as the API lists", () => {
  const groups = (/** @type {number} */ values, /** @type {string[]} */ ...others) => [
    ...Array.from({ length: values }, (_, at) => ({ kind: "value", key: [String(at)] })),
    ...others.map((kind) => ({ kind, key: [null] })),
  ];
  assert.deepEqual([moreRows(groups(20, "unknown", "other"), 20), moreRows(groups(100, "other"), 100), moreRows(groups(500, "other"), 500)], [100, 500, 1_000]);
  assert.equal(moreRows(groups(20, "unknown"), 20), null);
  // The others have too few views; what is unknown is listed beside as many as were asked for, but among pairs.
  assert.equal(moreRows(groups(19, "unknown", "other"), 20), null);
  assert.equal(moreRows([...groups(19, "other"), { kind: "unknown", key: [null, null] }], 20), 100);
  assert.equal(moreRows(groups(1_000, "other"), 1_000), null);
  assert.deepEqual([undefined, "", "100", "7.5", "-3", "0", "x", "9e9"].map(rowsOf), [20, 20, 100, 7, 20, 20, 20, 1_000]);
});

test("what is drawn is what is exported", () => {
  const drawn = { metric: "startup_ms_p50", as: "line", by: "", second: "", compare: "week", table: tableOf({ sort: "views", order: "ascending", views_min: "5" }, { name: "startup_ms_p50", kind: "percentile" }) };
  const of = (/** @type {object} */ change) => {
    const { of: kind, params } = exportOf({ ...drawn, ...change });
    return [kind, params];
  };
  const asked = { metrics: "startup_ms_p50", compare: "week" };
  assert.deepEqual(of({}), ["timeseries", asked]);
  assert.deepEqual(of({ bucket: "hour" }), ["timeseries", { ...asked, bucket: "hour" }]);
  // The lines are by the first dimension alone.
  assert.deepEqual(of({ by: "cdn", second: "asn" }), ["timeseries", { ...asked, by: "cdn", limit: 8 }]);
  assert.deepEqual(of({ as: "multiples", by: "cdn" }), ["timeseries", { ...asked, by: "cdn", limit: 12 }]);
  assert.deepEqual(of({ as: "table", by: "cdn", second: "asn" }), ["breakdown", { ...asked, by: "cdn,asn", order_by: "views", order: "ascending", views_min: "5", limit: 1_000 }]);
  assert.deepEqual(of({ as: "distribution", by: "cdn" }), ["distribution", { of: "startup_ms", compare: "week" }]);
  // Where a form draws nothing, the figure alone is drawn.
  for (const nothing of [{ as: "table" }, { as: "multiples" }, { as: "distribution", metric: "views" }]) assert.equal(of(nothing)[0], "overall", JSON.stringify(nothing));
  // A table that was sorted by another metric is sorted by its own one.
  const bySort = (/** @type {string} */ sort) => tableOf({ sort }, { name: "startup_ms_p95", kind: "percentile" }).order_by;
  assert.deepEqual(["rebuffer_fraction", "startup_ms_p95", "views", ""].map(bySort), ["startup_ms_p95", "startup_ms_p95", "views", "views"]);
  assert.deepEqual([tableOf({}, { name: "views", kind: "sum" }).order_by, tableOf({}, { name: "rebuffer_fraction", kind: "ratio" }).order_by], ["views", "views"]);
});

test("an address that names several metrics shows the first that is known", () => {
  const known = { views: {}, viewers: {} };
  assert.deepEqual(metricsAsked("nothing, viewers,views", known, "rebuffer_fraction"), { metric: "viewers", others: ["views"] });
  assert.deepEqual(metricsAsked("views,viewers", {}, "rebuffer_fraction"), { metric: "views", others: [] });
  assert.deepEqual([undefined, "", ",", "nothing", "constructor,views"].map((text) => metricsAsked(text, known, "started").metric), ["started", "started", "started", "nothing", "views"]);
});

test("where no group has enough views a longer range may have some", () => {
  const rest = [{ kind: "unknown", key: [null] }, { kind: "other", key: [null] }];
  assert.deepEqual([isNoneLarge(rest), isNoneLarge([{ kind: "value", key: ["a"] }, ...rest]), isNoneLarge([]), isNoneLarge([{ kind: "unknown", key: [null] }])], [true, false, false, false]);
  assert.deepEqual(["24h", "30d", "90d", "", "x"].map(longerThan), ["7d", "90d", null, null, null]);
});

test("a table that is sorted by a percentile lists groups whose figure is shown, unless somebody says otherwise", () => {
  const p95 = { name: "startup_ms_p95", kind: "percentile" };
  const asked = (/** @type {Record<string, string>} */ more, metric = p95) => tableOf(more, metric).views_min;
  assert.deepEqual([asked({ sort: "startup_ms_p95" }), asked({ sort: "startup_ms_p95", views_min: "" }), asked({ sort: "startup_ms_p95", order: "ascending" })], ["100", "100", "100"]);
  assert.deepEqual([asked({ sort: "startup_ms_p95", views_min: "7" }), asked({ sort: "startup_ms_p95", views_min: "0" })], ["7", "0"]);
  // By views every group has its place, and a median is shown of any.
  assert.deepEqual([asked({}), asked({ sort: "views" }), asked({ sort: "x" }, { name: "startup_ms_p50", kind: "percentile" })], ["", "", ""]);
  assert.deepEqual([leastOf({ sort: "startup_ms_p95", views_min: "7" }, p95), leastOf({ sort: "views" }, p95)], ["100", ""]);
});
