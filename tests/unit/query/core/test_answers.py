"""What DuckDB answers over views is what a recount in Python says: any question, over generated views."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.query.core import answer as answers
from services.query.core.answer import About, Answer, Breakdown, Distribution, Figure, Span, Timeseries
from services.query.core.question import Asked, AskedBreakdown, AskedDistribution, AskedSeries, Question
from services.query.core.sql import figures
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.asking import a_filter, asked, expect, question
from tests.unit.query.parts.reading import in_memory
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, a_view

ABOUT = About(Span(0, 0), None, [], None, is_exact=True, has_hot_rows=True)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path, threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


def answered(engine: Engine, one: Question, views: list[View]) -> Answer:
    statement, tables = in_memory(one, views, figures.answering(one))
    return answers.composed(one, asyncio.run(engine.ask(statement, tables)), ABOUT)


@pytest.mark.parametrize("seed", range(12))
def test_any_question_over_any_views_is_answered_as_a_recount_says(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    views = [a_view(chance, f"view-{number}") for number in range(chance.choice([0, 1, 30, 300]))]
    for _ in range(8):
        one = question(asked(chance))
        expect(one, answered(engine, one, views), views)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_any_filter_holds_of_the_views_that_a_recount_says(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    views = [a_view(chance, f"view-{number}") for number in range(300)]
    for depth in (0,) * 60 + (2,) * 20:
        of = msgspec.json.encode(a_filter(chance, depth)).decode()
        one = question(Asked(metrics="views", from_=str(T0_MS - 2 * DAY_MS), to=str(T0_MS + 6 * DAY_MS), filter=of))
        expect(one, answered(engine, one, views), views)


@pytest.mark.parametrize("compare", ["previous", str(T0_MS - DAY_MS), str(T0_MS + 3 * DAY_MS)])
def test_a_distribution_stands_beside_that_of_another_range(engine: Engine, compare: str) -> None:
    views = [a_view(random.Random(number), f"view-{number}") for number in range(300)]
    given = {"from_": str(T0_MS + DAY_MS), "to": str(T0_MS + 2 * DAY_MS)}
    one = question(AskedDistribution(of="startup_ms", compare=compare, **given))
    own = answered(engine, one, views)
    other = answers.beside(one, own)
    assert other is not None
    found = answers.compared(other, own, answered(engine, other, views))
    assert isinstance(found, Distribution)
    assert found.compared is not None
    expect(one, found, views)
    expect(other, found.compared, views)
    assert other.range.from_ms == (T0_MS if compare == "previous" else int(compare))


@pytest.mark.parametrize("metrics", ["views", "views,startup_ms_p50"])
@pytest.mark.parametrize(("shape", "given"), [(AskedBreakdown, {"limit": 1}), (AskedSeries, {"bucket": "day"})])
def test_values_that_were_unknown_before_are_of_no_other_group_where_now_all_are_known(
    engine: Engine, shape: type[AskedBreakdown | AskedSeries], given: dict[str, Any], metrics: str
) -> None:
    """In one statement for sums and in one for percentiles."""
    cdns = {1: ["akamai"] * 9 + ["fastly"] * 2, 0: ["akamai"] * 8 + ["fastly"] * 3 + [None] * 5}
    views = [
        a_view(random.Random(number), f"{day} {number}", cdn=cdn, deleted=False, **_at(T0_MS + day * DAY_MS))
        for day, of_day in cdns.items()
        for number, cdn in enumerate(of_day)
    ]
    within = {"from_": str(T0_MS + DAY_MS), "to": str(T0_MS + 2 * DAY_MS), "compare": "previous"}
    one = question(shape(by="cdn", metrics=metrics, **within, **given))
    own = answered(engine, one, views)
    other = answers.beside(one, own)
    assert other is not None
    found = answers.compared(other, own, answered(engine, other, views))

    if isinstance(found, Breakdown):
        listed = [(group.labels[0], group.n, group.compared["views"].value) for group in found.groups if group.compared]
        assert listed == [("akamai", 9, 8), ("(other)", 2, 3)]
    else:
        assert isinstance(found, Timeseries)
        assert found.compared is not None
        lines = {group.labels[0]: group.n for group in found.compared.groups or ()}
        assert lines == {"akamai": 8, "fastly": 3, "(unknown)": 5}


@pytest.mark.parametrize("metrics", ["views,startup_ms_p50", "views,viewers"])
def test_a_value_that_no_view_had_in_the_other_range_has_its_zeros_there(engine: Engine, metrics: str) -> None:
    views = [
        a_view(random.Random(number), f"view-{number}", cdn=cdn, deleted=False, **_at(T0_MS + day * DAY_MS))
        for number, (day, cdn) in enumerate([(0, "akamai"), (1, "akamai"), (1, "fastly"), (1, None), (1, "x")])
    ]
    within = {"from_": str(T0_MS + DAY_MS), "to": str(T0_MS + 2 * DAY_MS), "compare": "previous", "metrics": metrics}
    found = beside(engine, question(AskedBreakdown(by="cdn", **within)), views)
    assert isinstance(found, Breakdown)
    last = metrics.split(",")[1]
    nothing = {"views": Figure(0, 0), last: Figure(0 if last == "viewers" else None, 0)}
    before = {group.labels[0]: group.compared for group in found.groups}
    assert {name for name, figures in before.items() if figures == nothing} == {"fastly", "x", "(unknown)"}
    assert before["akamai"] != nothing
    short = beside(engine, question(AskedBreakdown(by="cdn", limit=1, **within)), views)
    assert isinstance(short, Breakdown)
    assert [(one.n, one.compared) for one in short.groups if one.kind == "other"] == [(2, nothing)]

    series = beside(engine, question(AskedSeries(by="cdn", bucket="hour", **within)), views)
    assert isinstance(series, Timeseries)
    assert series.compared is not None
    (line,) = [line for line in series.compared.groups or () if line.labels == ["fastly"]]
    assert (line.n, [(point.n, point.metrics) for point in line.points or ()]) == (0, [(0, nothing)] * 24)
    assert [point.from_ms for point in line.points or ()] == [T0_MS + hour * 3_600_000 for hour in range(24)]


def beside(engine: Engine, one: Question, views: list[View]) -> Answer:
    """The answer with the one beside it."""
    own = answered(engine, one, views)
    other = answers.beside(one, own)
    assert other is not None
    return answers.compared(other, own, answered(engine, other, views))


def _at(at_ms: int) -> dict[str, int]:
    return dict.fromkeys(("view_start_ms", "view_end_ms", "first_append_ms", "last_append_ms"), at_ms)


def test_the_cdns_of_166_views_of_which_25_have_none_add_up_to_166(engine: Engine) -> None:
    cdns = ["akamai"] * 80 + ["fastly"] * 40 + ["cloudfront"] * 21 + [None] * 25
    views = [
        a_view(random.Random(number), f"view-{number}", cdn=cdn, customer_id="acme", deleted=False)
        for number, cdn in enumerate(cdns)
    ]
    range_ = {"customer": "acme", "from_": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}
    one = question(AskedBreakdown(metrics="views", by="cdn", limit=2, order_by="views", order="descending", **range_))
    answer = answered(engine, one, views)
    assert isinstance(answer, Breakdown)
    found = [(group.labels, group.n, group.metrics["views"].value) for group in answer.groups]
    # "(other)" is what the limit leaves over.
    assert found == [(["akamai"], 80, 80), (["fastly"], 40, 40), (["(unknown)"], 25, 25), (["(other)"], 21, 21)]
    assert answer.n == sum(group.n for group in answer.groups) == 166
