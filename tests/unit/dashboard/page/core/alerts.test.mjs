// Rules and incidents in words, and a rule out of the form.

import assert from "node:assert/strict";
import test from "node:test";
import { termOf } from "../../../../../services/dashboard/static/core/words/glossary_lookup.js";
import { filtersOf, filterText } from "../../../../../services/dashboard/static/core/place/filters.js";
import { METRICS, baseText, dimensionsOf, figureOf, figureText, hitsText, limitOf, openFirst, quietText, ruleMetricOf, ruleOf, ruleText, sliceOf, sliceText, triedText, viewMetricOf, whenText } from "../../../../../services/dashboard/static/core/alerting/alerts.js";
import { viewsAt } from "../../../../../services/dashboard/static/core/alerting/views.js";
import { aroundOf, baseOf, countedText, historyLines, historyOf, latestOf, newestOf, nowOf, usualBaseText } from "../../../../../services/dashboard/static/core/alerting/course.js";

const form = (values) => {
  const found = new FormData();
  for (const [name, value] of Object.entries(values)) found.set(name, value);
  return found;
};

test("a threshold of a share is typed in percent", () => {
  const rule = ruleOf(form({ name: "N", customer: "acme", metric: "rebuffering", condition: "threshold", direction: "above", figure: "5", severity: "info" }));
  assert.equal(rule.threshold, 0.05);
  assert.equal(ruleText(rule), "Viewers rebuffering above 5.00% (all views)");
});

test("an anomaly is on the side of its metric, for each state of the form", () => {
  const rule = ruleOf(form({ name: "N", customer: "acme", metric: "beacons", condition: "anomaly", direction: "above", figure: "5", severity: "info" }));
  assert.equal(rule.direction, "below");
  assert.equal(rule.ratio, 5);
  assert.match(ruleText(rule), /less than 1\/5 of what is usual/);
});

test("a slice is named, and leads to its views", () => {
  assert.equal(sliceText({ cdn: "a", country: "DE" }), "cdn a, country DE");
  assert.equal(sliceText({ cdn: "a" }, "", (name) => name.toUpperCase()), "CDN a");
  assert.equal(sliceText({}), "all views");
  assert.deepEqual(filtersOf({ cdn: "a" }).map((one) => JSON.parse(one)), [{ dimension: "cdn", in: ["a"] }]);
  // Of a value that is not known, and of those that have no name of their own.
  assert.deepEqual(filtersOf({ cdn: "(unknown)", country: "(other)" }).map((one) => JSON.parse(one)), [{ dimension: "cdn", in: [null] }]);
  assert.equal(figureText("rebuffering", 0.081), "8.10%");
});

test("an incident that is open stands before newer ones that are over", () => {
  const [old, over, newest] = [{ id: "a", closed_ms: null }, { id: "b", closed_ms: 5 }, { id: "c", closed_ms: null }];
  assert.deepEqual(openFirst([newest, old], [newest, over]), [newest, old, over]);
  assert.deepEqual(openFirst([], [over]), [over]);
  // Where all incidents are listed, open ones are not asked for.
  assert.deepEqual(openFirst([], [over, old]), [old, over]);
});

test("the views around an incident end now where it goes on", () => {
  assert.deepEqual(aroundOf({ opened_ms: 10_000_000, closed_ms: null }, 11_000_000), { from_ms: 8_200_000, to_ms: 11_000_000 });
  assert.deepEqual(aroundOf({ opened_ms: 10_000_000, closed_ms: 10_300_000 }, 99_000_000).to_ms, 10_900_000);
});

test("quiet hours may last for a whole day, and end at midnight", () => {
  const spans = (/** @type {string} */ from, /** @type {string} */ to) => {
    const given = form({ name: "N", customer: "acme", metric: "rebuffering", condition: "anomaly", figure: "2", severity: "info" });
    given.append("quiet_from", from);
    given.append("quiet_to", to);
    return ruleOf(given).quiet.spans.map(({ from_minute, to_minute }) => [from_minute, to_minute]);
  };
  assert.deepEqual([spans("00:00", "00:00"), spans("22:00", "00:00")], [[[0, 1_440]], [[1_320, 1_440]]]);
});

