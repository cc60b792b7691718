"""The registry of metrics, view.md's table and the measures of rollups say the same."""

import re
from pathlib import Path

from services.query.core.dimensions import DIMENSIONS
from services.query.core.metrics import METRICS
from services.query.core.parts import OF_SUMS, PARTS
from shared import measures
from shared.schemas.view import View

VIEW_MD = Path(__file__).parents[4] / "docs" / "view.md"
#: Figures of the page's live picture: not of finished views.
LIVE = {"live viewers", "live rebuffering", "live bitrate", "live views started"}
#: What one row of the table names in several words.
SEVERAL = {
    "upscale, downscale percentage": ["upscale percentage", "downscale percentage"],
}


def titles() -> list[str]:
    """The first cells of the table in section Definitions."""
    section = VIEW_MD.read_text().partition("\n## Definitions\n")[2].partition("\n### ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    names = [re.sub(r"(:.*|, per minute)$", "", name) for name in rows[2:]]
    return [part for name in names for part in SEVERAL.get(name, [name])]


def test_every_metric_of_the_table_can_be_asked_for() -> None:
    asked = {metric.title.partition(", ")[0] for metric in METRICS.values()}

    assert set(titles()) - LIVE <= asked


def test_every_metric_that_can_be_asked_for_is_defined_in_the_table() -> None:
    asked = {metric.title.partition(", ")[0] for metric in METRICS.values()}

    assert asked <= set(titles())


def test_no_two_metrics_or_dimensions_have_one_title() -> None:
    for listed in (METRICS, DIMENSIONS):
        titles = [one.title for one in listed.values()]
        assert sorted(set(titles)) == sorted(titles)


def test_parts_that_sums_have_are_the_measures_of_rollups() -> None:
    assert {*measures.COUNTED, *measures.SUMMED} == OF_SUMS
    assert set(PARTS) >= OF_SUMS
    for name, field in measures.SUMMED.items():
        assert PARTS[name].fields == (field,)


def test_parts_and_dimensions_read_fields_of_a_view() -> None:
    known = set(View.__struct_fields__)

    for part in (part for metric in METRICS.values() for part in metric.parts):
        assert set(part.fields) <= known, part
    for dimension in DIMENSIONS.values():
        assert set(dimension.fields) <= known, dimension


def test_names_are_words() -> None:
    for name in (*METRICS, *DIMENSIONS):
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
