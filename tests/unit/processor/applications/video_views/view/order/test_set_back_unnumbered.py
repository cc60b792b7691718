"""A clock that is set back in a view without numbers: what was sent after it comes after what was sent before."""

import random
from typing import Any, Literal

import pytest

from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import RATE, Event, story
from tests.unit.processor.applications.video_views.view.timing.test_clock_witnesses import delayed

Client = Literal["epas", "native"]
CLIENTS: tuple[Client, ...] = ("epas", "native")
#: A stall before the steps and one after them, a seek, and heartbeats of 30 s.
EVENTS: list[Event] = [
    (0, "viewstart", 0, {}),
    (900, "playing", 0, RATE),
    *((at_ms, "heartbeat", at_ms - 900, {}) for at_ms in range(30_900, 120_901, 30_000)),
    (130_000, "rebufferstart", 129_100, {}),
    (134_000, "rebufferend", 129_100, {}),
    (150_000, "seekstart", 145_100, {}),
    (151_000, "seekend", 500_000, {}),
    *((at_ms, "heartbeat", at_ms + 349_000, {}) for at_ms in range(180_000, 270_001, 30_000)),
    (280_000, "viewend", 629_000, {}),
]


def known(row: dict[str, Any]) -> dict[str, Any]:
    names = ("watch_ms", "playing_ms", "rebuffer_ms", "rebuffer_count", "seek_ms", "startup_ms", "gap_ms", "complete")
    return {name: row[name] for name in (*names, "view_end_ms", "beacon_count")}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [-40_000, -15 * MINUTE_MS, -HOUR_MS])
@pytest.mark.parametrize("at_ms", [10_000, 100_000, 132_000, 160_000])
def test_a_clock_set_back_changes_no_number(client: Client, by_ms: int, at_ms: int) -> None:
    plain = row_of(story(client, EVENTS, numbered=False))
    beacons = story(client, EVENTS, ((at_ms, by_ms),), numbered=False)
    row = row_of(beacons)
    assert row["clock_step_count"] == 1
    assert known(row) == known(plain)
    for seed in range(3):
        random.Random(seed).shuffle(beacons)
        assert known(row_of(beacons)) == known(plain)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clock_set_back_twice(client: Client) -> None:
    plain = row_of(story(client, EVENTS, numbered=False))
    row = row_of(story(client, EVENTS, ((60_000, -HOUR_MS), (160_000, -2 * HOUR_MS)), numbered=False))
    assert row["clock_step_count"] == 2
    assert known(row) == known(plain)


@pytest.mark.parametrize("client", CLIENTS)
def test_of_a_clock_set_back_the_copy_received_first_counts_in_any_order(client: Client) -> None:
    beacons = story(client, EVENTS, ((100_000, -HOUR_MS),), numbered=False)
    plain = known(row_of(beacons))
    copies = [delayed(one, 45_000) for one in beacons]
    for seed in range(5):
        mixed = [*beacons, *copies]
        random.Random(seed).shuffle(mixed)
        assert known(row_of(mixed)) == plain


@pytest.mark.parametrize("client", CLIENTS)
def test_a_copy_shows_that_what_seemed_a_clock_was_slow(client: Client) -> None:
    """The beginning and a pause are received 30 s late, and then a copy of the beginning that was not.

    What follows is slower than the second beacon, by which nothing denies the clock.
    """
    events: list[Event] = [*EVENTS[:2], (24_000, "pause", 23_100, {}), (40_000, "playing", 23_100, {}), *EVENTS[-1:]]
    first, second, paused, *rest = story(client, events, numbered=False)
    first, paused, rest = delayed(first, 2_000), delayed(paused, 30_000), [delayed(one, 2_000) for one in rest]
    in_time = known(row_of([first, second, paused, *rest]))
    assert in_time["watch_ms"] == 24_000 + 240_000
    assert known(row_of([second, delayed(first, 28_000), paused, first, *rest])) == in_time


@pytest.mark.parametrize("client", CLIENTS)
def test_slow_requests_are_no_clock(client: Client) -> None:
    """Each of few requests takes 40 s: the order stays that of the client's clock."""
    beacons = story(client, EVENTS, numbered=False)
    plain = known(row_of(beacons))
    for at in range(2, len(beacons) - 3):
        slow = [delayed(one, 40_000) if number == at else one for number, one in enumerate(beacons)]
        row = known(row_of(slow))
        assert {**row, "complete": True} == {**plain, "view_end_ms": row["view_end_ms"]}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [-95_000, -HOUR_MS])
def test_a_clock_that_is_set_back_and_forward_again_sends_what_slow_requests_send(client: Client, by_ms: int) -> None:
    """No rule tells the two apart, but the view is not complete: docs/view.md, "Order by time and clocks"."""
    beats: list[Event] = [(at_ms, "heartbeat", None, {}) for at_ms in range(10_900, 270_001, 10_000)]
    events = [*EVENTS[:2], *beats, (280_000, "viewend", None, {})]
    stepped = story(client, events, ((100_000, by_ms), (200_000, -by_ms)), numbered=False)
    sent_then = [(at_ms + by_ms if 100_000 <= at_ms < 200_000 else at_ms, *rest) for at_ms, *rest in events]
    slow = [
        delayed(one, -by_ms if 100_000 <= at_ms < 200_000 else 0)
        for one, (at_ms, *_) in zip(story(client, sent_then, numbered=False), events, strict=True)
    ]
    assert slow == stepped
    assert not row_of(stepped)["complete"]


@pytest.mark.parametrize("by_ms", [-40_000, -95_000, -HOUR_MS])
@pytest.mark.parametrize("stretch", [(500, 15_000), (5_000, 25_000), (100_000, 200_000), (135_000, 290_000)])
def test_with_numbers_a_clock_that_is_set_back_and_forward_again_changes_no_number(
    by_ms: int, stretch: tuple[int, int]
) -> None:
    plain = known(row_of(story("native", EVENTS)))
    beacons = story("native", EVENTS, ((stretch[0], by_ms), (stretch[1], -by_ms)))
    for seed in range(3):
        assert known(row_of(beacons)) == plain
        random.Random(seed).shuffle(beacons)
