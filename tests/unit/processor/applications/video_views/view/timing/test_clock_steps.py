"""Clocks that step (docs/view.md, "Elapsed time and clock steps")."""

import msgspec
import pytest

from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, SKEW_MS, T0, cmcd
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import (
    CLIENTS,
    PAUSED,
    PAUSED_ON,
    STALLED,
    STEPPED,
    Client,
    Event,
    story,
)


@pytest.mark.parametrize("client", ["mux", "cmcd", "native"])
@pytest.mark.parametrize("from_ms", [500, 15_000, 22_000, 40_000])
@pytest.mark.parametrize("by_ms", [-HOUR_MS, 5 * HOUR_MS, -2 * MINUTE_MS, 2 * MINUTE_MS])
def test_a_step_of_the_clock_is_not_counted(client: Client, from_ms: int, by_ms: int) -> None:
    plain, row = (row_of(story(client, STEPPED, steps)) for steps in ((), ((from_ms, by_ms),)))
    assert (plain.pop("clock_step_count"), row.pop("clock_step_count")) == (0, 1)
    assert (row["bitrate_time_ms"], row["complete"], row["view_end_ms"]) == (60_000, True, T0 + SKEW_MS + 63_900)
    if client != "mux":
        assert (row["startup_ms"], row["watch_ms"], row["rebuffer_ms"]) == (900, 63_900, 3_000)
    assert row == plain


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [5 * HOUR_MS, 2 * MINUTE_MS, 40_000])
def test_a_clock_that_is_set_forward_in_a_pause_makes_it_no_longer(client: Client, by_ms: int) -> None:
    plain, row = (row_of(story(client, PAUSED, steps)) for steps in ((), ((1_000_000, by_ms),)))
    assert (plain.pop("clock_step_count"), row.pop("clock_step_count")) == (0, 1)
    assert (row["bitrate_time_ms"], row["gap_ms"], row["view_end_ms"]) == (65_000, 0, T0 + SKEW_MS + 1_865_900)
    assert row == plain


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
@pytest.mark.parametrize("by_ms", [35_000, 50_000])
def test_a_short_step_forward_is_seen_without_a_playhead(client: Client, by_ms: int) -> None:
    plain, row = (row_of(story(client, STALLED, steps)) for steps in ((), ((60_000, by_ms),)))
    assert (plain.pop("clock_step_count"), row.pop("clock_step_count")) == (0, 1)
    assert (row["rebuffer_ms"], row["watch_ms"]) == (40_000, 150_900)
    assert row == plain


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clock_that_is_set_back_by_less_than_the_time_that_passed_is_seen_by_the_beacons_after_it(
    client: Client,
) -> None:
    row = row_of(story(client, STALLED, ((60_000, -35_000),)))
    assert (row["clock_step_count"], row["gap_ms"], row["gap_count"]) == (1, 35_000, 1)
    assert row["bitrate_time_ms"] == 110_000
    if client != "mux":
        assert (row["rebuffer_ms"], row["watch_ms"]) == (5_000, 115_900)
    assert row["view_end_ms"] == T0 + SKEW_MS + 150_900
    paused = row_of(story(client, PAUSED + PAUSED_ON, ((1_000_000, -10 * MINUTE_MS),)))
    assert (paused["clock_step_count"], paused["gap_ms"]) == (1, 0)
    assert paused["view_end_ms"] == T0 + SKEW_MS + 1_925_900


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
@pytest.mark.parametrize("by_ms", [10_000, 25_000])
def test_a_clock_set_back_by_less_than_30_s_sends_the_very_beacons_of_a_client_whose_requests_became_slow(
    client: Client, by_ms: int
) -> None:
    """No rule can tell the two apart, so the row is that of slow requests: short by the step where the clock was set."""
    at_ms = 60_000
    set_back = story(client, STALLED, ((at_ms, -by_ms),))
    right = story(client, [(at - by_ms if at >= at_ms else at, event, p, attrs) for at, event, p, attrs in STALLED])
    slow = [
        msgspec.structs.replace(
            one, recv_time_ms=one.recv_time_ms + by_ms, clock_offset_ms=(one.clock_offset_ms or 0) + by_ms
        )
        if event[0] >= at_ms
        else one
        for event, one in zip(STALLED, right, strict=True)
    ]
    assert slow == set_back
    row = row_of(slow)
    assert (row["clock_step_count"], row["gap_ms"]) == (0, 0)
    assert (row["rebuffer_ms"], row["watch_ms"]) == (40_000 - by_ms, 150_900 - by_ms)


def test_a_request_does_not_end_a_view_whose_clock_stepped() -> None:
    events = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(1, "playing", 500, sta="p"),
        # Begun by the clock that is 10 min fast: the next beacon shows the step.
        cmcd(2, "request", 602_000, sta="p"),
        cmcd(3, "heartbeat", 610_500, sta="p"),
    ]
    stepped = [
        msgspec.structs.replace(one, recv_time_ms=one.recv_time_ms - 600_000, clock_offset_ms=SKEW_MS - 600_000)
        for one in events[2:]
    ]
    row = row_of([*events[:2], *stepped])
    assert (row["clock_step_count"], row["view_end_ms"] - row["view_start_ms"]) == (1, 10_500)


@pytest.mark.parametrize(("client", "numbered"), [("epas", False), ("native", False), ("native", True)])
def test_a_view_whose_order_by_time_is_wrong_is_not_complete(client: Client, numbered: bool) -> None:
    """Where beacons have no numbers, one that was sent after the clock was set back comes first: too little shows the step."""
    events: list[Event] = [
        (0, "viewstart", 0, {}),
        (1_000, "playing", 0, {}),
        *((at_ms, "heartbeat", at_ms - 1_000, {}) for at_ms in range(11_000, 120_000, 10_000)),
        (121_000, "viewend", 120_000, {}),
    ]
    row = row_of(story(client, events, ((120_500, -HOUR_MS),), numbered=numbered))
    assert (row["complete"], row["watch_ms"] == 121_000) == (numbered, numbered)
    seen = row_of(story(client, events, ((60_000, -HOUR_MS),), numbered=numbered))
    assert (seen["clock_step_count"], seen["complete"], seen["watch_ms"]) == (1, True, 121_000)
    forward = row_of(story(client, events, ((60_000, HOUR_MS),), numbered=numbered))
    assert (forward["clock_step_count"], forward["complete"], forward["watch_ms"]) == (1, True, 121_000)
