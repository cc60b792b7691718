"""What witnesses a step of the client's clock, and a sleep of a client whose rhythm is not known yet."""

import random
from typing import Any

import msgspec
import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, SKEW_MS, T0
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import (
    CLIENTS,
    RATE,
    Client,
    Event,
    beats,
    story,
)

SLEEP_MS = 20 * MINUTE_MS


def played(every_ms: int = 30_000, rate: float = 1.0, until_ms: int = 300_000) -> list[Event]:
    """A view that plays at this rate of the playhead."""

    def at(at_ms: int, event: str) -> Event:
        return (at_ms, event, round(rate * (at_ms - 900)), {})

    starts: list[Event] = [(0, "viewstart", 0, {}), (900, "playing", 0, RATE)]
    times_ms = range(900 + every_ms, until_ms, every_ms)
    return [*starts, *(at(at_ms, "heartbeat") for at_ms in times_ms), at(until_ms + 3_000, "viewend")]


def delayed(beacon: Beacon, by_ms: int) -> Beacon:
    """The beacon, whose request took longer by so much."""
    offset_ms = (beacon.clock_offset_ms or 0) + by_ms
    return msgspec.structs.replace(beacon, recv_time_ms=beacon.recv_time_ms + by_ms, clock_offset_ms=offset_ms)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("rate", "by_ms"),
    [(1, -29_000), (1, -20_000), (1, -12_000), (1, 9_000), (1, 25_000), (0.75, -12_000), (1.5, 9_000), (2, -20_000)],
)
def test_a_short_step_that_playhead_and_server_deny_is_not_counted(client: Client, rate: float, by_ms: int) -> None:
    events = played(rate=rate)
    plain, row = (row_of(story(client, events, steps)) for steps in ((), ((140_000, by_ms),)))
    assert (plain.pop("clock_step_count"), row.pop("clock_step_count")) == (0, 1)
    assert row["bitrate_time_ms"] == 302_100
    assert row == plain


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [-12_000, 9_000])
def test_a_short_step_is_seen_between_two_heartbeats_of_ten_seconds(client: Client, by_ms: int) -> None:
    events = played(every_ms=13_000)
    plain, row = (row_of(story(client, events, steps)) for steps in ((), ((140_000, by_ms),)))
    assert (plain.pop("clock_step_count"), row.pop("clock_step_count")) == (0, 1)
    assert row == plain


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("rate", "every_ms"), [(0.75, 30_000), (1, 10_000), (1, 30_000), (1.5, 10_000), (2, 30_000)])
def test_slow_requests_and_stalls_that_nothing_reports_are_no_steps(client: Client, rate: float, every_ms: int) -> None:
    for seed in range(4):
        random_ = random.Random(seed)
        stalled_ms = 0
        events: list[Event] = []
        for at_ms, event, playhead_ms, attrs in played(every_ms, rate):
            if event == "heartbeat" and random_.random() < 0.2:
                stalled_ms += random_.randint(2_000, every_ms)
            events.append((at_ms, event, max(0, (playhead_ms or 0) - round(rate * stalled_ms)), attrs))
        beacons = story(client, events)
        slow = [
            one if number < 3 or random_.random() < 0.7 else delayed(one, random_.randint(2_000, 28_000))
            for number, one in enumerate(beacons)
        ]
        plain, row = row_of(beacons), row_of(slow)
        assert row["clock_step_count"] == 0
        assert row["bitrate_time_ms"] == plain["bitrate_time_ms"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("rate", "delay_ms"), [(1.5, 25_000), (2, 11_000), (2, 13_000), (2, 25_000), (3, 25_000)])
