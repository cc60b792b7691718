"""A client's clock that is set back to before its play began, and forward again in the same play: one row, by the numbers."""

import random

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, cmcd, folded_fast, stepped
from tests.unit.processor.applications.video_views.counted import newest
from tests.unit.processor.applications.video_views.plays.test_plays_clock import SECOND_MS, play, received

#: Of a row: its view, and how many beacons, missing numbers, ms watched, gaps and clock steps it has.
Row = tuple[str, int, int, int, int, int]


def rows_of(beacons: list[Beacon]) -> list[Row]:
    found = newest(folded_fast(beacons, ())).values()
    return sorted(
        (one.view_id, one.beacon_count, one.seq_gaps, one.watch_ms, one.gap_count, one.clock_step_count)
        for one in found
    )


def two_plays(first: int, records: int, by_ms: int, stretch: range) -> list[Beacon]:
    """Two plays of so many beacons; a stretch of the second one by a clock that was set."""
    second = play(records, (first + 1) * 10_000, "b")
    return [*play(first, 0, "a"), *(stepped(one, by_ms) if at in stretch else one for at, one in enumerate(second))]


def late(beacon: Beacon, by_ms: int) -> Beacon:
    """The beacon, or a copy, after so much longer in transit."""
    return received(beacon, (beacon.clock_offset_ms or 0) + by_ms)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("by_ms", "stretch", "steps"),
    [
        (-95 * SECOND_MS, range(5, 35), 2),
        (-HOUR_MS, range(5, 35), 2),
        (-HOUR_MS, range(1, 3), 2),
        (-95 * SECOND_MS, range(1, 2), 2),
        (-HOUR_MS, range(5, 6), 2),
        # Between the plays; into the middle of the first one, and to before it.
        (-95 * SECOND_MS, range(35), 1),
        (-HOUR_MS, range(35), 1),
    ],
)
def test_a_clock_that_is_set_to_before_its_play_began_and_right_again(by_ms: int, stretch: range, steps: int) -> None:
    beacons = two_plays(30, 60, by_ms, stretch)
    expected = [("s1", 30, 0, 290_000, 0, 0), ("s1.2", 60, 0, 590_000, 0, steps)]
    assert rows_of(beacons) == expected
    assert rows_of(beacons[::-1]) == expected
    beacons += [late(one, 45 * SECOND_MS) for one in beacons[::7]]
    for seed in range(3):
        random.Random(seed).shuffle(beacons)
        assert rows_of(beacons) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("by_ms", [-95 * SECOND_MS, -HOUR_MS])
def test_where_beacons_are_lost(by_ms: int) -> None:
    beacons = [one for at, one in enumerate(two_plays(30, 60, by_ms, range(5, 35))) if at not in (28, 35, 45, 64, 65)]
    expected = [("s1", 29, 1, 290_000, 0, 0), ("s1.2", 56, 4, 590_000, 0, 2)]
    for seed in range(4):
        assert rows_of(beacons) == expected
        random.Random(seed).shuffle(beacons)


@pytest.mark.thorough
@pytest.mark.parametrize("by_ms", [-95 * SECOND_MS, -HOUR_MS])
def test_a_clock_that_goes_back_and_forth(by_ms: int) -> None:
    stretch = [*range(5, 12), *range(20, 31), *range(40, 50)]
    second = [stepped(one, by_ms) if at in stretch else one for at, one in enumerate(play(60, 310_000, "b"))]
    beacons = [*play(30, 0, "a"), *second]
    for seed in range(3):
        assert rows_of(beacons) == [("s1", 30, 0, 290_000, 0, 0), ("s1.2", 60, 0, 590_000, 0, 6)]
        random.Random(seed).shuffle(beacons)


@pytest.mark.thorough
@pytest.mark.parametrize("by_ms", [-95 * SECOND_MS, -HOUR_MS])
@pytest.mark.parametrize(("until", "steps"), [(60, (1, 0)), (75, (1, 1))])
def test_forward_between_two_plays_or_in_the_next_one(by_ms: int, until: int, steps: tuple[int, int]) -> None:
    later = [*play(60, 310_000, "b"), *play(40, 920_000, "c")]
    beacons = [*play(30, 0, "a"), *(stepped(one, by_ms if 5 <= at < until else 0) for at, one in enumerate(later))]
    for seed in range(3):
        assert rows_of(beacons) == [
            ("s1", 30, 0, 290_000, 0, 0),
            ("s1.2", 60, 0, 590_000, 0, steps[0]),
            ("s1.3", 40, 0, 390_000, 0, steps[1]),
        ]
        random.Random(seed).shuffle(beacons)


