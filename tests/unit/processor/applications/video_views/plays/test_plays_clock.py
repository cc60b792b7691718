"""A client's clock that is set back between two plays of a CMCD session: the plays follow each other as they were received."""

import itertools
import random

import msgspec
import pytest

from services.processor.applications.video_views.bounds import RECENT_STEPS_MAX
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, cmcd, folded_fast, stepped
from tests.unit.processor.applications.video_views.counted import newest

SECOND_MS = 1_000


def play(
    records: int, at_ms: int, content: str, *, stepped_ms: int = 0, every_ms: int = 10 * SECOND_MS
) -> list[Beacon]:
    """A play with a record each 10 s, by a clock that was set."""
    beacons = [
        cmcd(n, "heartbeat" if n else "viewstart", at_ms + n * every_ms, sta="p" if n else "s", cid=content)
        for n in range(records)
    ]
    return [stepped(one, stepped_ms) for one in beacons]


def rows_of(beacons: list[Beacon]) -> list[tuple[str, str | None, int, int, int]]:
    found = newest(folded_fast(beacons, ())).values()
    return sorted((row.view_id, row.video_id, row.beacon_count, row.seq_gaps, row.watch_ms) for row in found)


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_a_clock_that_was_set_forward_and_one_that_was_set_back_are_found_in_any_order_of_arrival() -> None:
    late_copy = received(cmcd(27, "heartbeat", 3_574_642, sta="p", cid="a"), -2_704_460)
    beacons = [
        received(cmcd(3, "heartbeat", 5_207, sta="p", cid="a"), -5_207),
        msgspec.structs.replace(
            received(cmcd(20, "playing", 819_719, sta="p", cid="a"), 20_439), clock_offset_ms=-2_704_484
        ),
        received(cmcd(27, "heartbeat", 3_574_642, sta="p", cid="a"), -2_704_599),
        late_copy,
        msgspec.structs.replace(
            received(cmcd(3, "heartbeat", 2_753_011, sta="p", cid="b"), -1_804_771), clock_offset_ms=-2_681_260
        ),
        received(cmcd(5, "seekstart", 2_767_232, sta="k", cid="b"), -1_804_996),
    ]
    found = {tuple(one[:3] for one in rows_of(list(order))) for order in itertools.permutations(beacons)}
    assert found == {(("s1", "a", 3), ("s1.2", "b", 2))}


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


