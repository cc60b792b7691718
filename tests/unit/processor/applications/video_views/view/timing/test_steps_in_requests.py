"""A clock that is set forward while beacons wait for their request, and requests that are slow where it steps."""

from typing import Any

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import (
    CLIENTS,
    RATE,
    SLEPT,
    Client,
    Event,
    beats,
    story,
)
from tests.unit.processor.applications.video_views.view.timing.test_clock_witnesses import delayed, played

#: Plays, and gives no playhead: the times alone say what elapsed.
BLIND: list[Event] = [
    (0, "viewstart", None, {}),
    (900, "playing", None, RATE),
    *beats(10_000, 300_000),
    (303_000, "viewend", None, {}),
]


def in_requests(beacons: list[Beacon], size: int) -> list[Beacon]:
    """The beacons in requests of so many, each sent with its last one; the first one is sent at once."""
    sent = list(beacons[:1])
    for begin in range(1, len(beacons), size):
        request = beacons[begin : begin + size]
        last = request[-1]
        if last.sent_time_ms is not None:
            offset_ms = last.recv_time_ms - last.client_time_ms
        else:
            offset_ms = last.recv_time_ms - max(one.client_time_ms for one in request)
        sent += [
            msgspec.structs.replace(
                one,
                recv_time_ms=last.recv_time_ms,
                clock_offset_ms=offset_ms,
                sent_time_ms=None if one.sent_time_ms is None else last.client_time_ms,
            )
            for one in request
        ]
    return sent


def counted(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["bitrate_time_ms"], row["gap_ms"], row["clock_step_count"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [MINUTE_MS, 45 * MINUTE_MS, 5 * HOUR_MS])
@pytest.mark.parametrize("at_s", [95, 105, 115, 125])
def test_a_clock_set_forward_while_beacons_wait_for_their_request(client: Client, by_ms: int, at_s: int) -> None:
    row = row_of(in_requests(story(client, BLIND, ((at_s * 1_000, by_ms),)), 3))
    assert counted(row) == (302_100, 0, 1)


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
@pytest.mark.parametrize("by_ms", [MINUTE_MS, 5 * HOUR_MS])
def test_a_clock_set_forward_after_the_second_beacon(client: Client, by_ms: int) -> None:
    events = [*BLIND[:2], (5_000, "heartbeat", None, {}), *BLIND[2:]]
    assert counted(row_of(story(client, events, ((7_000, by_ms),)))) == (302_100, 0, 1)


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
@pytest.mark.parametrize("by_ms", [9_000, 15_000, 29_000])
def test_a_clock_set_forward_by_little_without_a_playhead(client: Client, by_ms: int) -> None:
    assert counted(row_of(story(client, BLIND, ((105_000, by_ms),)))) == (302_100, 0, 1)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [-HOUR_MS, 5 * HOUR_MS])
def test_where_the_clock_steps_and_the_request_is_slow_the_playhead_says_what_elapsed(
    client: Client, by_ms: int
) -> None:
    beacons = story(client, played(10_000), ((144_000, by_ms),))
    at = next(
        number
        for number, one in enumerate(beacons)
        if abs(one.client_time_ms - beacons[0].client_time_ms) > HOUR_MS / 2
    )
    beacons[at] = delayed(beacons[at], 20_000)
    if client != "epas" or by_ms > 0:
        assert counted(row_of(beacons))[:2] == (302_100, 0)


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
def test_requests_that_become_quick_are_no_step(client: Client) -> None:
    """The first requests wait for the page: the usual delay is that of those after them."""
    beacons = story(client, BLIND)
    slow = [delayed(one, 9_000 - 3_000 * at) if at < 3 else one for at, one in enumerate(beacons)]
    assert counted(row_of(slow)) == (302_100, 0, 0)
    assert counted(row_of(in_requests(slow, 3))) == (302_100, 0, 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_sleep_between_two_requests_is_no_step(client: Client) -> None:
    row = row_of(in_requests(story(client, SLEPT), 3))
    assert counted(row) == (120_000, 2_400_000, 0)
