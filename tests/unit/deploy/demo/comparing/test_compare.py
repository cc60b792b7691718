"""The comparison of truth and observation: what is equal, what differs, and what may differ."""

from dataclasses import replace
from typing import Any

import pytest

from deploy.demo.comparing.compare import (
    DIFFERENCES_LISTED_MAX,
    LiveTotals,
    Observed,
    Rollup,
    Truth,
    ViewRecords,
    compare_views,
    customer_lines,
    nearest_rank,
    sums_of,
    total_lines,
)
from shared.statistics.histogram import bucket_of


def row(view_id: str = "v1", **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "customer_id": "acme",
        "view_id": view_id,
        "startup_ms": 800,
        "watch_ms": 10_000,
        "playing_ms": 9_000,
        "rebuffer_count": 1,
        "rebuffer_ms": 200,
        "seek_count": 0,
        "seek_ms": 0,
        "bitrate_integral": 9_000 * 3_000_000,
        "bitrate_time_ms": 9_000,
        "beacon_count": 12,
        "startup_failed": False,
        "playback_failed": False,
        "ebvs": False,
        "view_dropped": False,
    }
    return fields | changes


def rollup(rows: list[dict[str, Any]], **changes: int) -> Rollup:
    buckets: dict[int, int] = {}
    for one in rows:
        if one["startup_ms"] is not None:
            bucket = bucket_of(one["startup_ms"])
            buckets[bucket] = buckets.get(bucket, 0) + 1
    return Rollup(sums_of(rows) | changes, buckets)


TOTALS = {
    "beacons_sent": 110,
    "beacons_acked": 110,
    "duplicates": 10,
    "beacons_dropped": 4,
    "views_started": 2,
}
SETTLED = Observed(
    beacons_accepted=110,
    beacons_in_kafka=110,
    beacons_rejected=0,
    live=LiveTotals(beacons=100, duplicates=10, dropped=4, views_started=2, views_finished=2),
    views=ViewRecords(records=2, distinct=2),
    warehouse_rows=2,
)


def verdicts(truth: Truth, observed: Observed) -> dict[str, bool | None]:
    return {line.name: line.ok for line in total_lines(truth, observed)}


def differing(truth: Truth, observed: Observed) -> set[str]:
    return {name for name, ok in verdicts(truth, observed).items() if ok is False}


def test_a_run_in_which_everything_arrived_once_has_no_difference() -> None:
    assert differing(Truth(True, TOTALS), SETTLED) == set()


def test_counters_of_a_restarted_collector_are_not_compared() -> None:
    assert differing(Truth(True, TOTALS), replace(SETTLED, beacons_accepted=60)) == {"beacons answered 2xx"}
    restarted = verdicts(Truth(True, TOTALS), replace(SETTLED, beacons_accepted=None, collectors_restarted=True))
    assert restarted["beacons answered 2xx"] is None
    assert False not in restarted.values()


@pytest.mark.parametrize(
    ("live", "named"),
    [
        (LiveTotals(beacons=99, duplicates=10, dropped=4, views_started=2, views_finished=2), {"beacons folded"}),
        (LiveTotals(beacons=100, duplicates=11, dropped=4, views_started=2, views_finished=2), {"duplicates dropped"}),
        (LiveTotals(beacons=100, duplicates=10, dropped=4, views_started=2, views_finished=3), {"views finished"}),
        (
            LiveTotals(beacons=100, duplicates=10, dropped=4, late=1, views_started=2, views_finished=2, open_now=1),
            {"beacons too late", "views open"},
        ),
    ],
)
def test_a_single_beacon_or_view_too_many_or_too_few_is_seen(live: LiveTotals, named: set[str]) -> None:
    assert differing(Truth(True, TOTALS), replace(SETTLED, live=live)) == named


@pytest.mark.parametrize(
    ("views", "named"),
    [
        (ViewRecords(records=3, distinct=2), {"records in topic views", "doubled records in topic views"}),
        (ViewRecords(records=1, distinct=1), {"records in topic views"}),
        # One view lost, one doubled: the number alone does not show it.
        (ViewRecords(records=2, distinct=1), {"doubled records in topic views"}),
        (ViewRecords(records=3, distinct=3, again=1), {"records in topic views", "views finished again (revisions)"}),
    ],
)
def test_a_record_too_many_or_too_few_in_topic_views_is_seen(views: ViewRecords, named: set[str]) -> None:
    assert differing(Truth(True, TOTALS), replace(SETTLED, views=views)) == named


def test_a_view_that_finished_again_has_one_more_record_and_no_difference() -> None:
    live = replace(SETTLED.live, views_revised=1)

    again = replace(SETTLED, live=live, views=ViewRecords(records=3, distinct=3, again=1))

    assert differing(Truth(True, TOTALS), again) == set()
    assert differing(Truth(True, TOTALS), replace(SETTLED, live=live)) == {
        "records in topic views",
        "views finished again (revisions)",
    }


def test_a_beacon_that_was_not_understood_is_a_difference() -> None:
    assert differing(Truth(True, TOTALS), replace(SETTLED, beacons_rejected=1)) == {"beacons rejected"}


