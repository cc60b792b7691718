"""When buckets are shown, and what is in them."""

from typing import Any

import pytest

from services.dashboard.live.history import ALL, LiveHistory
from shared.schemas.live import BUCKET_MS, IDLE_MS, Live
from tests.unit.dashboard.records import live

SETTLE_MS = 7_000


def history(seconds: int = 300, customers_max: int = 10) -> LiveHistory:
    return LiveHistory(history_ms=seconds * 1_000, settle_ms=SETTLE_MS, customers_max=customers_max)


def taken(into: LiveHistory, *records: Live, now_ms: int = 0) -> LiveHistory:
    for record in records:
        into.take_record(record, now_ms)
    into.settle(now_ms)
    return into


def viewers(shown: LiveHistory, customer_id: str = ALL) -> list[int | None]:
    picture: dict[str, Any] = shown.picture()
    series: list[int | None] = picture["customers"][customer_id]["series"]["viewers_now"]
    return series


def test_a_bucket_is_the_sum_over_partitions_and_customers() -> None:
    shown = taken(
        history(),
        live(100, partition=0, viewers_now=3, beacons=10),
        live(100, partition=1, viewers_now=4, beacons=20),
        live(100, partition=1, customer_id="globex", viewers_now=5, beacons=40),
    )
    assert (viewers(shown), viewers(shown, "acme"), viewers(shown, "globex")) == ([12], [7], [5])
    now = shown.picture()["customers"][ALL]["now"]
    assert (now["viewers_now"], now["beacons"]) == (12, 70)


def test_a_bucket_waits_for_a_partition_that_is_behind_until_it_has_waited_long_enough() -> None:
    shown = taken(history(), live(100, partition=0), live(100, partition=1), now_ms=0)
    taken(shown, live(101, partition=0, viewers_now=5), now_ms=5_000)
    assert shown.shown_ms == 100 * BUCKET_MS
    shown.settle(5_000 + SETTLE_MS - 1)
    assert shown.shown_ms == 100 * BUCKET_MS
    shown.settle(5_000 + SETTLE_MS)
    assert shown.shown_ms == 101 * BUCKET_MS


def test_a_bucket_is_shown_as_soon_as_every_partition_has_reached_it() -> None:
    shown = taken(history(), live(100, partition=0), live(100, partition=1))
    taken(shown, live(101, partition=0, viewers_now=5), live(102, partition=1, viewers_now=1), now_ms=1)
    # Partition 1 left bucket 101 out, and is past it.
    assert shown.shown_ms == 101 * BUCKET_MS


def test_a_partition_that_has_been_silent_for_a_minute_is_not_waited_for() -> None:
    shown = taken(history(), live(100, partition=0), live(100, partition=1))
    taken(shown, *(live(bucket, partition=0) for bucket in range(101, 113)), now_ms=1)
    assert shown.shown_ms == 112 * BUCKET_MS


def test_what_comes_after_its_bucket_was_shown_corrects_it() -> None:
    shown = taken(history(), live(100, partition=0, viewers_now=3))
    before = shown.version
    taken(shown, live(100, partition=1, viewers_now=4))
    assert viewers(shown) == [7]
    assert shown.version > before


def test_the_same_record_twice_counts_once() -> None:
    shown = taken(history(), live(100, beacons=5), live(100, beacons=5))
    assert shown.picture()["customers"][ALL]["totals"]["beacons"] == 5


def test_gauges_of_a_partition_that_leaves_buckets_out_are_carried_for_a_while_and_counts_never() -> None:
    shown = taken(history(), live(100, partition=0, viewers_now=3, beacons=9), live(100, partition=1, viewers_now=40))
    later = [live(bucket, partition=1, viewers_now=40) for bucket in range(101, 108)]
    taken(shown, *later, now_ms=SETTLE_MS)
    taken(shown, now_ms=3 * SETTLE_MS)
    # 30 s are 6 buckets: the record's own and five more.
    assert viewers(shown) == [43, 43, 43, 43, 43, 43, 40, 40]
    assert shown.picture()["customers"][ALL]["series"]["beacons"] == [9, 0, 0, 0, 0, 0, 0, 0]


def test_a_bucket_nobody_counted_is_unknown_and_not_zero() -> None:
    shown = taken(history(), live(100, viewers_now=3), live(103, viewers_now=4))
    assert viewers(shown) == [3, None, None, 4]


def test_a_customer_has_no_figures_where_nothing_is_known_of_it() -> None:
    shown = taken(history(), live(100, customer_id="acme"), live(101, customer_id="globex", viewers_now=2))
    assert viewers(shown, "globex") == [None, 2]


def test_totals_sum_counts_over_the_buckets_shown() -> None:
    shown = taken(history(), *(live(bucket, views_started=2, playback_failures=1) for bucket in range(100, 105)))
    totals = shown.picture()["customers"]["acme"]["totals"]
    assert (totals["views_started"], totals["playback_failures"]) == (10, 5)


def test_history_is_as_long_as_allowed_and_no_longer() -> None:
    shown = taken(history(seconds=50), *(live(bucket, viewers_now=bucket) for bucket in range(100, 200)))
    assert viewers(shown) == list(range(190, 200))
    taken(shown, live(120, viewers_now=1))
    assert viewers(shown) == list(range(190, 200))
    # The history and the half minute from which gauges are carried, and nothing beyond.
    assert len(shown._buckets) <= 16


