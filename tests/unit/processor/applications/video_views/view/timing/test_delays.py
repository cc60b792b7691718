"""Beacons that are delayed or come twice, beside steps of the clock: what elapsed is the same in any order."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, SKEW_MS, T0
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import (
    CLIENTS,
    RATE,
    SLEPT,
    STALLED,
    STEPPED,
    Client,
    Event,
    story,
    times,
)


@pytest.mark.parametrize("client", CLIENTS)
def test_beacons_that_waited_for_a_connection_show_no_step(client: Client) -> None:
    """The connection is lost for 80 s in a stall; then all that waited is sent, each in a request of its own."""
    beacons = story(client, STALLED)
    for at in range(6, len(beacons)):
        recv_ms = max(T0 + 130_000 + 20 * at, beacons[at].recv_time_ms)
        sent_ms = None if beacons[at].sent_time_ms is None else recv_ms - SKEW_MS
        offset_ms = SKEW_MS if sent_ms is not None else recv_ms - beacons[at].client_time_ms
        beacons[at] = msgspec.structs.replace(
            beacons[at], recv_time_ms=recv_ms, sent_time_ms=sent_ms, clock_offset_ms=offset_ms
        )
    row = row_of(beacons)
    assert (row["clock_step_count"], row["gap_ms"], row["bitrate_time_ms"]) == (0, 0, 110_000)


def test_a_step_among_beacons_that_wait_for_one_request_is_not_counted() -> None:
    """mux-embed collects beacons for 10 s: those of before the step travel with an offset of after it."""
    for by_ms in (-HOUR_MS, 5 * HOUR_MS):
        beacons = story("mux", [(at, e, at, a) for at, e, _, a in STEPPED], ((40_000, by_ms),))
        for at in (4, 5, 6):
            beacons[at] = msgspec.structs.replace(
                beacons[at], recv_time_ms=T0 + 43_900 + SKEW_MS, clock_offset_ms=SKEW_MS - by_ms
            )
        row = row_of(beacons)
        assert (row["bitrate_time_ms"], row["gap_ms"], row["clock_step_count"]) == (60_000, 0, 1)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_delivered_late_is_no_step(client: Client, at_once: bool) -> None:
    """All of a view is delivered after an hour: in one request, or in one request each, in quick succession."""
    beacons = story(client, [event for event in SLEPT if event[0] < 70_000])
    late = []
    for number, beacon in enumerate(beacons):
        recv_ms = T0 + HOUR_MS + (0 if at_once else 20 * number)
        latest_ms = beacons[-1].client_time_ms if at_once else beacon.client_time_ms
        sent_ms = None if beacon.sent_time_ms is None else recv_ms - SKEW_MS
        offset_ms = recv_ms - (latest_ms if sent_ms is None else sent_ms)
        late.append(
            msgspec.structs.replace(beacon, recv_time_ms=recv_ms, sent_time_ms=sent_ms, clock_offset_ms=offset_ms)
        )
    assert times(row_of(late)) == (60_000, 60_000, 0, 0, 0)


def any_story(seed: int) -> list[Beacon]:
    """A view with sleeps, pauses, stalls, lost beacons and steps of its clock."""
    random_ = random.Random(seed)
    client = random_.choice(CLIENTS)
    events: list[Event] = [(0, "viewstart", 0, {}), (700, "playing", 0, RATE)]
    at_ms, playhead_ms = 700, 0
    for _ in range(random_.randint(2, 14)):
        took_ms = random_.choice([100, 3_000, 10_000, 10_000, 10_000, 25_000, 80_000, 400_000, 2_400_000])
        at_ms += took_ms
        playhead_ms += random_.choice([0, took_ms])
        event = random_.choice(["heartbeat", "heartbeat", "playing", "pause", "rebufferstart", "background", "request"])
        names = {"background": "devicesleep"}
        attrs = {"name": names[event]} if event in names else {}
        events.append((at_ms, event, random_.choice([None, playhead_ms]), attrs))
    hours = [random_.choice([-HOUR_MS, 5 * HOUR_MS, 45_000]) for _ in range(random_.randint(0, 2))]
    steps = tuple((random_.randint(1, at_ms), by_ms) for by_ms in hours)
    beacons = story(client, events, steps, numbered=random_.random() < 0.8)
    # Some players give no send time.
    is_stamped = random_.random() < 0.6
    return beacons if is_stamped else [msgspec.structs.replace(one, sent_time_ms=None) for one in beacons]


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_the_row_follows_from_the_set_of_beacons_and_the_copy_received_first_counts(
    seed: int, data: st.DataObject
) -> None:
    beacons = any_story(seed)
    copies = []
    for beacon in data.draw(st.lists(st.sampled_from(beacons), max_size=4)):
        delay_ms = data.draw(st.integers(-3_000, 40_000))
        copies.append(
            msgspec.structs.replace(
                beacon,
                recv_time_ms=beacon.recv_time_ms + delay_ms,
                clock_offset_ms=(beacon.clock_offset_ms or 0) + delay_ms,
            )
        )
    shuffled = data.draw(st.permutations([*beacons, *copies]))
    assert row_of(shuffled) == row_of([*beacons, *copies])


@pytest.mark.parametrize("client", ["mux", "cmcd", "native", "epas"])
def test_of_a_player_without_send_times_the_copy_received_first_counts_in_any_order(client: Client) -> None:
    beacons = [msgspec.structs.replace(one, sent_time_ms=None) for one in story(client, STALLED, ((60_000, 35_000),))]
    copies = []
    for one in beacons[1:7]:
        delay_ms = 20_000 if one in beacons[:5] else 28_000
        late = msgspec.structs.replace(one, recv_time_ms=one.recv_time_ms + delay_ms)
        copies.append(msgspec.structs.replace(late, clock_offset_ms=(late.clock_offset_ms or 0) + delay_ms))
    row = row_of(beacons)
    assert (row["clock_step_count"], row["view_end_ms"]) == (1, T0 + SKEW_MS + 150_900)
    for order in ([*beacons, *copies], [*copies, *beacons], [beacons[0], *copies, *beacons[1:]]):
        assert row_of(order) == row


def test_a_copy_of_a_beacon_that_waits_for_a_gap_changes_the_row_where_the_clock_stepped() -> None:
    events: list[Event] = [(0, "viewstart", None, {}), (1_000, "playing", None, {}), (20_000, "viewend", None, {})]
    # The beacon numbered 1 was lost: all others wait for it.
    beacons = [
        msgspec.structs.replace(one, seq=(one.seq or 0) + 1) for one in story("mux", events, ((5_000, -HOUR_MS),))
    ]
    delayed = msgspec.structs.replace(beacons[-1], recv_time_ms=beacons[-1].recv_time_ms + 400)
    delayed = msgspec.structs.replace(delayed, clock_offset_ms=(delayed.clock_offset_ms or 0) + 400)
    at_once, after = [*beacons[:-1], beacons[-1]], [*beacons[:-1], delayed, beacons[-1]]
    row = row_of(at_once)
    assert (row["view_end_ms"] - row["view_start_ms"], row["clock_step_count"]) == (20_000, 1)
    # The copy comes after the view has finished.
    assert row_of(after, [(0.7, 10 * MINUTE_MS)]) == row