@pytest.mark.thorough
def test_by_another_clock_in_each_play() -> None:
    second = [stepped(one, -95 * SECOND_MS if 5 <= at < 15 else 0) for at, one in enumerate(play(30, 310_000, "b"))]
    third = [stepped(one, -HOUR_MS if 5 <= at < 15 else 0) for at, one in enumerate(play(30, 620_000, "c"))]
    beacons = [*play(30, 0, "a"), *second, *third]
    for seed in range(3):
        assert [one[1:] for one in rows_of(beacons)] == [(30, 0, 290_000, 0, steps) for steps in (0, 2, 2)]
        random.Random(seed).shuffle(beacons)


@pytest.mark.thorough
@pytest.mark.parametrize("by_ms", [-95 * SECOND_MS, -HOUR_MS])
@pytest.mark.parametrize(("first", "stretch"), [(200, range(5, 35)), (30, range(5, 150)), (30, range(100, 160))])
def test_when_what_showed_it_cannot_be_moved_any_more(by_ms: int, first: int, stretch: range) -> None:
    assert rows_of(two_plays(first, 200, by_ms, stretch)) == [
        ("s1", first, 0, (first - 1) * 10_000, 0, 0),
        ("s1.2", 200, 0, 1_990_000, 0, 2),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("delay_ms", [40_000, 60_000, 300_000])
def test_beacons_that_were_delayed_alike_stay_where_they_were_sent(delay_ms: int) -> None:
    """The last two of a play, where the next one lost the same two; those of its middle; the first ones of the next."""
    first, second = play(6, 0, "a"), play(50, 60_000, "b")
    for delayed, lost in ((range(4, 6), range(4, 6)), ((5,), (5,)), (range(2, 5), ()), ((), ())):
        head = range(3) if not delayed else ()
        beacons = [
            *(late(one, delay_ms) if at in delayed else one for at, one in enumerate(first)),
            *(late(one, delay_ms) if at in head else one for at, one in enumerate(second) if at not in lost),
        ]
        for seed in range(3):
            rows = rows_of(beacons)
            assert [one[:3] for one in rows] == [("s1", 6, 0), ("s1.2", 50 - len(lost), len(lost))]
            random.Random(seed).shuffle(beacons)


def test_beacons_that_were_delayed_alike_until_the_next_play_stay_where_they_were_sent() -> None:
    """The next play begins where they would be by another clock."""
    first = [
        late(one, 200_000) if at < 8 else one for at, one in enumerate(play(13, 60_000, "b")) if at not in (1, 10, 11)
    ]
    beacons = [*play(6, 0, "a"), *first, play(1, 290_000, "c")[0]]
    for seed in range(3):
        assert [one[:3] for one in rows_of(beacons)][:2] == [("s1", 6, 0), ("s1.2", 10, 3)]
        random.Random(seed).shuffle(beacons)


def test_a_play_an_hour_before_that_was_delayed_sends_what_a_clock_sends_that_was_set_to_then() -> None:
    """No rule tells the two apart where no number is missing in either: docs/view.md."""
    set_back = two_plays(30, 60, -HOUR_MS, range(30))
    before = [late(one, HOUR_MS) for one in play(30, 310_000 - HOUR_MS, "b")]
    # The numbers of the play after it go on, with the content that was shown before.
    after = [msgspec.structs.replace(one, attrs={"sta": "p", "cid": "b"}) for one in play(60, 310_000, "a")[30:]]
    assert [*play(30, 0, "a"), *before, *after] == set_back
    assert [one[:4] for one in rows_of(set_back)] == [
        ("s1", 30, 0, 290_000),
        ("s1.2", 30, 0, 290_000),
        ("s1.3", 30, 0, 290_000),
    ]


#: By number, client time, delay and content: four clocks; the last beacon is a copy of the one before it.
COPIED = (
    *(
        (2, -316_000, 342_000, "b"),
        (0, -76_000, 137_000, "c"),
        (7, -333_000, 342_000, "a"),
        (3, -311_000, 342_000, "b"),
    ),
    *((2, 2_000, 2_000, "a"), (3, -297_000, 302_000, "a"), (1, -321_000, 373_000, "b"), (6, -294_000, 302_000, "a")),
    *(
        (7, -386_000, 437_000, "b"),
        (5, -301_000, 342_000, "b"),
        (1, -41_000, 137_000, "d"),
        (6, -296_000, 342_000, "b"),
    ),
    *((0, -326_000, 342_000, "b"), (1, 1_000, 2_000, "a"), (4, -306_000, 387_000, "b"), (4, -306_000, 342_000, "b")),
)


def test_a_copy_that_was_received_before_its_original_shows_a_clock_in_any_order() -> None:
    beacons = [received(cmcd(seq, "heartbeat", at_ms, sta="p", cid=cid), delay) for seq, at_ms, delay, cid in COPIED]
    in_time = rows_of(sorted(beacons, key=lambda one: one.recv_time_ms))
    assert sorted(one[1] for one in in_time) == [1, 1, 5, 8]
    assert rows_of(beacons) == in_time
