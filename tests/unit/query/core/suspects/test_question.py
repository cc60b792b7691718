"""A question for suspects as it is understood: its ranges, its metric, its dimensions, and what is refused."""

import msgspec
import pytest

from services.query.core.calendar import DAY_MS, HOUR_MS, Range
from services.query.core.customers import Customers
from services.query.core.metrics import MEASURED, METRICS, Metric
from services.query.core.problems import Wrong
from services.query.core.question import parsed
from services.query.core.suspects.measured import OF_METRICS, AskedWith, asked_with
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


@pytest.mark.parametrize("name", [*OF_METRICS, *MEASURED])
def test_any_ratio_that_is_worse_when_higher_and_any_measured_value_can_be_asked_for(name: str) -> None:
    asked = msgspec.convert({"metric": name, "above_ms": "2500"}, AskedSuspects, strict=False)
    found = understood(asked, lambda _: Customers(("acme",)), NOW_MS)

    assert found.measured.name == name
    assert found.measured.parameters == ((2_500,) if name in MEASURED else ())


# Two sums have the names of fields, and those can be asked for.
@pytest.mark.parametrize(
    "metric", [one for one in METRICS.values() if one.name not in MEASURED], ids=lambda one: one.name
)
def test_the_catalogue_says_how_each_metric_is_asked_for(metric: Metric) -> None:
    named = asked_with(metric)
    if named is None:
        with pytest.raises(Wrong):
            question(metric=metric.name)
        return
    given = {} if named.threshold is None else {named.threshold: "2500"}
    assert question(metric=named.metric, **given).measured.name in {metric.name, metric.field}


def test_shares_and_percentiles_that_are_worse_when_higher_can_be_asked_for() -> None:
    assert asked_with(METRICS["rebuffer_fraction"]) == AskedWith("rebuffer_fraction", None)
    assert asked_with(METRICS["startup_ms_p95"]) == AskedWith("startup_ms", "above_ms")
    for name in ("views", "playback_failures", "view_watch_ms_p50"):
        assert asked_with(METRICS[name]) is None, name


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"metric": "views"}, "metric"),
        ({"metric": "bitrate_bps"}, "metric"),
        ({"metric": "experience_score"}, "metric"),
        ({"dimensions": "cdn"}, "dimensions"),
        ({"dimensions": "cdn,nothing"}, "dimensions"),
        ({"dimensions": ",".join(f"custom.{number}" for number in range(DIMENSIONS_MAX + 1))}, "dimensions"),
        ({"from": "2026-03-02", "to": "2026-03-01"}, "from"),
        ({"from": "2020-01-01"}, "from"),
        ({"from": "2026-03-01", "to": "2026-03-02", "baseline_to": "2026-03-01T12:00"}, "baseline_to"),
        ({"baseline_from": "2026-03-27", "baseline_to": "2026-03-26"}, "baseline_from"),
        ({"filter": "{}"}, "filter"),
        ({"limit": "11"}, "limit"),
        ({"above_ms": "-1"}, "above_ms"),
        ({"order_by": "factor"}, "order_by"),
        ({"anything": "1"}, None),
    ],
)
def test_what_is_wrong_is_refused_with_its_parameter(given: dict[str, str], parameter: str | None) -> None:
    with pytest.raises(Wrong) as raised:
        question(**given)

    assert raised.value.faults[0].parameter == parameter
