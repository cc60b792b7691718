"""Slow requests just after the clock stepped: what the witnesses decide, and by how much a row is wrong where none can."""

from typing import Final

import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import CLIENTS, Client, Event, Steps, story
from tests.unit.processor.applications.video_views.view.timing.test_clock_witnesses import delayed, played
from tests.unit.processor.applications.video_views.view.timing.test_steps_in_requests import BLIND, counted

PLAYED_MS = 302_100
#: Plays on, with heartbeats of 30 s and no playhead.
BLIND_SLOW: list[Event] = [one for one in BLIND if one[1] != "heartbeat" or not one[0] % 30_000]


def slow_after(
    client: Client, events: list[Event], steps: Steps, by_ms: int, *, count: int = 1, from_ms: int = 0
) -> list[Beacon]:
    """The story, with the first beacons after the step delayed by so much."""
    first = next(at for at, one in enumerate(events) if one[0] >= (from_ms or steps[0][0]))
    return [
        delayed(one, by_ms) if first <= at < first + count else one
        for at, one in enumerate(story(client, events, steps))
    ]


#: The time orders the beacons of EPAS: one that is slow after a step back has another place.
_STEPS: Final = tuple(
    (client, by_ms)
    for client in CLIENTS
    for by_ms in (-HOUR_MS, -40_000, 2 * MINUTE_MS, 5 * HOUR_MS)
    if client != "epas" or by_ms > 0
)


@pytest.mark.parametrize(("client", "by_ms"), _STEPS)
@pytest.mark.parametrize("delay_ms", [5_000, 40_000, 55_000, 3 * MINUTE_MS])
def test_the_playhead_says_what_elapsed_however_slow_the_request_was(client: Client, by_ms: int, delay_ms: int) -> None:
    row = row_of(slow_after(client, played(), ((140_000, by_ms),), delay_ms))
    # Where the request is slower than the step is long, the server's clock does not deny it: a gap, as far as is known.
    is_denied = not (by_ms == 2 * MINUTE_MS and delay_ms > by_ms)
    assert (row["bitrate_time_ms"], row["clock_step_count"]) == (PLAYED_MS, is_denied)
    # What is longer than any silence of this client may have been a sleep, in which nothing played.
    assert (row["gap_ms"] > 0) == (delay_ms == 3 * MINUTE_MS)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [-12_000, -20_000, -29_000])
@pytest.mark.parametrize("delay_ms", [5_000, 40_000, 3 * MINUTE_MS])
def test_a_step_that_playhead_and_server_deny_by_different_amounts_is_not_counted(
    client: Client, by_ms: int, delay_ms: int
) -> None:
    row = row_of(slow_after(client, played(), ((140_000, by_ms),), delay_ms))
    assert counted(row) == (PLAYED_MS, 0, 1)


def test_a_live_stream_that_goes_on_at_its_edge_after_a_slow_request_is_no_step() -> None:
    kind = {"video_source_is_live": True}
    events = [(at, event, playhead, attrs | kind) for at, event, playhead, attrs in played(10_000)]
    at = next(at for at, one in enumerate(events) if one[0] >= 140_000)
    jumped = [
        (at_ms, event, (playhead or 0) + (15_000 if number >= at else 0), attrs)
        for number, (at_ms, event, playhead, attrs) in enumerate(events)
    ]
    row = row_of(slow_after("mux", jumped, (), 20_000, from_ms=140_000))
    assert (row["bitrate_time_ms"], row["clock_step_count"]) == (PLAYED_MS, 0)


@pytest.mark.parametrize("client", ["mux", "cmcd", "native"])
@pytest.mark.parametrize("delay_ms", [20_000, 45_000, 75_000])
def test_without_a_playhead_the_requests_after_it_show_that_one_was_slow(client: Client, delay_ms: int) -> None:
    row = row_of(slow_after(client, BLIND, ((144_000, -HOUR_MS),), delay_ms))
    assert row["bitrate_time_ms"] == pytest.approx(PLAYED_MS, abs=8_000)
    assert (row["gap_ms"], row["clock_step_count"]) == (0, 1)
    # Its end is where it is.
    assert row["view_end_ms"] - row["view_start_ms"] == pytest.approx(303_000, abs=8_000)


#: Events, steps, the delay of requests after the first step, how many; how much longer the row is than what played.
UNDECIDED: dict[str, tuple[list[Event], Steps, int, int, int]] = {
    "back by less than 30 s, and no playhead": (BLIND_SLOW, ((145_000, -25_000),), 0, 0, -25_000),
    "back before the last beacon, and no playhead": (BLIND_SLOW, ((301_000, -2_500),), 0, 0, -2_500),
    "back by more than 30 s, less than three beacons before the end": (
        [*BLIND_SLOW[:-2], (360_000, "viewend", None, {})],
        ((271_000, -80_000),),
        0,
        0,
        -80_000,
    ),
    "forward, by less than the request after it was slow": (BLIND, ((144_000, 40_000),), 60_000, 1, 40_000),
    "the same with a playhead: a stall that nothing reports": (played(), ((140_000, 40_000),), 60_000, 1, 40_000),
    "back, and the next two requests were slow alike": (BLIND, ((144_000, -HOUR_MS),), 60_000, 2, 60_000),
    "back, and the next request was slow by minutes: a sleep": (BLIND, ((144_000, -HOUR_MS),), 180_000, 1, -10_000),
    "two steps that cancel each other between two beacons": (BLIND, ((144_000, -HOUR_MS), (146_000, HOUR_MS)), 0, 0, 0),
    "three within seconds, together back by less than 30 s": (
        BLIND_SLOW,
        ((143_000, -HOUR_MS), (145_000, -20_000), (146_000, HOUR_MS)),
        0,
        0,
        -20_000,
    ),
}


@pytest.mark.parametrize("case", UNDECIDED.values(), ids=list(UNDECIDED))
@pytest.mark.parametrize("client", ["mux", "cmcd", "native"])
def test_where_no_witness_decides_the_row_is_wrong_by_as_much_as_is_said(
    client: Client, case: tuple[list[Event], Steps, int, int, int]
) -> None:
    events, steps, delay_ms, count, wrong_ms = case
    row = row_of(slow_after(client, events, steps, delay_ms, count=count))
    assert row["bitrate_time_ms"] - (events[-1][0] - 900) == wrong_ms