def test_a_slow_request_at_the_beginning_of_a_view_that_plays_faster_is_no_step(
    client: Client, rate: float, delay_ms: int
) -> None:
    """No rate of the playhead is measured yet: at rate 1 both witnesses would say that more has elapsed."""
    beacons = story(client, played(every_ms=10_000, rate=rate))
    beacons[2] = delayed(beacons[2], delay_ms)
    row = row_of(beacons)
    assert (row["bitrate_time_ms"], row["gap_ms"], row["clock_step_count"]) == (302_100, 0, 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_step_back_at_the_beginning_is_seen_where_no_rate_explains_the_playhead(client: Client) -> None:
    row = row_of(story(client, played(), ((20_000, -29_000),)))
    assert (row["bitrate_time_ms"], row["clock_step_count"]) == (302_100, 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_of_a_short_step_the_copy_received_first_counts_in_any_order(client: Client) -> None:
    beacons = story(client, played(), ((140_000, -20_000),))
    plain = row_of(beacons)
    assert plain["clock_step_count"] == 1
    copies = [delayed(one, 6_500) for one in beacons[3:8]]
    for order in ([*beacons, *copies], [*copies, *beacons], [beacons[0], *copies, *beacons[1:]]):
        assert row_of(order) == plain


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clock_that_was_set_back_is_seen_ten_seconds_later(client: Client) -> None:
    """By less than the time that passed in a pause, where no playhead advances: three beacons in ten seconds show it."""
    events: list[Event] = [
        (0, "viewstart", 0, {}),
        (900, "playing", 0, RATE),
        *((at_ms, "heartbeat", at_ms - 900, {}) for at_ms in range(10_900, 40_901, 10_000)),
        (45_900, "pause", 45_000, {}),
        (645_900, "playing", 45_000, {}),
        *((645_900 + at_ms, "heartbeat", 45_000 + at_ms, {}) for at_ms in range(5_000, 15_000, 5_000)),
        (660_900, "viewend", 60_000, {}),
    ]
    plain, row = (row_of(story(client, events, steps)) for steps in ((), ((300_000, -2 * MINUTE_MS),)))
    assert (plain["clock_step_count"], row["clock_step_count"]) == (0, 1)
    assert (row["bitrate_time_ms"], row["gap_ms"], row["view_end_ms"]) == (60_000, 0, plain["view_end_ms"])


@pytest.mark.parametrize("client", ["cmcd", "epas"])
def test_beacons_of_one_delayed_request_show_no_step(client: Client) -> None:
    """Of a client without send times the delays of one request's beacons are the same, however long they waited."""
    events: list[Event] = [
        (0, "viewstart", None, {}),
        (900, "rebufferstart", None, {}),
        *beats(10_900, 140_900),
        (150_900, "viewend", None, {}),
    ]
    beacons = story(client, events)
    for at in range(6, 11):
        beacons[at] = delayed(beacons[at], 45_000)
        beacons[at] = msgspec.structs.replace(beacons[at], recv_time_ms=T0 + SKEW_MS + 165_000)
    row = row_of(beacons)
    assert (row["clock_step_count"], row["gap_ms"], row["watch_ms"]) == (0, 0, 150_900)


def end_of(by_ms: int, beacons_after: int) -> dict[str, Any]:
    """Of an EPAS view of two minutes, whose clock was set so many beacons before the end."""
    events = played(until_ms=120_000)
    from_ms = events[-beacons_after][0] - 100
    return row_of(story("epas", events, ((from_ms, by_ms),)))


@pytest.mark.parametrize("beacons_after", [1, 2, 3])
@pytest.mark.parametrize("by_ms", [-HOUR_MS, -2 * MINUTE_MS, -60_000, -45_000, -20_000])
def test_a_clock_set_back_before_the_end_leaves_no_view_complete_that_is_ordered_by_time(
    by_ms: int, beacons_after: int
) -> None:
    row = end_of(by_ms, beacons_after)
    assert row["clock_step_count"] > 0 or not row["complete"]


@pytest.mark.parametrize("by_ms", [2_000, 8_000])
def test_an_end_whose_request_was_slow_leaves_the_view_complete(by_ms: int) -> None:
    beacons = story("epas", played(until_ms=120_000))
    for number in range(len(beacons)):
        slow = [delayed(one, by_ms) if at == number else one for at, one in enumerate(beacons)]
        assert row_of(slow)["complete"]
    assert end_of(0, 1)["complete"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("state", ["starting", "stalled"])
def test_a_sleep_before_the_first_heartbeat_is_no_start_and_no_stall(client: Client, state: str) -> None:
    stalled: list[Event] = [(500, "playing", 0, RATE), (900, "rebufferstart", 400, {})]
    over = "playing" if state == "starting" or client == "cmcd" else "rebufferend"
    first_ms = 1_500 + SLEEP_MS
    events: list[Event] = [
        (0, "viewstart", 0, {}),
        *(stalled if state == "stalled" else []),
        (first_ms, over, None, RATE),
        *((first_ms + at_ms, e, None, a) for at_ms, e, _, a in beats(10_000, 60_000)),
        (first_ms + 65_000, "viewend", None, {}),
    ]
    row = row_of(story(client, events))
    assert (row["gap_count"], row["clock_step_count"]) == (1, 0)
    if client != "mux":
        startup_ms, stalled_ms = (0, 0) if state == "starting" else (500, 0)
        assert (row["startup_ms"], row["rebuffer_ms"]) == (startup_ms, stalled_ms)
        assert row["watch_ms"] == startup_ms + stalled_ms + 65_000 + (400 if state == "stalled" else 0)


def test_requests_of_the_player_witness_a_long_start() -> None:
    requests: list[Event] = [(at_ms, "request", None, {"ttlb": 500}) for at_ms in range(2_000, SLEEP_MS, 60_000)]
    first_frame: Event = (SLEEP_MS, "playing", None, RATE)
    events: list[Event] = [(0, "viewstart", None, {}), *requests, first_frame, (SLEEP_MS + 9, "viewend", None, {})]
    row = row_of(story("cmcd", events))
    assert (row["startup_ms"], row["gap_count"]) == (SLEEP_MS, 0)