@pytest.mark.thorough
@pytest.mark.parametrize("content", ["a", "b"])
@pytest.mark.parametrize("by_ms", [-HOUR_MS, -30 * MINUTE_MS, -5 * MINUTE_MS])
@pytest.mark.parametrize("is_beginning_lost", [False, True])
def test_a_clock_set_back_into_a_long_play_splits_none_and_hides_none(
    by_ms: int, content: str, *, is_beginning_lost: bool
) -> None:
    first, second = play(300, 0, "a"), play(120, 3_010_000, content, stepped_ms=by_ms)[is_beginning_lost:]
    assert [one[:4] for one in rows_of([*first, *second])] == [
        ("s1", "a", 300, 0),
        ("s1.2", content, len(second), int(is_beginning_lost)),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("content", ["a", "b"])
def test_numbers_that_are_settled_in_another_play_are_no_copies(content: str) -> None:
    later, earlier = play(150, 2_000_007, content), play(150, 0, "a")[1:]
    assert [one[:4] for one in rows_of([*later, *earlier])] == [("s1", "a", 149, 1), ("s1.2", content, 150, 0)]
    # Real copies of what is settled are.
    assert [one[:4] for one in rows_of([*earlier, *later, *earlier, *later])] == [
        ("s1", "a", 149, 1),
        ("s1.2", content, 150, 0),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("content", ["a", "b"])
def test_two_long_plays_whose_beginnings_come_last(content: str) -> None:
    first, second = play(300, 0, "a"), play(300, 3_010_007, content)
    for rest in ([*first[1:], *second[1:]], [*second[1:], *first[1:]]):
        for beginnings in ([first[0], second[0]], [second[0], first[0]]):
            assert [one[:4] for one in rows_of([*rest, *beginnings])] == [
                ("s1", "a", 300, 0),
                ("s1.2", content, 300, 0),
            ]


@pytest.mark.parametrize("hours", [1, 24])
def test_a_clock_that_was_set_back_stays_known_when_what_showed_it_cannot_be_moved_any_more(hours: int) -> None:
    stepped_ms = -hours * HOUR_MS
    first = [stepped(one, stepped_ms if n >= 75 else 0) for n, one in enumerate(play(150, 0, "a"))]
    second = play(4, 1_501_013, "a", stepped_ms=stepped_ms)
    assert [one[2] for one in rows_of([*first, *second])] == [150, 4]


@pytest.mark.parametrize("delay_ms", [40_000, 90_000, 200_000])
@pytest.mark.parametrize("records", [8, 12, 20, 40])
def test_a_first_request_that_was_sent_again_begins_no_play_of_its_own(records: int, delay_ms: int) -> None:
    beacons = play(records, 0, "a")
    late = [
        msgspec.structs.replace(
            one, recv_time_ms=one.recv_time_ms + delay_ms, clock_offset_ms=(one.clock_offset_ms or 0) + delay_ms
        )
        for one in beacons[:5]
    ]
    as_received = sorted([*late, *beacons[5:]], key=lambda one: one.recv_time_ms)
    assert [one[2] for one in rows_of(as_received)] == [records]


@pytest.mark.parametrize(("records", "by_ms"), [(5, -MINUTE_MS), (3, -2 * MINUTE_MS)])
def test_short_plays_follow_each_other_though_the_clock_is_set_back_into_an_earlier_one(
    records: int, by_ms: int
) -> None:
    beacons: list[Beacon] = []
    for number, content in enumerate("abcdef"):
        at_ms = number * (records * 5_000 + 1_000)
        beacons += play(records, at_ms, content, stepped_ms=by_ms if number >= 2 else 0, every_ms=5_000)
    assert [one[1:3] for one in rows_of(beacons)] == [(content, records) for content in "abcdef"]


@pytest.mark.parametrize("lost", [1, 3])
@pytest.mark.parametrize("has_content", [True, False])
def test_a_play_whose_beginning_is_lost_fills_no_gap_of_the_play_before(lost: int, has_content: bool) -> None:
    first, second = play(30, 0, "a"), play(20, 400 * SECOND_MS, "b")
    beacons = [*first[:1], *first[1 + lost :], *second[lost:]]
    if not has_content:
        beacons = [without_content(one) for one in beacons]
    names = ("a", "b") if has_content else (None, None)
    expected = [
        ("s1", names[0], 30 - lost, lost, 290_000),
        ("s1.2", names[1], 20 - lost, lost, (19 - lost) * 10_000),
    ]
    assert rows_of(beacons) == expected
    assert rows_of(beacons[::-1]) == expected
    for seed in range(5):
        random.Random(seed).shuffle(beacons)
        assert rows_of(beacons) == expected


@pytest.mark.parametrize("by_ms", [-12_000, -25_000])
def test_a_clock_set_back_by_little_within_a_request_splits_no_play(by_ms: int) -> None:
    beacons = play(30, 0, "a")
    beacons = [*beacons[:12], *(stepped(one, by_ms) for one in beacons[12:])]
    # Numbers 10 to 13 come in one request, whose times fall by too little for two offsets.
    offset_ms = beacons[13].recv_time_ms - max(one.client_time_ms for one in beacons[10:14])
    at_once = {"recv_time_ms": beacons[13].recv_time_ms, "clock_offset_ms": offset_ms}
    beacons[10:14] = [msgspec.structs.replace(one, **at_once) for one in beacons[10:14]]
    for seed in range(4):
        assert [row[:4] for row in rows_of(beacons)] == [("s1", "a", 30, 0)]
        random.Random(seed).shuffle(beacons)


def without_content(beacon: Beacon) -> Beacon:
    return msgspec.structs.replace(beacon, attrs={"sta": beacon.attrs["sta"]})
