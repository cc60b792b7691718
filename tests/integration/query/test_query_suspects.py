"""Suspects from a warehouse and hot rows: the cohort that was made worse is named, with figures that other paths give too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import to_builtins

from deploy.local.postgres import Postgres as Server
from services.query import thresholds
from services.query.core.customers import EVERY_CUSTOMER, Customers
from services.query.core.suspects.answer import Looked, Suspects
from services.query.memory import Loaded, Memory
from services.query.suspecting import Suspecting
from shared.statistics.suspects.suspect import LINE
from tests.integration.query.querying import Installation, installed
from tests.integration.query.suspected_views import (
    FROM_MS,
    LOWER,
    NOW,
    USUAL,
    WORSE,
    asked,
    figures,
    named,
    suspected,
    viewed,
    with_hot_hour,
)
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS

pytestmark = pytest.mark.integration

#: Values whose threshold the baseline gives.
BY_DEFAULT = ("bitrate_bps", "experience_score", "request_throughput_bps", "startup_ms_p95")
#: So few views with events are in a sample that leaves the cohort below the line, and a wider one before it.
BAD_NEAR = 20


@pytest.fixture(scope="module")
def installation(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with with_hot_hour(postgres, tmp_path_factory.mktemp("query")) as made:
        yield made


def rounded(found: Suspects) -> Any:
    """An answer without the last digits of its sums: DuckDB gives rows in any order."""

    def of(one: Any) -> Any:
        if isinstance(one, dict):
            return {name: of(value) for name, value in one.items()}
        if isinstance(one, list):
            return [of(value) for value in one]
        return f"{one:.9g}" if isinstance(one, float) else one

    return of(to_builtins(found))


def counted_loads(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> list[pa.Table]:
    """The rows of each question that is answered from columns in memory from now on."""
    found: list[pa.Table] = []
    loaded = memory.loaded

    async def counting(*given: Any) -> Loaded | None:
        one = await loaded(*given)
        found.extend([] if one is None else [one.rows])
        return one

    monkeypatch.setattr(memory, "loaded", counting)
    return found


@pytest.mark.parametrize(
    "given",
    [
        {"metric": "playback_failure_fraction"},
        {"metric": "rebuffer_fraction"},
        {"metric": "rebuffers_per_minute"},
        {"metric": "startup_ms", "above_ms": "4000"},
        {"metric": "startup_ms"},
        {"metric": "startup_ms_p95"},
        {"metric": "rebuffer_count"},
        {"metric": "dropped_frames"},
        *({"metric": name} for name in LOWER),
        {"metric": "bitrate_bps", "below": "1000000"},
        {"metric": "experience_score", "below": "40.5", "against": "rest"},
    ],
)
async def test_the_cohort_that_became_worse_is_the_first_suspect_by_any_metric(
    installation: Installation, given: dict[str, str]
) -> None:
    found = await suspected(installation, **given)

    assert named(found.suspects[0]) == WORSE
    assert len(found.suspects) == 1
    is_known_of_all = given["metric"] not in (*LOWER, "startup_ms", "startup_ms_p95", "dropped_frames")
    assert not is_known_of_all or found.read == Looked(NOW + USUAL, NOW + USUAL)


async def test_figures_are_those_of_the_other_paths_under_the_suspects_filter(installation: Installation) -> None:
    (suspect,) = (await suspected(installation)).suspects
    condition = {"and": [{"dimension": name, "in": [value]} for name, value in WORSE.items()]}

    assert (suspect.figure, suspect.usual) == await figures(installation, condition)
    assert (suspect.rest, suspect.rest_usual) == await figures(installation, {"not": condition})


async def test_a_sample_names_the_same_cohort_and_all_views_give_its_figures(installation: Installation) -> None:
    whole, sampled = await suspected(installation), await suspected(installation, bad_max=250)

    assert sampled.read.views == NOW + USUAL
    assert sampled.read.sampled < (NOW + USUAL) / 2
    assert named(sampled.suspects[0]) == WORSE
    assert sampled.suspects[0].figure == whole.suspects[0].figure
    assert sampled.suspects[0].excess == pytest.approx(whole.suspects[0].excess, rel=0.05)


@pytest.fixture(scope="module")
def nearly_settled(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The hour and the day before it are in the warehouse, but for the last hour of that day, which is hot."""
    with installed(postgres, tmp_path_factory.mktemp("settled")) as made:
        views = [viewed(number) for number in range(NOW + USUAL)]
        is_hot = [FROM_MS - HOUR_MS <= view.view_end_ms < FROM_MS for view in views]
        made.in_warehouse([view for view, hot in zip(views, is_hot, strict=True) if not hot])
        made.keep_from(FROM_MS // HOUR_MS - 48)
        made.in_postgres([view for view, hot in zip(views, is_hot, strict=True) if hot])
        yield made


@pytest.mark.parametrize(
    ("customers", "given"),
    [
        (EVERY_CUSTOMER, {"metric": "playback_failure_fraction"}),
        (EVERY_CUSTOMER, {"dimensions": "asn,cdn,player_version,playback_failed,customer"}),
        (EVERY_CUSTOMER, {"metric": "startup_ms", "above_ms": "4000"}),
        (EVERY_CUSTOMER, {"filter": '{"not": {"dimension": "asn", "in": ["3209", "none"]}}'}),
        (EVERY_CUSTOMER, {"filter": '{"dimension": "cdn", "in": ["fastly", null]}'}),
        (Customers(but=("acme",)), {"metric": "rebuffers_per_minute"}),
        (Customers(("acme", "nobody")), {"metric": "playback_failure_fraction"}),
        (EVERY_CUSTOMER, {"from": str(FROM_MS + 1), "baseline_from": str(FROM_MS + 1 - DAY_MS)}),
        (EVERY_CUSTOMER, {"metric": "rebuffer_fraction", "against": "rest"}),
        (EVERY_CUSTOMER, {"metric": "bitrate_bps", "below": "1900000"}),
        (EVERY_CUSTOMER, {"metric": "spi_good_fraction"}),
        *((EVERY_CUSTOMER, {"metric": name}) for name in BY_DEFAULT),
    ],
)
@pytest.mark.parametrize("bad_max", [150, BAD_NEAR])
async def test_columns_in_memory_give_the_answer_of_files(
    nearly_settled: Installation,
    customers: Customers,
    given: dict[str, str],
    bad_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Some of the views say the threshold, if they are to.
    monkeypatch.setattr(thresholds, "VALUES_MAX", 1_000)
    from_files = await suspected(nearly_settled, customers=customers, bad_max=bad_max, **given)
    assert from_files.read.sampled < from_files.read.views
    assert [source.name for source in from_files.about.sources] == ["warehouse", "hot_rows"]

    question = asked(customers=customers, **given)
    async with nearly_settled.remembering() as (answering, memory):
        suspecting = Suspecting(answering, bad_max=bad_max, good_max=10 * bad_max)
        await suspecting.suspects(question)
        await memory.read_all()
        loaded = counted_loads(monkeypatch, memory)
        from_memory = await suspecting.suspects(question)

    assert len(loaded) == 2, "now and usually: for the threshold and the search together"
    assert loaded[1].num_rows > 0
    assert rounded(from_memory) == rounded(from_files)


async def test_a_question_by_what_no_file_has_is_answered_from_files(nearly_settled: Installation) -> None:
    """The day is in the names of folders alone."""
    given = {"filter": json.dumps({"number": "day", "at_least": 0})}
    from_files = await suspected(nearly_settled, bad_max=200, **given)
    async with nearly_settled.remembering() as (answering, memory):
        suspecting = Suspecting(answering, bad_max=200, good_max=2_000)
        for _ in range(2):
            assert rounded(await suspecting.suspects(asked(**given))) == rounded(from_files)
            await memory.read_all()
    assert from_files.figure.n == NOW


async def test_what_a_sample_leaves_near_the_line_is_a_suspect_by_all_views(installation: Installation) -> None:
    found = await suspected(installation, bad_max=BAD_NEAR)

    assert [named(one) for one in found.suspects] == [WORSE]
    whole = (await suspected(installation)).suspects[0]
    assert found.suspects[0].figure == whole.figure
    assert found.suspects[0].surprise > LINE


async def test_possible_ones_come_after_suspects_and_have_none_of_their_views(installation: Installation) -> None:
    found = await suspected(installation)

    assert [named(one) for one in found.suspects] == [WORSE]
    assert found.possible
    for one in found.possible:
        in_both = {"and": [to_builtins(one.filter), to_builtins(found.suspects[0].filter)]}
        assert (await figures(installation, in_both))[0].n == 0
    for bad_max in (10**6, 250):
        assert (await suspected(installation, bad_max=bad_max, limit="1")).possible == []


async def test_nobody_is_suspect_under_a_filter_that_leaves_the_cohort_out(installation: Installation) -> None:
    found = await suspected(installation, filter='{"not": {"dimension": "asn", "in": ["3320"]}}')

    assert found.suspects == []
    assert found.figure.n == sum(viewed(number).asn != 3320 for number in range(NOW))


async def test_views_of_other_customers_are_not_read(installation: Installation) -> None:
    found = await suspected(installation, customers=Customers(("other",)))

    assert found.figure.n == NOW / 3
    assert found.about.customers == ["other"]
    assert found.read.views == (NOW + USUAL) / 3


async def test_an_hour_without_views_has_no_suspects_and_no_figure(installation: Installation) -> None:
    found = await suspected(installation, **{"from": str(FROM_MS + HOUR_MS), "to": str(FROM_MS + 2 * HOUR_MS)})

    assert (found.figure.value, found.figure.n, found.suspects) == (None, 0, [])


async def test_who_asks_for_several_metrics_of_a_range_is_answered_as_if_each_were_asked_alone(
    installation: Installation,
) -> None:
    metrics = (
        *("rebuffer_fraction", "playback_failure_fraction", "startup_ms", "startup_ms_p95", "bitrate_bps"),
        *("experience_score", "exit_before_start_fraction", "spi_good_fraction"),
    )
    async with installation.answering() as answering:
        one = Suspecting(answering)
        together = [await one.suspects(asked(metric=metric)) for metric in metrics]
        short, long = [
            await one.suspects(asked(metric="watch_ms", **side))
            for side in ({"below": "600001"}, {"above_ms": "600001"})
        ]
        narrowed = await one.suspects(asked(filter='{"not": {"dimension": "asn", "in": ["3320"]}}'))
        of_acme = await one.suspects(asked(customers=Customers(("acme",))))

    for metric, found in zip(metrics, together, strict=True):
        alone = await suspected(installation, metric=metric)
        assert (found.figure, found.usual, found.suspects) == (alone.figure, alone.usual, alone.suspects)
    assert (short.figure.value, long.figure.value) == (1, 0)
    # What is kept of one question is of no other one's views.
    assert narrowed.suspects == []
    assert 0 < of_acme.read.views < together[1].read.views


async def test_views_that_finish_between_two_questions_are_in_the_second_answer(
    postgres: Server, tmp_path: Path
) -> None:
    with installed(postgres, tmp_path) as made:
        made.in_warehouse([viewed(number) for number in range(NOW, NOW + 200)])
        made.in_postgres([viewed(number) for number in range(100)])
        made.settle(FROM_MS // HOUR_MS)
        async with made.answering() as answering:
            suspecting = Suspecting(answering)
            before = await suspecting.suspects(asked())
            made.in_postgres([viewed(number) for number in range(150)])
            made.settle(FROM_MS // HOUR_MS)
            after = await suspecting.suspects(asked())

    assert (before.figure.n, after.figure.n) == (100, 150)


async def test_ranges_without_views_are_not_kept_for_ever(installation: Installation) -> None:
    async with installation.answering() as answering:
        suspecting = Suspecting(answering)
        for number in range(40):
            to_ms = FROM_MS - (40 + number) * DAY_MS
            await suspecting.suspects(asked(**{"from": str(to_ms - HOUR_MS), "to": str(to_ms)}))
        assert suspecting.ranges_kept <= 32
