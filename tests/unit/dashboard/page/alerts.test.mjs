// Rules and incidents in words, and a rule out of the form.

import assert from "node:assert/strict";
import test from "node:test";
import { aroundOf, figureText, filtersOf, ruleMetricOf, ruleOf, ruleText, sliceOf, sliceText } from "../../../../services/dashboard/static/core/alerts.js";

const form = (values) => {
  const found = new FormData();
  for (const [name, value] of Object.entries(values)) found.set(name, value);
  return found;
};

test("a threshold of a share is typed in percent", () => {
  const rule = ruleOf(form({ name: "N", customer: "acme", metric: "rebuffering", condition: "threshold", direction: "above", figure: "5", severity: "info" }));
  assert.equal(rule.threshold, 0.05);
  assert.equal(ruleText(rule), "Viewers rebuffering above 5.00 % (all views)");
});

test("an anomaly is on the side of its metric, for each state of the form", () => {
  const rule = ruleOf(form({ name: "N", customer: "acme", metric: "beacons", condition: "anomaly", direction: "above", figure: "5", severity: "info" }));
  assert.equal(rule.direction, "below");
  assert.equal(rule.ratio, 5);
  assert.match(ruleText(rule), /less than 1\/5 of what is usual/);
});

test("a slice is named, and leads to its views", () => {
  assert.equal(sliceText({ cdn: "a", country: "DE" }), "cdn a, country DE");
  assert.equal(sliceText({}), "all views");
  assert.deepEqual(filtersOf({ cdn: "a" }).map((one) => JSON.parse(one)), [{ dimension: "cdn", in: ["a"] }]);
  assert.equal(figureText("rebuffering", 0.081), "8.10 %");
});

test("the views around an incident end now where it goes on", () => {
  assert.deepEqual(aroundOf({ opened_ms: 10_000_000, closed_ms: null }, 11_000_000), { from_ms: 8_200_000, to_ms: 11_000_000 });
  assert.deepEqual(aroundOf({ opened_ms: 10_000_000, closed_ms: 10_300_000 }, 99_000_000).to_ms, 10_900_000);
});

test("a rule is of the slice that the page's filters name, and measures what was looked at", () => {
  const cdn = JSON.stringify({ dimension: "cdn", in: ["fastly"] });
  const several = JSON.stringify({ dimension: "country", in: ["DE", "FR"] });
  const not = JSON.stringify({ not: { dimension: "os", in: ["iOS"] } });
  const unknown = JSON.stringify({ dimension: "device", in: [null] });
  assert.deepEqual(sliceOf([cdn, several, not, unknown, "{}"]), { cdn: "fastly" });
  const rule = ruleOf(form({ name: "N", customer: "acme", metric: "rebuffering", condition: "threshold", direction: "above", figure: "2", for_seconds: "300", severity: "info" }), { cdn: "fastly" });
  assert.equal(ruleText(rule), "Viewers rebuffering above 2.00 % for 5.0 min (cdn fastly)");
  assert.deepEqual(["rebuffer_fraction", "startup_ms_p95", "watch_ms"].map(ruleMetricOf), ["rebuffering", "startup_ms", null]);
});