test("what was counted has the units of its metric, and a share of time has no n", () => {
  const of = (/** @type {string} */ metric, /** @type {number} */ hits, /** @type {number} */ all) => countedText(metric, { hits, of: all, seconds: 60 });
  assert.equal(baseOf("rebuffer_fraction", { of: 36_000_000, seconds: 60 }), null);
  assert.equal(baseText("rebuffer_fraction", null), "");
  assert.equal(of("rebuffer_fraction", 90_000, 3_600_000), "90.0 s of 60.0 min in 60 s");
  assert.equal(of("startup_ms", 412_000, 120), "120 in 60 s");
  assert.equal(of("watch_ms", 412_000, 120), "120 in 60 s");
  assert.equal(of("bitrate", 6_000_000, 1_200), "100 in 60 s");
  assert.equal(of("viewers", 6_000, 12), "500 in 60 s");
  assert.equal(of("beacons", 6_000, 12), "6,000 in 60 s");
  assert.equal(of("rebuffering", 480, 6_000), "40 of 500 in 60 s");
  assert.equal(of("playback_failures", 3, 80), "3 of 80 in 60 s");
});

test("a pair, quiet hours of days in a zone, and who is notified are read from the form", () => {
  const given = form({ name: "N", customer: "acme", metric: "rebuffering", condition: "anomaly", figure: "1.5", severity: "info", time_zone: "Europe/Berlin", is_enabled: "on" });
  for (const [name, value] of [["cdn", "a"], ["", "unused"]]) {
    given.append("filter_dimension", name);
    given.append("filter_value", value);
  }
  for (const [from, to] of [["22:30", "06:00"], ["", ""]]) {
    given.append("quiet_from", from);
    given.append("quiet_to", to);
  }
  for (const day of ["0", "4"]) given.append("quiet_days_0", day);
  given.append("receivers", "r1");
  given.append("receivers", "r2");
  const rule = ruleOf(given);
  assert.deepEqual(rule.filter, { cdn: "a" });
  assert.deepEqual(rule.quiet, { time_zone: "Europe/Berlin", spans: [{ from_minute: 1_350, to_minute: 360, days: [0, 4] }] });
  assert.deepEqual(rule.receivers, ["r1", "r2"]);
  assert.equal(rule.is_enabled, true);
  assert.equal(quietText(rule.quiet), "quiet 22:30 to 06:00 Mon Fri (Europe/Berlin)");
  assert.equal(quietText({ time_zone: "UTC", spans: [] }), "");
});

test("a rule is shown in the form as it was typed", () => {
  assert.equal(figureOf({ condition: "threshold", metric: "rebuffering", threshold: 0.07 }), "7");
  assert.equal(figureOf({ condition: "threshold", metric: "startup_ms", threshold: 2_000 }), "2000");
  assert.equal(figureOf({ condition: "anomaly", metric: "rebuffering", ratio: 1.5 }), "1.5");
  assert.equal(figureOf({ condition: "anomaly", metric: "rebuffering", threshold: null, ratio: 2 }), "2");
});

test("a trial says how often it would have fired, and of how much time nothing is known", () => {
  const week = { from_ms: 0, until_ms: 7 * 86_400_000, known_minutes: 10_080, fired: 3 };
  assert.equal(triedText(week), "It would have fired 3 times in the last 7 days.");
  assert.match(triedText({ ...week, fired: 1, known_minutes: 60 }), /fired once .* Only 60 of 10,080 minutes are known\./);
});

test("an incident leads to its own metric of views, and that back to the rule's", () => {
  for (const metric of ["rebuffering", "playback_failures", "startup_failures", "exits_before_start", "startup_ms", "bitrate"]) assert.equal(ruleMetricOf(viewMetricOf(metric)), metric);
  assert.deepEqual([viewMetricOf("failures"), viewMetricOf("beacons")], ["playback_failure_fraction", ""]);
});

