// The reader of the API's document, by node's own runner, over the document that this project makes. `test_core.py` runs it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { membersOf, operationsOf, partsOf, resolved, wordsOf } from "../../../../services/dashboard/static/core/reference.js";

const api = JSON.parse(readFileSync(process.env.DOCUMENT, "utf8"));

test("every operation is shown once, under an anchor of its own", () => {
  const shown = [...operationsOf(api).values()].flat();
  const expected = Object.values(api.paths).flatMap((item) => Object.keys(item));
  assert.equal(shown.length, expected.length);
  assert.equal(new Set(shown.map(({ anchor }) => anchor)).size, shown.length);
});

test("a schema is said in words", () => {
  assert.equal(wordsOf({ type: "integer", minimum: 1, maximum: 9 }), "integer, ≥ 1, ≤ 9");
  assert.equal(wordsOf({ anyOf: [{ type: "string" }, { type: "null" }] }), "string or null");
  assert.equal(wordsOf({ type: "array", items: { $ref: "#/components/schemas/View" } }), "list of View");
  assert.equal(wordsOf({ enum: ["a", ""] }), '"a", ""');
  assert.equal(wordsOf(undefined), "anything");
});

test("names in a text of the document are code", () => {
  assert.deepEqual(partsOf("`next` is the `cursor`."), [{ text: "next", isCode: true }, { text: " is the ", isCode: false }, { text: "cursor", isCode: true }, { text: ".", isCode: false }]);
  assert.deepEqual(partsOf(""), []);
});

test("members of an answer are those of its schema", () => {
  const of = { $ref: "#/components/schemas/ViewList" };
  assert.deepEqual(membersOf(api, of).map(({ name }) => name), Object.keys(resolved(api, of).properties));
  assert.ok(membersOf(api, of).find(({ name }) => name === "views").isRequired);
  assert.deepEqual(membersOf(api, { type: "string" }), []);
});