def test_more_customers_than_allowed_are_left_out_and_counted_and_find_room_when_others_go() -> None:
    shown = taken(history(seconds=50, customers_max=2), *(live(100, customer_id=name) for name in ("a", "b", "c")))
    assert set(shown.picture()["customers"]) == {ALL, "a", "b"}
    assert shown.picture()["customers_omitted"] == 1
    taken(shown, *(live(bucket, customer_id="a") for bucket in range(101, 130)))
    taken(shown, live(130, customer_id="c"))
    assert "c" in shown.picture()["customers"]
    assert shown.picture()["customers_omitted"] == 0


def test_customers_left_out_count_among_all_in_gauges_and_counts() -> None:
    shown = history(customers_max=2)
    for bucket in (100, 101):
        for partition in (0, 1):
            records = [
                live(bucket, partition=partition, customer_id=f"c{number}", viewers_now=number, beacons=10)
                for number in range(30)
            ]
            taken(shown, *records, now_ms=(bucket - 100) * BUCKET_MS)
    picture = shown.picture()
    # Sizes are known from the second bucket on: then the largest are shown.
    assert set(picture["customers"]) == {ALL, "c28", "c29"}
    assert picture["customers_omitted"] == 28
    assert viewers(shown) == [2 * sum(range(30))] * 2
    assert picture["customers"][ALL]["totals"]["beacons"] == 2 * 2 * 30 * 10


def test_the_largest_customers_are_shown_in_any_order_of_arrival() -> None:
    shown = history(customers_max=3)
    for bucket in range(100, 110):
        for number in range(200):
            taken(shown, live(bucket, customer_id=f"small{number:03}"), now_ms=(bucket - 100) * BUCKET_MS)
        taken(shown, live(bucket, customer_id="large", viewers_now=54), now_ms=(bucket - 100) * BUCKET_MS)
        # One that shrinks gives its place back.
        shrinking = live(bucket, customer_id="shrinking", viewers_now=max(0, 9 - 3 * (bucket - 100)))
        taken(shown, shrinking, live(bucket, customer_id="mid", viewers_now=2), now_ms=(bucket - 100) * BUCKET_MS)
        taken(shown, live(bucket, customer_id="mid2", viewers_now=1), now_ms=(bucket - 100) * BUCKET_MS)
    picture = shown.picture()
    assert set(picture["customers"]) == {ALL, "large", "mid", "mid2"}
    assert picture["customers_omitted"] == 201
    assert picture["customers"]["large"]["now"]["viewers_now"] == 54
    # Nobody counts twice or not at all while customers change places.
    assert viewers(shown) == [54 + max(0, 9 - 3 * at) + 3 for at in range(10)]


def test_a_customer_that_finds_room_does_not_count_twice() -> None:
    shown = taken(history(seconds=50, customers_max=1), live(100, customer_id="a"), live(100, customer_id="b"))
    for bucket in range(101, 130):
        taken(shown, live(bucket, customer_id="b", viewers_now=5), now_ms=bucket)
    assert viewers(shown)[-10:] == [5] * 10
    assert set(shown.picture()["customers"]) == {ALL, "b"}


def behind(shown: LiveHistory) -> tuple[int, list[tuple[int, int]]]:
    """How many partitions were heard of, and (partition, bucket it is counted until) of those that are behind."""
    partitions = shown.picture()["partitions"]
    return partitions["heard"], [(one["partition"], one["until_ms"] // BUCKET_MS) for one in partitions["behind"]]


@pytest.mark.thorough
def test_a_partition_that_falls_silent_with_viewers_is_behind_until_it_comes_back() -> None:
    shown = taken(history(), live(100, partition=0, viewers_now=3), live(100, partition=1, viewers_now=4))
    assert behind(shown) == (2, [])
    for bucket in range(101, 1_000):
        taken(shown, live(bucket, partition=0, viewers_now=3), now_ms=bucket * BUCKET_MS)
        shown.settle(bucket * BUCKET_MS + SETTLE_MS)
        assert behind(shown) == (2, [(1, 101)])
    taken(shown, live(999, partition=1, viewers_now=4), now_ms=1_000 * BUCKET_MS)
    assert behind(shown) == (2, [])


def test_a_partition_that_has_sent_zeros_until_it_was_idle_is_not_behind() -> None:
    shown = history()
    idle = IDLE_MS // BUCKET_MS
    for bucket in range(100, 100 + idle + 20):
        records = [live(bucket, partition=0, viewers_now=3)]
        if bucket < 100 + idle:
            records.append(live(bucket, partition=1, open_now=1 if bucket == 100 else 0))
        taken(shown, *records, now_ms=bucket * BUCKET_MS)
        shown.settle(bucket * BUCKET_MS + SETTLE_MS)
    assert behind(shown) == (2, [])


def test_a_partition_that_falls_silent_before_it_was_idle_is_behind_though_nobody_watched() -> None:
    shown = taken(history(), live(100, partition=0, viewers_now=3), live(100, partition=1, beacons=1))
    taken(shown, live(101, partition=0, viewers_now=3), live(101, partition=1), now_ms=1)
    taken(shown, live(102, partition=0, viewers_now=3), now_ms=2)
    shown.settle(2 + SETTLE_MS)
    assert behind(shown) == (2, [(1, 102)])


def test_before_the_first_record_there_is_an_empty_picture() -> None:
    shown = taken(history())
    picture = shown.picture()
    assert picture["shown_until_ms"] is None
    assert picture["customers"][ALL]["now"] is None
    assert viewers(shown) == []