test("the course of an incident is that of its metric in its slice", () => {
  const incident = { customer: "acme", opened_ms: 10_000_000, closed_ms: 10_300_000, event: { metric: "rebuffering" } };
  const { parameters, value } = historyOf(incident, { country: "DE", cdn: "a" }, 99_000_000, ["cdn", "country"]);
  assert.deepEqual([parameters.dimension, parameters.fields, parameters.step_ms, value], ["cdn,country", "rebuffering_now,viewers_now", 60_000, "a\u001fDE"]);
  const ofNone = historyOf(incident, { country: "(unknown)", cdn: "(unknown)" }, 99_000_000, ["cdn", "country"]);
  assert.deepEqual([ofNone.parameters.dimension, ofNone.value], ["cdn,country", "(unknown)"]);
  // A short one shows its worst by 5 s, while these are known.
  const steps = (/** @type {any} */ change, /** @type {number} */ now_ms) => historyOf({ ...incident, ...change }, {}, now_ms, []).parameters.step_ms;
  assert.deepEqual([steps({}, 11_000_000), steps({ closed_ms: 20_000_000 }, 30_000_000), steps({ event: { metric: "rejected" } }, 11_000_000)], [5_000, 60_000, 60_000]);
  const picture = { from_ms: 60_000, step_ms: 60_000, values: [{ value, series: { rebuffering_now: [5, null, 1], viewers_now: [100, null, 0] } }] };
  assert.deepEqual(historyLines(picture, "rebuffering", value), { times: [60, 120, 180], values: [0.05, null, null], counts: [100, 0, 0], beside: [100, null, 0] });
  assert.deepEqual(historyLines(picture, "rebuffering", "another"), { times: [], values: [], counts: [], beside: [] });
});

test("a rule is of the slice that the page's filters name, and measures what was looked at", () => {
  const cdn = JSON.stringify({ dimension: "cdn", in: ["fastly"] });
  const several = JSON.stringify({ dimension: "country", in: ["DE", "FR"] });
  const not = JSON.stringify({ not: { dimension: "os", in: ["iOS"] } });
  const unknown = JSON.stringify({ dimension: "device", in: [null] });
  assert.deepEqual(sliceOf([cdn, several, not, unknown, "{}"]), { cdn: "fastly" });
  // As live figures name it.
  assert.deepEqual(sliceOf([JSON.stringify({ dimension: "video_title", in: ["x".repeat(70)] })]), { video_title: "x".repeat(64) });
  const rule = ruleOf(form({ name: "N", customer: "acme", metric: "rebuffering", condition: "threshold", direction: "above", figure: "2", for_seconds: "300", severity: "info" }), { cdn: "fastly" });
  assert.equal(ruleText(rule), "Viewers rebuffering above 2.00% for 5.0 min (cdn fastly)");
  assert.deepEqual(["rebuffer_fraction", "startup_ms_p95", "watch_ms"].map(ruleMetricOf), ["rebuffering", "startup_ms", null]);
});

test("a rule on rejected beacons names what collectors count by, and what it must be beyond stays", () => {
  const given = { name: "N", customer: "acme", metric: "rejected", condition: "anomaly", figure: "3", least: "1", by: "release", viewers_min: "50", severity: "info" };
  const rule = ruleOf(form(given));
  assert.deepEqual([rule.direction, rule.ratio, rule.threshold, rule.by], ["above", 3, 0.01, "release"]);
  assert.equal(ruleText(rule), "Rejected beacons: 3 times what is usual, above 1.00%, and no chance (each release)");
  assert.deepEqual([figureOf(rule), limitOf(rule)], ["3", "1"]);
  assert.equal(ruleOf(form({ ...given, least: "" })).threshold, undefined);
  assert.equal(ruleText(ruleOf(form({ ...given, by: "", least: "" }))), "Rejected beacons: 3 times what is usual, and no chance (all beacons)");
  assert.deepEqual([dimensionsOf("rejected", ["cdn"]), dimensionsOf("rebuffering", ["cdn"])], [["release", "collector"], ["cdn"]]);
  const incident = { customer: "acme", opened_ms: 10_000_000, closed_ms: 10_300_000, event: { metric: "rejected" } };
  const { parameters, value } = historyOf(incident, { release: "2" }, 99_000_000, ["cdn"]);
  assert.deepEqual([parameters.dimension, parameters.fields, value], ["release", "rejected,received", "2"]);
  const picture = { from_ms: 60_000, step_ms: 60_000, values: [{ value, series: { rejected: [5, 0], received: [100, 0] } }] };
  assert.deepEqual(historyLines(picture, "rejected", value), { times: [60, 120], values: [0.05, null], counts: [100, 0], beside: [100, 0] });
});

