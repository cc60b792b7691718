// Formulas in words, of the glossary and of the API's metrics (file METRICS). `test_core.py` runs it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inWords } from "../../../../services/dashboard/static/core/words/formulas.js";
import { GLOSSARY } from "../../../../services/dashboard/static/core/words/glossary.js";

const FORMULAS = [...GLOSSARY.map((one) => one.formula), ...JSON.parse(readFileSync(process.env.METRICS, "utf8"))];

test("no formula keeps a name of a field, or a sign that nobody explains", () => {
  assert.ok(FORMULAS.length > 80);
  for (const formula of FORMULAS) assert.doesNotMatch(inWords(formula), /[a-z]_[a-z]|\bV\b|Σ|ebvs|8,000|60,000/, formula);
});

test("a formula says in words what is added up and divided", () => {
  const words = {
    "ebvs / V": "exits before video start / all views",
    "Σ rebuffer_ms / Σ watch_ms": "sum of rebuffering time / sum of watch time",
    "Σ rebuffer_count / (Σ watch_ms / 60,000)": "sum of rebuffer events / sum of watch time in minutes",
    "8,000 · Σ req_bytes / Σ req_time_ms": "sum of bits of requests / sum of time of requests",
    "median, p95 of startup_ms": "median, p95 of start-up time",
    "distinct viewers that have an id": "distinct viewers that have an id",
  };
  for (const [formula, said] of Object.entries(words)) assert.equal(inWords(formula), said);
});
