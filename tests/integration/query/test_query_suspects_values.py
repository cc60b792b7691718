"""Suspects by a value of views: the threshold is that of the usual views, and the figures are those of a recount."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from deploy.local.postgres import Postgres as Server
from services.query import thresholds
from services.query.core.answer import Figure
from services.query.core.suspects.answer import Threshold
from shared.schemas.view import View
from tests.integration.query.querying import Installation, installed
from tests.integration.query.suspected_views import (
    FROM_MS,
    LOWER,
    NOW,
    USUAL,
    WORSE,
    named,
    suspected,
    viewed,
    with_hot_hour,
)
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, known, ranked

pytestmark = pytest.mark.integration

#: Of each metric that is worse when lower the field of a view that has its value.
FIELDS = {"bitrate_bps": "avg_bitrate_bps", "experience_score": "score_view", "smoothness_score": "score_smooth"}


@pytest.fixture(scope="module")
def installation(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with with_hot_hour(postgres, tmp_path_factory.mktemp("query")) as made:
        yield made


def is_of(view: View, cohort: dict[str, str]) -> bool:
    return all(str(getattr(view, name)) == value for name, value in cohort.items())


def values_of(metric: str, numbers: Iterable[int]) -> list[float]:
    return known([viewed(number) for number in numbers], FIELDS[metric])


@pytest.mark.parametrize("metric", ["playback_failure_fraction", "startup_ms", "startup_ms_p50", *LOWER])
async def test_hours_in_which_nothing_changed_have_no_suspect_by_any_metric(
    installation: Installation, metric: str
) -> None:
    half = {"from": str(FROM_MS - DAY_MS // 2), "to": str(FROM_MS), "baseline_from": str(FROM_MS - DAY_MS)}
    found = await suspected(installation, metric=metric, **half)

    assert found.suspects == []
    assert found.figure.n > USUAL // 4
    assert found.usual.value == pytest.approx(found.figure.value, rel=0.25)


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


async def test_of_many_views_some_say_the_threshold(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await suspected(installation, metric="bitrate_bps")
    monkeypatch.setattr(thresholds, "VALUES_MAX", 2_000)
    found = await suspected(installation, metric="bitrate_bps")

    assert found.threshold != whole.threshold
    # Of 1,600 values or so.
    assert found.usual.value == pytest.approx(0.1, abs=0.03)
    assert found.usual.n == whole.usual.n
    assert [named(one) for one in found.suspects] == [WORSE]


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


@pytest.mark.parametrize(
    ("lowest", "usually", "now"),
    [
        pytest.param(0.0, 3, 12, id="nothing is below 0"),
        pytest.param(44.72, 3, 12, id="the lowest of a few values"),
        # A quarter and more: nearer to none than to a tenth, but else nothing would be bad.
        pytest.param(44.72, 6, 14, id="a value of many views"),
    ],
)
async def test_views_at_the_lowest_score_are_the_worst_where_they_are_more_than_a_tenth(
    postgres: Server, tmp_path: Path, lowest: float, usually: int, now: int
) -> None:
    """Nothing is below it: the threshold is the next value."""

    def at(number: int) -> View:
        view = viewed(number)
        is_failed = number % 20 < (now if number < NOW and view.cdn == "own" else usually)
        return structs.replace(view, score_success=lowest if is_failed else 50.0 if number % 20 == 19 else 100.0)

    with installed(postgres, tmp_path) as made:
        made.in_warehouse([at(number) for number in range(NOW + USUAL)])
        made.settle(FROM_MS // HOUR_MS)
        found = await suspected(made, metric="success_score")

    assert found.threshold is not None
    assert found.threshold.value == 50
    assert found.usual.value == pytest.approx(usually / 20, abs=0.001)
    assert [named(one) for one in found.suspects] == [{"cdn": "own"}]