test("one hit is one, and many are counted", () => {
  assert.deepEqual([hitsText("rebuffering", 1), hitsText("rebuffering", 1_300), hitsText("rejected", 1)], ["1 viewer", "1,300 viewers", "1 beacon"]);
});

test("what is counted is drawn by the minute, as rules take it", () => {
  const picture = { from_ms: 0, step_ms: 5_000, values: [{ value: "", series: { views_started: [2, 4], viewers_now: [100, 90] } }] };
  assert.deepEqual(historyLines(picture, "views_started", "").values, [24, 48]);
  assert.deepEqual(historyLines(picture, "viewers", "").values, [100, 90]);
  // What is counted is its own n.
  assert.equal(historyLines(picture, "viewers", "").counts, null);
});

test("the figure of an incident says when it was", () => {
  const event = { opened_ms: 1_795_996_800_000 };
  assert.equal(whenText({ at_ms: 1_795_996_800_000 }, event, "UTC"), "at opening");
  assert.equal(whenText({ at_ms: 1_795_996_865_000 }, event, "UTC"), "at 30 Nov, 00:01:05");
});

test("the figure of now is that of the newest minute that is known", () => {
  const incident = { customer: "acme", event: { metric: "rebuffering" } };
  const { parameters, value } = newestOf(incident, { cdn: "a" }, 10_030_000, ["cdn"]);
  assert.deepEqual([parameters.from_ms, parameters.until_ms, parameters.step_ms, parameters.dimension, value], [9_840_000, 10_020_000, 60_000, "cdn", "a"]);
  const picture = { from_ms: 9_840_000, step_ms: 60_000, values: [{ value, series: { rebuffering_now: [5, 4, null], viewers_now: [100, 80, null] } }] };
  assert.deepEqual(latestOf(picture, "rebuffering", value), { value: 0.05, n: 80, to_ms: 9_960_000 });
  assert.equal(latestOf(picture, "rebuffering", "another"), null);
  const counted = { from_ms: 0, step_ms: 60_000, values: [{ value: "", series: { beacons: [30], viewers_now: [3] } }] };
  assert.deepEqual(latestOf(counted, "beacons", ""), { value: 30, n: null, to_ms: 60_000 });
});

test("live figures say the figure of now, of what they are of", () => {
  const picture = { customer: "acme", slice: "", slices_of: "", now: { viewers_now: 50, rebuffering_now: 1 }, slices: { cdn: [{ value: "a", viewers_now: 20, rebuffering_now: 1 }] } };
  const of = (/** @type {any} */ slice, metric = "rebuffering", customer = "acme") => ({ customer, event: { metric, slices: [{ slice }] } });
  assert.deepEqual(nowOf(picture, of({})), { value: 0.02, n: 50 });
  assert.deepEqual(nowOf(picture, of({ cdn: "a" })), { value: 0.05, n: 20 });
  assert.deepEqual(nowOf(picture, of({ cdn: "a" }, "viewers")), { value: 20, n: null });
  // Of others nothing is at hand: a pair, a value with few viewers, what is counted, another customer, a slice.
  for (const one of [of({ cdn: "a", country: "DE" }), of({ cdn: "b" }), of({}, "failures"), of({}, "rebuffering", "globex")]) assert.equal(nowOf(picture, one), null);
  assert.equal(nowOf({ ...picture, slice: "cdn=a" }, of({})), null);
  assert.equal(nowOf(null, of({})), null);
});

