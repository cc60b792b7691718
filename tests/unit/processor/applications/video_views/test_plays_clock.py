"""A client's clock that is set back between two plays of a CMCD session: the plays follow each other as they were received."""

import itertools
import random

import msgspec
import pytest

from services.processor.applications.video_views.bounds import RECENT_STEPS_MAX
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, cmcd, stepped, told_fast
from tests.unit.processor.applications.video_views.counted import newest

SECOND_MS = 1_000


def play(
    records: int, at_ms: int, content: str, *, stepped_ms: int = 0, every_ms: int = 10 * SECOND_MS
) -> list[Beacon]:
    """A play with a record each 10 s, by a clock that was set."""
    told = [
        cmcd(n, "heartbeat" if n else "viewstart", at_ms + n * every_ms, sta="p" if n else "s", cid=content)
        for n in range(records)
    ]
    return [stepped(one, stepped_ms) for one in told]


def rows_of(beacons: list[Beacon]) -> list[tuple[str, str | None, int, int, int]]:
    found = newest(told_fast(beacons, ())).values()
    return sorted((row.view_id, row.video_id, row.beacon_count, row.seq_gaps, row.watch_ms) for row in found)


@pytest.mark.parametrize("by_ms", [-HOUR_MS, -5 * MINUTE_MS, -MINUTE_MS])
@pytest.mark.parametrize("records", [10, 60])
def test_the_plays_are_in_the_order_in_which_they_were_received(by_ms: int, records: int) -> None:
    first = play(records, 0, "a")
    second = play(20, records * 10_000 + 5_000, "b", stepped_ms=by_ms)
    beacons = [*first, *second]
    expected = [("s1", "a", records, 0, (records - 1) * 10_000), ("s1.2", "b", 20, 0, 190_000)]
    assert rows_of(beacons) == expected
    assert rows_of([*second, *first]) == expected
    for seed in range(5):
        random.Random(seed).shuffle(beacons)
        assert rows_of(beacons) == expected


@pytest.mark.parametrize("by_ms", [-280_000, -295_000, -300_000, -304_000])
def test_a_play_that_begins_again_where_the_one_before_began_by_the_clock(by_ms: int) -> None:
    beacons = [*play(30, 0, "a"), *play(20, 305_000, "b", stepped_ms=by_ms)]
    expected = [("s1", "a", 30, 0, 290_000), ("s1.2", "b", 20, 0, 190_000)]
    assert rows_of(beacons) == expected
    for seed in range(3):
        random.Random(seed).shuffle(beacons)
        assert rows_of(beacons) == expected


@pytest.mark.parametrize("by_ms", [-HOUR_MS, -5 * MINUTE_MS])
def test_the_beacons_of_a_long_play_stay_in_it(by_ms: int) -> None:
    records = 2 * RECENT_STEPS_MAX
    first, third = play(records, 0, "a"), play(30, 2 * HOUR_MS, "c", stepped_ms=by_ms)
    second = play(records, records * 10_000 + 5_000, "b", stepped_ms=by_ms)
    watched_ms = (records - 1) * 10_000
    assert rows_of([*first, *second, *third]) == [
        ("s1", "a", records, 0, watched_ms),
        ("s1.2", "b", records, 0, watched_ms),
        ("s1.3", "c", 30, 0, 290_000),
    ]
    # Copies of the last ones change nothing.
    assert rows_of([*first, *second, *third, *first[-5:], *second[-5:]])[1][2] == records


def test_a_beginning_that_was_delayed_is_no_clock_that_was_set_back() -> None:
    first, second = play(10, 0, "a"), play(20, 100_000, "b")
    late = msgspec.structs.replace(second[0], recv_time_ms=second[0].recv_time_ms + 60_000)
    late = msgspec.structs.replace(late, clock_offset_ms=(late.clock_offset_ms or 0) + 60_000)
    expected = [("s1", "a", 10, 0, 90_000), ("s1.2", "b", 20, 0, 190_000)]
    for at in (1, 6, 8, 19):
        assert rows_of([*first, *second[1:at], late, *second[at:]]) == expected


def received(beacon: Beacon, delay_ms: int) -> Beacon:
    """The beacon after so long in transit, which is all that the collector can say of its clock."""
    recv_ms = beacon.client_time_ms + delay_ms
    return msgspec.structs.replace(beacon, recv_time_ms=recv_ms, clock_offset_ms=delay_ms)


def test_what_looked_like_a_clock_that_was_set_back_is_judged_again_by_what_comes_later() -> None:
    """The first play waits for a connection, beside quick beacons of the second one; of these one is received after it."""
    beacons = [
        received(cmcd(0, "heartbeat", 5_384, cid="a"), 243_446),
        received(cmcd(3, "ended", 22_934, sta="e", cid="a"), 243_478),
        received(cmcd(0, "heartbeat", 31_060, cid="b"), 235_352),
        received(cmcd(10, "heartbeat", 91_060, sta="p", cid="b"), -5_074),
        received(cmcd(23, "heartbeat", 841_060, sta="p", cid="b"), 84_993),
    ]
    found = {
        tuple((view_id, video_id, count) for view_id, video_id, count, *_ in rows_of(list(order)))
        for order in itertools.permutations(beacons)
    }
    assert found == {(("s1", "a", 2), ("s1.2", "b", 3))}


def test_a_copy_that_was_received_late_is_no_beacon_of_another_clock() -> None:
    copied = cmcd(25, "rebufferstart", 70_686, sta="r", cid="a")
    beacons = [
        received(cmcd(24, "heartbeat", 70_110, sta="p", cid="a"), 718),
        received(copied, 30_330),
        received(cmcd(0, "heartbeat", 427, cid="a"), 240_133),
        received(cmcd(23, "heartbeat", 70_427, sta="p", cid="a"), 240_363),
    ]
    late_copy = received(copied, 240_299)
    counts = [sum(count for _, _, count, *_ in rows_of(each)) for each in (beacons, [*beacons, late_copy])]
    assert counts == [4, 4]
