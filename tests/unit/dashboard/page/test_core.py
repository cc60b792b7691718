"""What the page computes: node runs the tests of `static/core`."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from services.dashboard.live.slices import CUSTOMERS_MAX
from services.dashboard.page.routes import STATIC
from services.processor.applications.video_views.bounds import TIMELINE_EVENTS_MAX
from services.query.core.fields import NUMBERS
from services.query.core.filters import Filter
from services.query.core.limits import GROUPS_MAX, POINTS_MAX, SERIES_MAX
from services.query.core.metrics import METRICS
from services.query.core.resources.titles.concurrency import CURVES_MAX
from services.query.core.resources.titles.titles import TITLES_MAX
from services.query.http.app import OPERATIONS
from services.rim.http.openapi import document
from shared.schemas.live import SLICE_VALUE_CHARS_MAX

SECONDS_MAX = 60
#: Runs files of tests in one process: `node --test` starts one for each.
TESTS = """
import { pathToFileURL } from "node:url";
for (const file of process.argv.slice(1)) await import(pathToFileURL(file).href);
"""


@pytest.mark.thorough
def test_the_page_computes_what_its_own_tests_say() -> None:
    files = sorted((Path(__file__).parent / "core").rglob("*.test.mjs"))
    assert files
    _run(files, {})


@pytest.mark.parametrize(
    ("module", "name", "most"),
    [
        ("core/live/slices.js", "CUSTOMERS_MAX", CUSTOMERS_MAX),
        ("core/view/timeline.js", "EVENTS_MAX", TIMELINE_EVENTS_MAX),
        ("core/answers/audience.js", "CURVES_MAX", CURVES_MAX),
        ("core/answers/groups.js", "ROWS_MAX", GROUPS_MAX),
        ("core/place/ranges.js", "POINTS_MAX", POINTS_MAX),
        ("screens/titles/titles.js", "LISTED_MAX", TITLES_MAX),
        ("core/place/filters.js", "SLICE_CHARACTERS_MAX", SLICE_VALUE_CHARS_MAX),
    ],
)
def test_the_page_knows_the_bounds_of_others_as_they_are(module: str, name: str, most: int) -> None:
    found = re.search(rf"^(?:export )?const {name} = ([\d_]+);$", (STATIC / module).read_text(), re.MULTILINE)
    assert found is not None
    assert int(found[1]) == most


def test_filters_of_numbers_are_of_fields_that_the_api_bounds() -> None:
    names = re.findall(r"^  (\w+): \{ unit:", (STATIC / "core/place/filters.js").read_text(), re.MULTILINE)
    assert len(names) > 5
    assert set(names) <= set(NUMBERS)


def test_shares_of_views_are_judged_by_their_interval() -> None:
    """Those that are worse one way and count views above and below: of others n says nothing about how sure they are."""
    found = re.search(r"const OF_VIEWS = new Set\(\[(.*)\]\);", (STATIC / "core/figures/figures.js").read_text())
    assert found is not None
    of_views = {
        one.name for one in METRICS.values() if one.unit == "fraction" and one.worse and one.denominator == (one.base,)
    }
    assert set(re.findall(r'"(\w+)"', found[1])) == of_views | {"live_rebuffering_fraction"}


@pytest.mark.parametrize("name", ["LINES_MAX", "MULTIPLES_MAX"])
def test_the_page_asks_for_no_more_lines_than_the_api_has(name: str) -> None:
    found = re.search(rf"{name} = (\d+);", (STATIC / "core/answers/exported.js").read_text())
    assert found is not None
    assert int(found[1]) <= SERIES_MAX


@pytest.mark.thorough
def test_the_reader_shows_the_whole_document(tmp_path: Path) -> None:
    (tmp_path / "document").write_bytes(msgspec.json.encode(document(OPERATIONS, [Filter])))
    _run([Path(__file__).parent / "reference.test.mjs"], {"DOCUMENT": str(tmp_path / "document")})


def test_every_formula_can_be_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "metrics").write_bytes(msgspec.json.encode([one.formula for one in METRICS.values()]))
    _run([Path(__file__).parent / "formulas.test.mjs"], {"METRICS": str(tmp_path / "metrics")})


def _run(files: Sequence[Path], environ: Mapping[str, str]) -> None:
    run = subprocess.run(
        ["node", "--test-reporter=tap", "--input-type=module", "--eval", TESTS, *map(str, files)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "# fail 0" in run.stdout
    assert "# tests 0" not in run.stdout
