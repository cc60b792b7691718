"""What a session's plays know of the delay of its requests: the plays after them begin with it."""

import random
from typing import Any

import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, folded_fast, stepped
from tests.unit.processor.applications.video_views.counted import newest
from tests.unit.processor.applications.video_views.plays.test_plays_clock import play
from tests.unit.processor.applications.video_views.view.timing.test_clock_witnesses import delayed

SECOND_MS = 1_000
FIRST, SECOND = play(30, 0, "a"), play(20, 400 * SECOND_MS, "b")


def stepped_from(beacons: list[Beacon], number: int, by_ms: int) -> list[Beacon]:
    return [one if at < number else stepped(one, by_ms) for at, one in enumerate(beacons)]


def watched(beacons: list[Beacon]) -> list[tuple[str, int, int, int]]:
    found: list[Any] = list(newest(folded_fast(beacons, ())).values())
    return sorted((row.view_id, row.watch_ms, row.gap_ms, row.clock_step_count) for row in found)


@pytest.mark.parametrize("number", [1, 2, 3, 10])
@pytest.mark.parametrize("by_ms", [MINUTE_MS, 5 * HOUR_MS])
def test_a_clock_set_forward_at_the_beginning_of_a_later_play(number: int, by_ms: int) -> None:
    expected = [("s1", 290_000, 0, 0), ("s1.2", 190_000, 0, 1)]
    beacons = [*FIRST, *stepped_from(SECOND, number, by_ms)]
    assert watched(beacons) == expected
    assert watched(beacons[::-1]) == expected
    for seed in range(5):
        random.Random(seed).shuffle(beacons)
        assert watched(beacons) == expected


def test_a_clock_set_between_two_plays_shows_nothing_of_the_later_one() -> None:
    """The first request of the later play may have been slow by as much: the step after it counts as elapsed."""
    beacons = [*FIRST, *(stepped(one, HOUR_MS) for one in stepped_from(SECOND, 1, MINUTE_MS))]
    assert watched(beacons)[1] == ("s1.2", 250_000, 0, 0)


def test_a_slow_first_request_of_a_later_play_is_no_step() -> None:
    beacons = [*FIRST, delayed(SECOND[0], 50_000), *SECOND[1:]]
    assert watched(beacons) == [("s1", 290_000, 0, 0), ("s1.2", 190_000, 0, 0)]


def test_a_play_whose_beginning_was_lost_knows_the_delay_of_those_before_it() -> None:
    """All of its beacons wait for the first ones, which never come."""
    lost = stepped_from(SECOND, 4, MINUTE_MS)[3:]
    expected = [("s1", 290_000, 0, 0), ("s1.2", 160_000, 0, 1)]
    assert watched([*FIRST, *lost]) == expected
    assert watched([*lost, *FIRST]) == expected
    for seed in range(5):
        beacons = [*FIRST, *lost]
        random.Random(seed).shuffle(beacons)
        assert watched(beacons) == expected
