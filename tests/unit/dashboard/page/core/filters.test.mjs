// Filters, as they are typed, worded and drawn from clicks, by node's own runner. `test_core.py` runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOfTitles } from "../../../../../services/dashboard/static/core/answers/audience.js";
import { apart, both, bounded, containing, cut, either, filterOf, filterOfSlice, filterText, inverted, liveParts, narrowed, narrowedLive, pastOf, typedValues } from "../../../../../services/dashboard/static/core/place/filters.js";
import { fieldText } from "../../../../../services/dashboard/static/core/words/view_fields.js";
import { holds } from "./meaning.mjs";
import { linesOf } from "../../../../../services/dashboard/static/core/answers/series.js";

test("a click narrows a dimension to one value, and leaves what is excluded", () => {
  const before = [filterOf("cdn", ["akamai"]), filterOf("cdn", ["bad"], true), filterOf("country", ["DE"])];
  assert.deepEqual(narrowed(before, "cdn", "fastly"), [before[1], before[2], filterOf("cdn", ["fastly"])]);
  assert.equal(filterText(filterOf("cdn", ["a", null], true), (name) => name.toUpperCase()), "CDN is not a or (unknown)");
  assert.equal(filterText("no json", String), "no json");
});

test("the figure of a second suspect is looked at without the views of the first", () => {
  const first = { and: [{ dimension: "cdn", in: ["a"] }, { dimension: "asn", in: ["1"] }] };
  const second = { and: [{ dimension: "country", in: ["DE"] }, { not: first }] };
  assert.deepEqual(apart(first), [filterOf("cdn", ["a"]), filterOf("asn", ["1"])]);
  assert.deepEqual(apart(second), [filterOf("country", ["DE"]), JSON.stringify({ not: first })]);
  assert.equal(filterText(apart(second)[1], String), "not (cdn is a and asn is 1)");
  assert.deepEqual(apart({ dimension: "cdn", in: [null] }), [filterOf("cdn", [null])]);
});

test("several values are typed with a sign between them, and a title that has it is chosen whole", () => {
  assert.deepEqual(typedValues(" a | (unknown)|b ", ["a"]), ["a", null, "b"]);
  assert.deepEqual(typedValues("News | Tuesday", ["News | Tuesday"]), ["News | Tuesday"]);
  assert.deepEqual([typedValues("(unknown)", ["(unknown)"]), typedValues("", [])], [[null], []]);
});

test("live figures are of what is counted of the filters: of more than two, of any two", () => {
  const [cdn, asn, version] = [filterOf("cdn", ["fastly"]), filterOf("asn", ["64500"]), filterOf("player_version", [null])];
  const slices = (/** @type {string[]} */ filters, /** @type {string[] | null} */ counted) => liveParts(filters, counted).map((one) => one.slice);
  assert.deepEqual(slices([cdn], null), ["cdn=fastly"]);
  assert.deepEqual(slices([version], null), ["player_version=(unknown)"]);
  assert.deepEqual(slices([cdn, asn], null), ["cdn,asn=fastly\u001f64500"]);
  assert.deepEqual(liveParts([cdn, asn, version], null).map((one) => one.name), ["cdn,asn", "cdn,player_version", "asn,player_version"]);
  assert.deepEqual(liveParts([cdn, asn, version], null)[1].filters, [cdn, version]);
  // What is not counted, or names no single value, is left out.
  const others = [filterOf("error_code", ["3016"]), filterOf("country", ["DE", "FR"]), filterOf("country", ["DE"], true), "no json"];
  assert.deepEqual(slices([...others, cdn, version], ["cdn", "asn", "country"]), ["cdn=fastly"]);
  assert.deepEqual([slices(others, ["cdn", "country"]), slices([cdn], []), slices([], null)], [[], [], []]);
  // Nobody is within two values of one dimension: each can be looked at.
  assert.deepEqual(slices([cdn, filterOf("cdn", ["akamai"])], null), ["cdn=fastly", "cdn=akamai"]);
});

test("a title that live figures have cut is found among finished views, and its viewers under the same filter", () => {
  const title = `The film ${"\u{1f600}".repeat(60)} ends`;
  const short = [...title].slice(0, 64).join("");
  const clicked = narrowedLive([filterOf("cdn", ["a"]), filterOf("video_title", ["Sintel"])], "video_title", short);
  assert.deepEqual(clicked, [filterOf("cdn", ["a"]), JSON.stringify({ dimension: "video_title", contains: short })]);
  assert.ok(holds(clicked, { cdn: "a", video_title: title }));
  assert.deepEqual(liveParts(clicked, null).map((one) => one.slice), [`cdn,video_title=a\u001f${short}`]);
  assert.deepEqual(liveParts([filterOf("video_title", [title])], null).map((one) => one.slice), [`video_title=${short}`]);
  assert.equal(filterOfSlice(`video_title=${short}`), clicked[1]);
  // Another click takes its place, also where it names a group of finished views; a part of a text stays a filter of its own.
  assert.deepEqual(narrowedLive(clicked, "video_title", "Sintel"), [clicked[0], filterOf("video_title", ["Sintel"])]);
  assert.deepEqual(narrowed(clicked, "video_title", null), [clicked[0], filterOf("video_title", [null])]);
  const part = JSON.stringify({ dimension: "video_title", contains: "film" });
  assert.deepEqual([narrowedLive([part], "cdn", "(unknown)"), liveParts([part], null)], [[part, filterOf("cdn", [null])], []]);
  // What somebody wrote into an address.
  assert.deepEqual(liveParts(["null", "[]", JSON.stringify({ dimension: "asn", in: [7] })], null).map((one) => one.slice), ["asn=7"]);
});

