"""A question for suspects as it is understood: its ranges, its metric, its dimensions, and what is refused."""

import pytest

from services.query.core.calendar import DAY_MS, HOUR_MS, Range
from services.query.core.customers import Customers
from services.query.core.metrics import MEASURED, METRICS, Metric
from services.query.core.problems import Wrong
from services.query.core.question import parsed
from services.query.core.suspects.measured import OF_METRICS, Threshold, suspects_by
from services.query.core.suspects.question import DIMENSIONS, AskedSuspects, SuspectsQuestion, understood
from shared.statistics.suspects.counts import DIMENSIONS_MAX

NOW_MS = 1_774_569_612_345


ACME = Customers(("acme",))


def question(customers: Customers = ACME, **given: str) -> SuspectsQuestion:
    asked = parsed(AskedSuspects, list({"metric": "playback_failure_fraction", **given}.items()))
    return understood(asked, lambda _: customers, NOW_MS)


def test_now_is_the_last_hour_and_usual_the_day_before_its_full_hour() -> None:
    found = question()
    full_ms = (NOW_MS // HOUR_MS - 1) * HOUR_MS

    assert found.now.range == Range(NOW_MS - HOUR_MS, NOW_MS)
    assert found.usual.range == Range(full_ms - DAY_MS, full_ms)
    since = question(baseline_from=str(NOW_MS - DAY_MS))
    assert since.usual.range == Range(NOW_MS - DAY_MS, NOW_MS - HOUR_MS), "as long as is asked"
    assert [one.name for one in found.now.by] == list(DIMENSIONS)
    assert found.limit == 5


def test_a_long_range_has_a_baseline_as_long_and_any_other_can_be_given() -> None:
    found = question(**{"from": "2026-03-01", "to": "2026-03-08"})
    assert found.usual.range.to_ms - found.usual.range.from_ms == 7 * DAY_MS

    found = question(
        **{"from": "2026-03-08", "to": "2026-03-09", "baseline_from": "2026-03-01", "baseline_to": "2026-03-02"}
    )
    assert found.now.range.from_ms - found.usual.range.from_ms == 7 * DAY_MS


@pytest.mark.parametrize(
    ("views", "usual", "against"),
    [(600, 0, "rest"), (600, 149, "rest"), (600, 150, "usual"), (10**6, 999, "rest"), (10**6, 1_000, "usual")],
)
def test_cohorts_are_held_against_the_rest_where_too_few_views_say_what_is_usual(
    views: int, usual: int, against: str
) -> None:
    assert question().held_against(views, usual) == against
    assert question(against="usual").held_against(views, usual) == "usual"
    assert question(against="rest").held_against(views, usual) == "rest"
    # Who names a baseline means it.
    assert question(baseline_to="2026-03-01").held_against(views, usual) == "usual"


def test_the_rest_has_no_baseline() -> None:
    with pytest.raises(Wrong, match="the rest has no baseline"):
        question(against="rest", baseline_to="2026-03-01")


def test_customers_are_told_apart_where_there_are_several() -> None:
    assert "customer" in [one.name for one in question(Customers(("acme", "globex"))).now.by]
    assert "customer" in [one.name for one in question(Customers()).now.by]
    assert "customer" not in [one.name for one in question(Customers(("acme",))).now.by]


@pytest.mark.parametrize("metric", [one for one in METRICS.values() if one.worse is not None], ids=lambda one: one.name)
def test_any_metric_that_can_be_worse_can_be_asked_for_as_the_catalogue_says(metric: Metric) -> None:
    by = suspects_by(metric)
    assert by is not None
    found = question(metric=metric.name)
    assert found.needs_threshold == (by.by != "ratio")
    if by.parameter is None:
        assert (found.measured.threshold, found.measured.parameters) == (None, ())
        return
    assert by.parameter == {"higher": "above_ms", "lower": "below"}[metric.worse or ""]
    assert by.largest is not None
    given = question(metric=metric.name, **{by.parameter: str(by.largest)})
    assert (given.measured.name, given.measured.parameters, given.needs_threshold) == (
        metric.name,
        (by.largest,),
        False,
    )
    with pytest.raises(Wrong):
        question(metric=metric.name, **{by.parameter: str(by.largest + 1)})


@pytest.mark.parametrize("metric", [one for one in METRICS.values() if one.worse is None], ids=lambda one: one.name)
def test_the_catalogue_has_no_suspects_of_a_metric_that_cannot_be_worse(metric: Metric) -> None:
    assert suspects_by(metric) is None
    with pytest.raises(Wrong):
        question(metric=metric.name)


@pytest.mark.parametrize("field", MEASURED)
def test_any_value_of_a_distribution_can_be_asked_for(field: str) -> None:
    found = question(metric=field, above_ms="2500.5")

    assert (found.measured.name, found.measured.parameters, found.now.fields) == (field, (2_500.5,), (field,))
    assert found.measured.threshold == Threshold("above", 2_500.5, "ms", "given")


def test_watch_time_is_asked_for_on_either_side() -> None:
    """Neither is worse by itself."""
    assert question(metric="watch_ms", below="60000").measured.threshold == Threshold("below", 60_000, "ms", "given")
    assert question(metric="watch_ms", above_ms="60000").measured.threshold == Threshold("above", 60_000, "ms", "given")


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("playback_failures", "playback_failure_fraction"),
        ("exits_before_start", "exit_before_start_fraction"),
        ("rebuffer_count", "rebuffers_per_minute"),
        ("dropped_frames", "dropped_frames_per_minute"),
    ],
)
def test_of_a_sum_the_ratio_is_searched_that_says_how_frequent_it_is(name: str, ratio: str) -> None:
    assert question(metric=name).measured is OF_METRICS[ratio]


