"""The columns of Views: each that the API has, has a name of its own in words of people."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.local.paths import ROOT
from services.dashboard.arrivals.open_views import AskedOpenViews
from services.query.core.dimensions import DIMENSIONS
from services.query.core.fields import SINGLE
from services.query.core.metrics import METRICS
from services.query.core.resources.search import COUNTS, AskedViews

_CORE = Path(ROOT) / "services/dashboard/static/core"
COLUMNS = (*SINGLE, *COUNTS)
#: Millisecond of 2026-11-28 12:00 UTC.
NOON_MS = 1_795_867_200_000


def computed(what: str) -> Any:
    script = (
        "import { fieldText, fieldTitle, SEARCHED } from './words/view_fields.js';"
        "import { distributedBy, fieldOf } from './figures/behind.js';"
        "const of = (names, what) => Object.fromEntries(names.map((name) => [name, what(name)]));"
        f"console.log(JSON.stringify({what}));"
    )
    command = ["node", "--input-type=module", "-e", script]
    run = subprocess.run(command, cwd=_CORE, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def titles() -> dict[str, str]:
    """As the page looks them up: a title of the field, else of the dimension, else of the metric that is made of it."""
    own = computed(f"of({json.dumps(COLUMNS)}, fieldTitle)")
    fields = computed(f"of({json.dumps(list(METRICS))}, (name) => fieldOf(name) ?? distributedBy(name))")
    by_field = {field: METRICS[metric].title.split(",")[0] for metric, field in fields.items() if field}
    dimensions = {name: one.title for name, one in DIMENSIONS.items()}
    metrics = {name: one.title for name, one in METRICS.items()}
    known = metrics | by_field | dimensions | {name: title for name, title in own.items() if title is not None}
    return {name: known[name] for name in COLUMNS if name in known}


def test_what_is_searched_for_is_asked_of_finished_and_of_open_views() -> None:
    searched = set(computed("SEARCHED.map(({ name }) => name)"))
    assert searched
    for asked in (AskedViews, AskedOpenViews):
        assert searched <= {field.encode_name for field in msgspec.structs.fields(asked)}, asked


def test_each_column_has_words_and_no_name_of_a_field(titles: dict[str, str]) -> None:
    assert [name for name in COLUMNS if name not in titles] == []
    assert [title for title in titles.values() if re.search(r"_|\bms\b|\bbps\b|(?<!\w)[a-z]+[A-Z]", title)] == []


def test_no_two_columns_have_one_name(titles: dict[str, str]) -> None:
    # That a view ended before it began is a field and a dimension, and it is one thing.
    names = [title.lower() for name, title in titles.items() if name != "ebvs"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.thorough
def test_moments_are_read_as_times_and_bounds_as_durations() -> None:
    moments = computed(
        f"of(['view_end_ms', 'first_append_ms', 'last_append_ms'], (name) => fieldText(name, {NOON_MS}, 'UTC'))"
    )
    assert all("12:00" in str(text) for text in moments.values()), moments
    assert computed("of(['startup_ms_max', 'live_latency_ms_avg'], (name) => fieldText(name, 1500, 'UTC'))") == {
        "startup_ms_max": "1.50 s",
        "live_latency_ms_avg": "1.50 s",
    }
