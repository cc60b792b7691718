"""What Integration finds missing: every metric is named, and every client is asked for what it can report."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from deploy.local.paths import ROOT
from services.query.core.metrics import METRICS
from services.query.core.resources.search import COUNTS, AskedViews, understood
from shared.schemas.rejected import Reason
from tests.unit.query.parts.recounting import T0_MS

_SCRIPT = """import { adviceOf, NEEDED, NEEDS_NONE, READ } from './arriving/arrivals.js';
const advice = Object.fromEntries(%s.map((reason) => [reason, adviceOf(reason)]));
console.log(JSON.stringify({ NEEDED, NEEDS_NONE, READ, advice }))"""
#: Columns of the table "What each client can report".
CLIENTS = ("mux", "cmcd", "epas", "native")


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    command = ["node", "--input-type=module", "-e", _SCRIPT % json.dumps(get_args(Reason))]
    core = Path(ROOT) / "services/dashboard/static/core"
    run = subprocess.run(command, cwd=core, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def reported() -> dict[str, list[str]]:
    """The clients that can report each field, or of which the collector knows it, as docs/view.md says."""
    text = (Path(ROOT) / "docs/view.md").read_text().partition("## What each client can report")[2]
    found = {}
    for names, *known in re.findall(r"^\| (`.*?) \| (.) \| (.) \| (.) \| (.) \|$", text.partition("\n## ")[0], re.M):
        clients = [client for client, one in zip(CLIENTS, known, strict=True) if one != "–"]
        found |= dict.fromkeys(re.findall(r"`(\w+)`", names), clients)
    return found


def test_each_metric_is_named_by_one_field_or_needs_none(page: dict[str, Any]) -> None:
    named = [metric for one in page["NEEDED"] for metric in one.get("metrics", [])]
    assert sorted([*named, *page["NEEDS_NONE"]]) == sorted({re.sub(r"_p\d+$", "", name) for name in METRICS})


def test_a_field_is_asked_of_the_clients_that_can_report_it(page: dict[str, Any]) -> None:
    table = reported()
    for one in page["NEEDED"]:
        field = {"viewer": "viewer_id"}.get(one["name"], COUNTS.get(one["name"], one["name"]))
        assert one.get("clients", list(CLIENTS)) == table[field], one["name"]
        assert one["loses"]


def test_the_fields_are_columns_of_a_search(page: dict[str, Any]) -> None:
    asked = AskedViews(columns=",".join(page["READ"]))
    search = understood(asked, lambda _: (), T0_MS, days_max=400)  # type: ignore[arg-type, return-value]
    assert set(page["READ"]) <= set(search.columns)


def test_each_reason_of_a_rejection_says_what_to_do(page: dict[str, Any]) -> None:
    assert [reason for reason, words in page["advice"].items() if not words] == []
    # Each is another: which one applies is not to be guessed.
    assert len(set(page["advice"].values())) == len(get_args(Reason))
