"""Suspects from a warehouse and hot rows: the cohort that was made worse is named, with figures that other paths give too."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs, to_builtins

from deploy.local.postgres import Postgres as Server
from services.query.core.answer import Figure
from services.query.core.customers import EVERY_CUSTOMER, Customers
from services.query.core.question import Asked, parsed
from services.query.core.question import understood as understood_question
from services.query.core.suspects.answer import Looked, Suspect, Suspects, Threshold
from services.query.core.suspects.question import SUSPECTS_MAX, AskedSuspects, SuspectsQuestion, understood
from services.query.memory import Loaded, Memory
from services.query.suspecting import Suspecting, _searched
from shared.schemas.view import View
from shared.statistics.suspects.suspect import LINE
from tests.integration.query.querying import Installation, installed
from tests.unit.query.recounting import DAY_MS, HOUR_MS, T0_MS, a_view, known, ranked

pytestmark = pytest.mark.integration

FROM_MS = T0_MS + 3 * DAY_MS
WITHIN = {"from": str(FROM_MS), "to": str(FROM_MS + HOUR_MS)}
WORSE = {"cdn": "fastly", "asn": "3320", "player_version": "1.2"}
#: Of 6,000 views of the hour and 9,000 of the day before it.
NOW, USUAL = 6_000, 9_000
#: Metrics that are worse when they are lower, and that the cohort has less of.
LOWER = ("bitrate_bps", "experience_score", "smoothness_score", "request_throughput_bps", "spi_good_fraction")
#: Another one, which fails less often.
INCIDENT = {"cdn": "akamai", "asn": 3209, "player_version": "1.2"}
#: Values whose threshold the baseline gives.
BY_DEFAULT = (*LOWER[:-1], "startup_ms", "startup_ms_p95", "live_latency_ms_p50")
#: So few views with events are in a sample that leaves the cohort below the line, and a wider one before it.
BAD_NEAR = 20


@cache
def viewed(number: int) -> View:
    chance = random.Random(number)
    is_now = number < NOW
    at_ms = FROM_MS + chance.randrange(HOUR_MS) if is_now else FROM_MS - 1 - chance.randrange(DAY_MS)
    cdn, asn, version = (
        chance.choice(values)
        for values in (("fastly", "akamai", "own"), (3320, 3209, 6830, 12322), ("1.2", "1.2", "1.3", "1.4"))
    )
    is_worse = is_now and (cdn, asn, version) == ("fastly", 3320, "1.2")
    stalls = chance.random() < (0.6 if is_worse else 0.1)
    quality = quality_of(number, is_worse=is_worse)
    return a_view(
        chance,
        f"view-{number}",
        customer_id="acme" if number % 3 else "other",
        day=at_ms // DAY_MS,
        first_append_ms=at_ms,
        last_append_ms=at_ms,
        view_start_ms=at_ms,
        view_end_ms=at_ms,
        cdn=cdn,
        asn=asn,
        player_version=version,
        country={3320: "DE", 3209: "DE", 6830: "AT", 12322: "FR"}[asn],
        playback_failed=chance.random() < (0.25 if is_worse else 0.03),
        startup_ms=chance.choice([None, 300, 900, 9_000 if is_worse else 1_000]),
        watch_ms=600_000,
        playing_ms=590_000,
        rebuffer_ms=chance.randrange(20_000) if stalls else 0,
        rebuffer_count=int(stalls),
        deleted=False,
        **quality,
    )


def quality_of(number: int, *, is_worse: bool) -> dict[str, Any]:
    """What is worse when it is lower: of half of the views of the cohort. A tenth of all views has none of it."""
    chance = random.Random(f"quality of {number}")
    if chance.random() < 0.1:
        return {"avg_bitrate_bps": None, "score_view": None, "score_smooth": None, "spi_good": None, "req_bytes": None}
    is_low = is_worse and chance.random() < 0.5
    bitrate_bps = chance.randrange(200_000, 2_000_000) if is_low else chance.randrange(1_500_000, 8_000_000)
    return {
        "avg_bitrate_bps": bitrate_bps,
        "req_bytes": bitrate_bps // 4,
        "req_time_ms": 1_000,
        "score_view": round(chance.uniform(5, 60) if is_low else chance.uniform(45, 100), 2),
        "score_smooth": 44.72 if is_low else chance.choice([100.0, 100.0, 100.0, 89.44]),
        "spi_good": not is_low and chance.random() < 0.9,
        "dropped_frames": chance.randrange(300 if is_low else 30),
    }


@pytest.fixture(scope="module")
def installation(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The hour is hot in Postgres; the day before it, and half of the hour as it was, are in the warehouse."""
    with installed(postgres, tmp_path_factory.mktemp("query")) as made:
        views = [viewed(number) for number in range(NOW + USUAL)]
        made.in_warehouse(views[NOW // 2 :])
        made.in_postgres(views[:NOW])
        made.settle(FROM_MS // HOUR_MS)
        yield made


def asked(*, customers: Customers = EVERY_CUSTOMER, **given: str) -> SuspectsQuestion:
    found = parsed(AskedSuspects, list({"metric": "playback_failure_fraction", **WITHIN, **given}.items()))
    return understood(found, lambda _: customers, FROM_MS + DAY_MS)


async def suspected(
    installation: Installation, *, customers: Customers = EVERY_CUSTOMER, bad_max: int = 10**6, **given: str
) -> Suspects:
    async with installation.answering() as answering:
        suspecting = Suspecting(answering, bad_max=bad_max, good_max=10 * bad_max)
        return await suspecting.suspects(asked(customers=customers, **given))


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


def named(one: Suspect) -> dict[str, str | None]:
    return {condition.dimension: condition.value for condition in one.conditions}


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


@pytest.mark.parametrize("metric", ["playback_failure_fraction", "startup_ms", "startup_ms_p50", *LOWER])
async def test_hours_in_which_nothing_changed_have_no_suspect_by_any_metric(
    installation: Installation, metric: str
) -> None:
    half = {"from": str(FROM_MS - DAY_MS // 2), "to": str(FROM_MS), "baseline_from": str(FROM_MS - DAY_MS)}
    found = await suspected(installation, metric=metric, **half)

    assert found.suspects == []
    assert found.figure.n > USUAL // 4
    assert found.usual.value == pytest.approx(found.figure.value, rel=0.25)


#: Of each metric that is worse when lower the field of a view that has its value.
FIELDS = {"bitrate_bps": "avg_bitrate_bps", "experience_score": "score_view", "smoothness_score": "score_smooth"}


@pytest.mark.parametrize("bad_max", [10**6, 250])
@pytest.mark.parametrize("metric", FIELDS)
async def test_views_below_the_worst_tenth_of_the_baseline_are_counted_as_recounting_counts_them(
    installation: Installation, metric: str, bad_max: int
) -> None:
    found = await suspected(installation, metric=metric, bad_max=bad_max)

    assert found.threshold is not None
    below = found.threshold.value
    assert (found.threshold.side, found.threshold.origin) == ("below", "usual")
    assert below == ranked(values_of(metric, range(NOW, NOW + USUAL)), 0.1)
    assert below is not None
    cohort = [number for number in range(NOW + USUAL) if is_of(viewed(number), WORSE)]
    others = sorted({*range(NOW + USUAL)} - {*cohort})
    (suspect,) = found.suspects
    for figure, numbers, is_now in (
        (found.figure, [*cohort, *others], True),
        (found.usual, [*cohort, *others], False),
        (suspect.figure, cohort, True),
        (suspect.usual, cohort, False),
        (suspect.rest, others, True),
        (suspect.rest_usual, others, False),
    ):
        values = values_of(metric, [number for number in numbers if (number < NOW) == is_now])
        assert (figure.value, figure.n) == (sum(value < below for value in values) / len(values), len(values))


async def test_the_share_of_good_views_has_the_figures_of_the_other_paths(installation: Installation) -> None:
    """It is worse when lower, and no threshold is needed: a view is good or not."""
    found = await suspected(installation, metric="spi_good_fraction")

    good = known([viewed(number) for number in range(NOW)], "spi_good")
    assert (found.figure.value, found.figure.n) == (sum(good) / len(good), len(good))
    assert found.threshold is None
    (suspect,) = found.suspects
    assert (suspect.figure.value or 1) < (suspect.rest.value or 0) - 0.2
    bad = suspect.figure.n * (1 - (suspect.figure.value or 1))
    assert 0.5 * bad < suspect.excess < bad


async def test_a_range_without_a_baseline_has_its_own_worst_tenth(installation: Installation) -> None:
    before = {"baseline_from": str(FROM_MS - 3 * DAY_MS), "baseline_to": str(FROM_MS - 2 * DAY_MS)}
    found = await suspected(installation, metric="bitrate_bps", **before)
    beside = await suspected(installation, metric="bitrate_bps", against="rest")
    nobody = await suspected(installation, metric="bitrate_bps", **before, filter='{"dimension": "cdn", "in": ["no"]}')

    for one in (found, beside):
        assert one.threshold is not None
        assert (one.threshold.origin, one.threshold.value) == (
            "range",
            ranked(values_of("bitrate_bps", range(NOW)), 0.1),
        )
    assert (nobody.threshold, nobody.figure) == (Threshold("below", None, "bps", "usual"), Figure(None, 0))
    assert nobody.title == "weighted average bitrate"


async def test_views_at_the_lowest_score_are_the_worst_where_they_are_more_than_a_tenth(
    postgres: Server, tmp_path: Path
) -> None:
    """Nothing is below 0: the threshold is the next value."""

    def at(number: int) -> View:
        view = viewed(number)
        is_failed = number % 20 < (12 if number < NOW and view.cdn == "own" else 3)
        return structs.replace(view, score_success=0.0 if is_failed else 50.0 if number % 20 == 4 else 100.0)

    with installed(postgres, tmp_path) as made:
        made.in_warehouse([at(number) for number in range(NOW + USUAL)])
        made.settle(FROM_MS // HOUR_MS)
        found = await suspected(made, metric="success_score")

    assert found.threshold is not None
    assert found.threshold.value == 50
    assert found.usual.value == pytest.approx(0.15, abs=0.001)
    assert [named(one) for one in found.suspects] == [{"cdn": "own"}]


def is_of(view: View, cohort: dict[str, str]) -> bool:
    return all(str(getattr(view, name)) == value for name, value in cohort.items())


def values_of(metric: str, numbers: Iterable[int]) -> list[float]:
    return known([viewed(number) for number in numbers], FIELDS[metric])


async def test_figures_are_those_of_the_other_paths_under_the_suspects_filter(installation: Installation) -> None:
    (suspect,) = (await suspected(installation)).suspects
    condition = {"and": [{"dimension": name, "in": [value]} for name, value in WORSE.items()]}

    async with installation.answering() as answering:

        async def overall(filter_: dict[str, Any], from_ms: int, to_ms: int) -> tuple[float | int | None, int]:
            given = {"metrics": "playback_failure_fraction", "filter": json.dumps(filter_)}
            found = parsed(Asked, [*given.items(), ("from", str(from_ms)), ("to", str(to_ms))])
            answer = await answering.answer(understood_question(found, lambda _: Customers(), FROM_MS))
            figure = answer.metrics["playback_failure_fraction"]  # type: ignore[union-attr]
            return figure.value, figure.n

        for filter_, now, usual in (
            (condition, suspect.figure, suspect.usual),
            ({"not": condition}, suspect.rest, suspect.rest_usual),
        ):
            assert (now.value, now.n) == await overall(filter_, FROM_MS, FROM_MS + HOUR_MS)
            assert (usual.value, usual.n) == await overall(filter_, FROM_MS - DAY_MS, FROM_MS)


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


@pytest.mark.parametrize("bad_max", [10**6, 800])
async def test_a_small_incident_beside_a_large_one_is_above_the_line_too(
    postgres: Server, tmp_path: Path, bad_max: int
) -> None:
    """Beside all views it would be none: the large one made them worse together."""

    def at(number: int) -> View:
        made = viewed(number)
        is_hit = number < NOW and made.cdn == "own" and number % 5 < 3
        return structs.replace(made, playback_failed=True) if is_hit else made

    with installed(postgres, tmp_path) as made:
        made.in_warehouse([at(number) for number in range(NOW + USUAL)])
        made.settle(FROM_MS // HOUR_MS)
        found = await suspected(made, bad_max=bad_max)

    assert [named(one) for one in found.suspects] == [{"cdn": "own"}, WORSE]
    assert (found.read.sampled < found.read.views) == (bad_max < 10**6)
    for one in found.suspects:
        assert one.excess > 0
        assert one.factor > 1.25
        assert one.surprise > LINE


@pytest.mark.parametrize("has_incident", [False, True])
async def test_what_only_a_sample_shows_is_no_suspect_and_takes_no_others_place(
    postgres: Server, tmp_path: Path, has_incident: bool
) -> None:
    """Views are sampled by their times. Those of one CDN that failed came at times that the sample has; as many failed as ever."""
    bad_of = 4

    def at(number: int) -> View:
        made = viewed(number)
        is_bad = number % 20 == 0
        if has_incident and number < NOW and (made.cdn, made.asn, made.player_version) == tuple(INCIDENT.values()):
            is_bad = number % 20 < 7
        at_ms = made.first_append_ms // bad_of * bad_of + (0 if is_bad and made.cdn == "own" else number // 20 % bad_of)
        at_ms = at_ms if number < NOW else made.first_append_ms
        return structs.replace(made, playback_failed=is_bad, first_append_ms=at_ms)

    with installed(postgres, tmp_path) as made:
        views = [at(number) for number in range(NOW + USUAL)]
        made.in_warehouse(views)
        made.settle(FROM_MS // HOUR_MS)
        async with made.answering() as answering:
            bad_max = -(-sum(view.playback_failed for view in views[:NOW]) // bad_of)
            suspecting = Suspecting(answering, bad_max=bad_max, good_max=10 * bad_max)
            reading = [await answering.reading(side) for side in (asked().now, asked().usual)]
            samples = [
                await suspecting._sample(asked().measured, side, read)
                for side, read in zip((asked().now, asked().usual), reading, strict=True)
            ]
            of_sample = _searched(replace(asked(), against="usual"), SUSPECTS_MAX, *samples).found
            found = await suspecting.suspects(asked(limit="1"))

    assert dict(of_sample[0].values) == {"cdn": "own"}
    assert found.read.sampled < found.read.views
    expected = {name: str(value) for name, value in INCIDENT.items()}
    assert [named(one) for one in found.suspects] == ([expected] if has_incident else [])


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