def test_a_title_says_the_threshold() -> None:
    assert question(metric="bitrate_bps").measured.title == "weighted average bitrate"
    assert question(metric="bitrate_bps", below="1234567").measured.title == "weighted average bitrate below 1,235 kbps"
    assert question(metric="experience_score", below="61.75").measured.title == "experience below 61.75"
    assert question(metric="startup_ms_p95", above_ms="4000").measured.title == "video start-up time above 4,000 ms"


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"metric": "views"}, "metric"),
        ({"metric": "bitrate"}, "metric"),
        ({"metric": "watch_ms"}, "above_ms"),
        ({"metric": "watch_ms", "above_ms": "1", "below": "2"}, "above_ms"),
        ({"metric": "startup_ms", "above_ms": "-1"}, "above_ms"),
        ({"metric": "startup_ms", "above_ms": "86400001"}, "above_ms"),
        ({"metric": "startup_ms", "below": "1000"}, "below"),
        ({"metric": "bitrate_bps", "above_ms": "1000"}, "above_ms"),
        ({"metric": "playback_failure_fraction", "above_ms": "1000"}, "above_ms"),
        ({"metric": "spi_good_fraction", "below": "0.5"}, "below"),
        ({"metric": "experience_score", "below": "100.01"}, "below"),
        ({"metric": "watch_ms", "below": "86400001"}, "below"),
        *(
            ({"metric": metric, "below": text}, "below")
            for metric in ("bitrate_bps", "experience_score")
            for text in (
                "nan",
                "NaN",
                "-nan",
                "inf",
                "-inf",
                "-1",
                "-0.001",
                "1e400",
                "1e99",
                "9" * 400,
                "",
                "low",
                "1,5",
            )
        ),
        ({"dimensions": "cdn"}, "dimensions"),
        ({"dimensions": "cdn,nothing"}, "dimensions"),
        ({"dimensions": ",".join(f"custom.{number}" for number in range(DIMENSIONS_MAX + 1))}, "dimensions"),
        ({"from": "2026-03-02", "to": "2026-03-01"}, "from"),
        ({"from": "2020-01-01"}, "from"),
        ({"from": "2026-03-01", "to": "2026-03-02", "baseline_to": "2026-03-01T12:00"}, "baseline_to"),
        ({"baseline_from": "2026-03-27", "baseline_to": "2026-03-26"}, "baseline_from"),
        ({"filter": "{}"}, "filter"),
        ({"limit": "11"}, "limit"),
        ({"order_by": "factor"}, "order_by"),
        ({"anything": "1"}, None),
    ],
)
def test_what_is_wrong_is_refused_with_its_parameter(given: dict[str, str], parameter: str | None) -> None:
    with pytest.raises(Wrong) as raised:
        question(**given)

    assert raised.value.faults[0].parameter == parameter