test("a live slice of one dimension is a filter, whatever its value holds", () => {
  assert.deepEqual([filterOfSlice("video_title=a=b"), filterOfSlice("cdn=(unknown)")], [filterOf("video_title", ["a=b"]), filterOf("cdn", [null])]);
  assert.deepEqual([pastOf("cdn,asn=(unknown)\u001f(unknown)"), pastOf("cdn,asn=(other)\u001f(other)"), pastOf("cdn=(unknown)"), pastOf("")], [["cdn,asn", "(unknown)"], ["cdn,asn", "(other)"], ["cdn", "(unknown)"], ["", ""]]);
  assert.deepEqual([cut(""), cut("cdn,asn=a=b\u001fc")], [["", ""], ["cdn,asn", "a=b\u001fc"]]);
});

test("alternatives of several conditions each are made one condition after the other", () => {
  const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => filterOf(name, ["1"]));
  const made = both(either(both(a, b), c), d);
  assert.equal(filterText(made, (name) => name), "(a is 1 and b is 1) or (c is 1 and d is 1)");
  assert.equal(filterText(both(filterOf("a", ["1"], true), b), (name) => name), "a is not 1 and b is 1");
});

test("a filter may be a part of a text, or a bound of a number in the unit that is typed", () => {
  const title = (name) => name;
  assert.equal(filterText(containing("video_title", "cup", false), title), "video_title contains cup");
  assert.equal(filterText(containing("video_title", "cup", true), title), "video_title does not contain cup");
  assert.deepEqual(JSON.parse(bounded("startup_ms", "at_least", 10)), { number: "startup_ms", at_least: 10_000 });
  assert.deepEqual(JSON.parse(bounded("avg_bitrate_bps", "below", 0.7)), { number: "avg_bitrate_bps", below: 700_000 });
  assert.equal(filterText(bounded("startup_ms", "at_least", 10), title), "startup_ms is at least 10.0 s");
});

test("filters are turned round and given alternatives, and are read as what they say", () => {
  const fastly = filterOf("cdn", ["fastly"]);
  const either_ = either(either(fastly, filterOf("country", ["DE", "FR"], true)), filterOf("asn", [null]));
  assert.equal(filterText(either_, String), "cdn is fastly or country is not DE or FR or asn is (unknown)");
  assert.equal(filterText(inverted(either_), String), "not (cdn is fastly or country is not DE or FR or asn is (unknown))");
  assert.equal(inverted(inverted(either_)), either_);
  assert.equal(filterText(either(inverted(either_), fastly), String), "not (cdn is fastly or country is not DE or FR or asn is (unknown)) or cdn is fastly");
  const nested = JSON.stringify({ and: [{ or: [JSON.parse(fastly), { dimension: "error_code", contains: "Net" }] }, { number: "startup_ms", at_least: 5000 }] });
  assert.equal(filterText(nested, String), "(cdn is fastly or error_code contains Net) and startup_ms is at least 5.00 s");
  const rows = [{ cdn: "fastly", country: "DE" }, { cdn: "akamai", country: "DE", asn: 1 }, { cdn: "akamai", country: "US", asn: 1 }, { cdn: "akamai", country: "DE" }];
  assert.deepEqual(rows.map((row) => holds([either_], row)), [true, false, true, true]);
  assert.deepEqual(rows.map((row) => holds([inverted(either_)], row)), [false, true, false, false]);
  assert.deepEqual([{ cdn: "fastly", startup_ms: 4999 }, { error_code: "a net b", startup_ms: 5000 }, { cdn: "fastly" }].map((row) => holds([nested], row)), [false, true, false]);
});

test("a value of blanks alone has a word wherever it is a label, and its filter is exact", () => {
  assert.equal(fieldText("video_title", "  ", "UTC"), "(blank)");
  assert.equal(fieldText("custom.plan", " \t", "UTC"), "(blank)");
  assert.equal(fieldText("video_title", " Sintel ", "UTC"), " Sintel ");
  const [filter] = narrowed([], "video_title", "  ");
  assert.deepEqual(JSON.parse(filter), { dimension: "video_title", in: ["  "] });
  assert.equal(filterText(filter, (name) => name), "video_title is (blank)");
  assert.equal(filterText(filterOf("video_title", [null, "  "]), (name) => name), "video_title is (unknown) or (blank)");
  const groups = [{ kind: "value", key: ["  "], labels: ["  "], n: 1, points: [], metrics: {} }];
  assert.equal(linesOf({ points: [], groups }, "views", "").lines[0].title, "(blank)");
  assert.equal(linesOfTitles({ at_ms: [], titles: [{ video_id: " ", title: "  ", views: [] }] }).lines[0].title, "(blank)");
});
