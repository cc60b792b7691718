"""Where a figure of the page leads: to views that the API finds, and that have to do with the figure."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.local.paths import ROOT
from services.query.core import filters
from services.query.core.distributions import DISTRIBUTED
from services.query.core.fields import NUMBERS
from services.query.core.metrics import METRICS, Metric
from shared.measures import COUNTED
from shared.schemas.view import View
from tests.unit.query.parts.recounting import FIGURES, a_view, holds, known

_CORE = Path(ROOT) / "services/dashboard/static/core"
#: Of these no view weighs more than another.
ALIKE = {"views", "viewers"}
#: Worse when lower, and sorted by the time that it is divided by.
BY_TIME = {"request_throughput_bps"}


@pytest.fixture(scope="module")
def led() -> dict[str, dict[str, Any]]:
    """Of each metric the place of the views behind it, that of its n, and what is said of the former."""
    found: dict[str, dict[str, Any]] = _computed(
        "import { distributedBy, viewsBehind, viewsOf, whichBehind } from './figures/behind.js';"
        "const within = { customer: 'acme', filters: [] };"
        "const of = (name) => [name, { behind: viewsBehind(name, within), n: viewsOf(name, within), which: whichBehind(name),"
        " distributed: distributedBy(name) }];",
        f"Object.fromEntries({json.dumps(list(METRICS))}.map(of))",
    )
    return found


def _computed(script: str, what: str) -> Any:
    """What an expression is after a script in the folder of what the page computes."""
    command = ["node", "--input-type=module", "-e", f"{script} console.log(JSON.stringify({what}))"]
    run = subprocess.run(command, cwd=_CORE, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def views() -> list[View]:
    chance = random.Random(5)
    return [a_view(chance, f"v{n}", deleted=False, score_startup=chance.choice([None, 50.0])) for n in range(400)]


def test_the_n_of_every_figure_leads_to_as_many_views(led: dict[str, dict[str, Any]], views: list[View]) -> None:
    for name, metric in METRICS.items():
        assert len(_within(views, led[name]["n"])) == _base(metric, views), name
        assert led[name]["n"]["more"] == {}


def test_a_count_of_views_leads_to_those_and_every_other_figure_to_the_worst_first(
    led: dict[str, dict[str, Any]], views: list[View]
) -> None:
    for name, metric in METRICS.items():
        place, which = led[name]["behind"], led[name]["which"]
        assert bool(which) == (name not in ALIKE), name
        found = _within(views, place)
        if metric.numerator and metric.numerator[0] in COUNTED:
            assert len(found) == _counted(metric.numerator[0], views), name
        elif name == "spi_good_fraction":
            assert found == [view for view in views if view.spi_good is False]
        elif name not in ALIKE:
            _is_sorted_by_the_worst(metric, place)


def test_every_distribution_of_the_api_is_drawn_of_a_metric_and_no_other(led: dict[str, dict[str, Any]]) -> None:
    drawn = {name: one["distributed"] for name, one in led.items() if one["distributed"] is not None}
    assert set(drawn.values()) == set(DISTRIBUTED)
    for name, field in drawn.items():
        assert METRICS[name].unit == DISTRIBUTED[field], name
    for name, metric in METRICS.items():
        field = metric.of_view or metric.field or ""
        assert field not in DISTRIBUTED or drawn[name] == field, name


def test_bounds_of_a_value_are_in_its_unit_where_a_filter_is_read() -> None:
    given = [(field, unit) for field, unit in DISTRIBUTED.items() if unit != "score"]
    assert {unit for _, unit in given} == {"ms", "bps"}
    read = _computed(
        "import { filterText } from './place/filters.js'; import { valueText } from './words/format.js';"
        "const textOf = (number) => filterText(JSON.stringify({ number, at_least: 2500000 }), String);"
        "const of = ([number, unit]) => [textOf(number), valueText(unit, 2500000)];",
        f"{json.dumps(given)}.map(of)",
    )
    assert [text for text, _ in read] == [
        f"{field} is at least {bound}" for (field, _), (_, bound) in zip(given, read, strict=True)
    ]


def _is_sorted_by_the_worst(metric: Metric, place: dict[str, Any]) -> None:
    sort, order = place["more"]["sort"], place["more"]["order"]
    own = {field for part in metric.parts for field in part.fields} | {metric.of_view}
    assert (place["filters"], sort in NUMBERS, sort in own) == ([], True, True), metric.name
    is_lowest = metric.worse == "lower" and metric.name not in BY_TIME
    assert order == ("ascending" if is_lowest else ""), metric.name


def _within(views: list[View], place: dict[str, Any]) -> list[View]:
    """The views that the API lists there."""
    parsed = [filters.parsed(text) for text in place["filters"]]
    return [view for view in views if all(holds(view, one) for one in parsed)]


def _base(metric: Metric, views: list[View]) -> int:
    if metric.field is not None:
        return len(known(views, metric.field))
    if metric.base == "views":
        return len(views)
    return len(known(views, "spi_good" if metric.base == "spi_known_views" else metric.base.removesuffix("_count")))


def _counted(part: str, views: list[View]) -> int:
    if part in {"views", "started"}:
        return int(FIGURES[part](views))
    return sum(bool(getattr(view, COUNTED[part])) for view in views)