test("the views of an incident's figure are those that were open, began or finished then", () => {
  const at = (/** @type {string} */ metric, /** @type {any} */ slice = { cdn: "a" }) => viewsAt({ customer: "acme", event: { metric } }, slice, { from_ms: 40_000_000, to_ms: 40_060_000 });
  const cdn = JSON.stringify({ dimension: "cdn", in: ["a"] });
  const open = at("rebuffering")?.value;
  assert.deepEqual([open?.screen, open?.customer, open?.from, open?.to, open?.more], ["views", "acme", "40000000", "126460000", { open: "1" }]);
  assert.deepEqual(open?.filters, [cdn, JSON.stringify({ number: "view_start_ms", below: 40_060_000 })]);
  assert.deepEqual(at("views_started")?.value.filters, [cdn, JSON.stringify({ number: "view_start_ms", at_least: 40_000_000, below: 40_060_000 })]);
  // What has finished is counted up to six minutes after its end.
  const failed = at("playback_failures");
  assert.deepEqual([failed?.value.from, failed?.value.to, failed?.n.filters], ["39640000", "40060000", [cdn]]);
  assert.equal(failed?.which, "views that ended then, or up to 6 min before");
  assert.deepEqual(failed?.value.filters, [cdn, JSON.stringify({ dimension: "playback_failed", in: ["true"] })]);
  // Beacons that were rejected are no views, and no filter says which values have no name.
  assert.deepEqual([at("rejected"), at("rebuffering", { cdn: "(other)" })], [null, null]);
});

test("a figure of a rule has its n, unless it is a count itself", () => {
  assert.deepEqual([baseText("rebuffering", 1_000), baseText("startup_ms", 0), baseText("viewers", 1_000), baseText("rebuffering", null)], ["n 1,000", "n 0", "", ""]);
});

test("viewers of an incident are those of a moment, views all that were counted", () => {
  const found = { of: 1_200, seconds: 60 };
  assert.deepEqual([baseOf("rebuffering", found), baseOf("playback_failures", found), baseOf("viewers", found)], [100, 1_200, 1_200]);
});

test("a usual figure has the n that it is known from, a limit and what was found before has none", () => {
  const of = (/** @type {string} */ metric, /** @type {any} */ usual_of) => usualBaseText(metric, { usual_of });
  assert.deepEqual([of("rebuffering", 120_000), of("playback_failures", 5_400), of("rejected", 9_000)], ["n 10,000 viewer minutes", "n 5,400 views", "n 9,000 beacons"]);
  // A count of each minute is known from minutes.
  assert.deepEqual([of("views_started", 2_160), of("beacons", 720)], ["from 3 h", "from 60 min"]);
  assert.deepEqual([of("rebuffering", null), of("rebuffering", undefined)], ["", ""]);
});

test("the metric of each rule has words in the glossary, but for beacons and what only views have", () => {
  assert.deepEqual(METRICS.filter(({ term = "" }) => !termOf(term)).map(({ name }) => name), ["bad_views", "beacons", "rejected"]);
});

test("when views began is a moment in the words of a filter", () => {
  const began = { number: "view_start_ms", at_least: 1_795_996_800_000, below: 1_795_996_860_000 };
  assert.equal(filterText(JSON.stringify(began), () => "Began", "UTC"), "Began from 30 Nov, 00:00:00 and before 30 Nov, 00:01:00");
  assert.equal(filterText(JSON.stringify({ not: began }), () => "Began", "UTC"), "Began not (from 30 Nov, 00:00:00 and before 30 Nov, 00:01:00)");
  assert.equal(filterText(JSON.stringify({ number: "first_append_ms", below: began.below }), () => "First beacon came", "UTC"), "First beacon came before 30 Nov, 00:01:00");
});