def test_what_is_not_known_is_not_taken_for_equal() -> None:
    unknown = {"beacons answered 2xx", "beacons in Kafka", "beacons rejected", "rows in the warehouse"}

    assert unknown <= differing(Truth(True, TOTALS), Observed())


def test_beacons_of_cut_off_posts_may_have_been_stored_but_no_more_than_those() -> None:
    truth = Truth(True, TOTALS | {"beacons_sent": 115})
    live = LiveTotals(beacons=100, duplicates=15, dropped=4, views_started=2, views_finished=2)

    stored = replace(SETTLED, beacons_accepted=115, beacons_in_kafka=115, live=live)
    wrong = replace(stored, beacons_accepted=116, beacons_in_kafka=109)

    assert differing(truth, stored) == set()
    assert differing(truth, wrong) == {"beacons answered 2xx", "beacons in Kafka"}


def test_equal_rollups_have_no_difference() -> None:
    rows = [row("v1"), row("v2", startup_ms=1_200, ebvs=False), row("v3", startup_ms=None, ebvs=True)]

    lines = customer_lines(Truth(True, TOTALS, rows), Observed(rollups={"acme": rollup(rows)}))

    assert [line for line in lines if not line.ok] == []
    shown = {line.name: (line.observed, line.truth) for line in lines}
    assert shown["acme: views"] == ("3", "3")
    assert shown["acme: started"] == ("2", "2")
    assert shown["acme: exits before start"] == ("1", "1")
    assert shown["acme: rebuffering"] == ("2.000%", "2.000%")
    assert shown["acme: weighted bitrate"] == ("3,000.0 kbps", "3,000.0 kbps")
    assert shown["acme: start-up p95, ms"][1] == "1,200.0"


def test_a_sum_that_differs_is_named_even_where_the_ratio_stays_the_same() -> None:
    rows = [row("v1"), row("v2")]
    doubled = rollup(rows, rebuffer_ms=800, watch_ms=40_000, seek_ms=1)

    lines = customer_lines(Truth(True, TOTALS, rows), Observed(rollups={"acme": doubled}))

    assert {line.name for line in lines if not line.ok} == {"acme: rebuffering", "acme: other sums equal"}
    assert any("not seek_ms" in line.observed for line in lines)


def test_a_percentile_may_differ_by_one_percent_and_no_more() -> None:
    rows = [row(startup_ms=1_000)]

    def verdict(bucket: int) -> bool | None:
        observed = Observed(rollups={"acme": Rollup(sums_of(rows), {bucket: 1})})
        lines = customer_lines(Truth(True, TOTALS, rows), observed)
        return next(line.ok for line in lines if line.name == "acme: start-up median, ms")

    right = bucket_of(1_000)
    assert verdict(right)
    assert not verdict(right - 1)
    assert not verdict(right + 1)


def test_a_percentile_of_no_views_is_left_empty_and_equal() -> None:
    rows = [row("v1", startup_ms=None, ebvs=True)]

    lines = customer_lines(Truth(True, TOTALS, rows), Observed(rollups={"acme": rollup(rows)}))

    (median,) = [line for line in lines if line.name == "acme: start-up median, ms"]
    assert (median.observed, median.truth, median.ok) == ("", "", True)


def test_a_customer_that_is_missing_or_unheard_of_is_a_difference() -> None:
    rows = [row()]

    nothing_served = customer_lines(Truth(True, TOTALS, rows), Observed())
    stranger = customer_lines(Truth(True, TOTALS, []), Observed(rollups={"stranger": rollup(rows)}))

    assert any(line.ok is False for line in nothing_served)
    assert {line.name for line in stranger if not line.ok} >= {"stranger: views", "stranger: start-up median, ms"}


def test_rows_that_are_as_they_must_be_have_no_difference() -> None:
    truth = [row("v1", acked_until_ms=5), row("v2")]
    warehouse = [row("v2", revision=3), row("v1", revision=1)]

    compared = compare_views(truth, warehouse)

    assert compared.ok
    assert [line.ok for line in compared.lines] == [True, True, True]


def test_missing_unexpected_doubled_and_wrong_rows_are_listed_apart() -> None:
    truth = [row("there"), row("lost"), row("wrong"), row("twice")]
    warehouse = [row("there"), row("wrong", startup_ms=801, ebvs=None), row("twice"), row("twice"), row("stranger")]

    compared = compare_views(truth, warehouse)

    assert not compared.ok
    assert compared.missing == ["acme:lost"]
    assert compared.unexpected == ["acme:twice (twice)", "acme:stranger"]
    assert compared.wrong == ["acme:wrong: startup_ms is 801, should be 800, ebvs is None, should be False"]


def test_only_the_first_differences_are_listed() -> None:
    compared = compare_views([row(f"v{number}") for number in range(50)], [])

    assert len(compared.missing) == 50
    assert len(compared.differences) == DIFFERENCES_LISTED_MAX


def test_the_nearest_rank_is_a_value_that_was_there() -> None:
    values = [10.0, 40.0, 20.0, 30.0]

    assert nearest_rank(values, 0.5) == 20.0
    assert nearest_rank(values, 0.95) == 40.0
    assert nearest_rank(values, 0.0) == 10.0
    assert nearest_rank([], 0.5) is None
