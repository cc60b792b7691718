"""The time between beacons (docs/view.md, "Time, gaps and clocks"): sleep, clocks that step, lost and delayed beacons."""

import random
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, MINUTE_MS, SKEW_MS, T0, cmcd, mux
from tests.unit.processor.applications.video_views.test_any_order import row_of

Client = Literal["mux", "cmcd", "native", "epas"]
CLIENTS: tuple[Client, ...] = ("mux", "cmcd", "native", "epas")
#: What a CMCD client says of its state with the event.
STATES = {"viewstart": "s", "playing": "p", "rebufferstart": "r", "rebufferend": "p", "pause": "a", "viewend": "q"}
#: Where a clock differs from the true time: from when on (true ms), by how much.
Steps = tuple[tuple[int, int], ...]
#: True ms, event, playhead, attributes.
Event = tuple[int, str, int | None, dict[str, Any]]


def story(client: Client, events: Iterable[Event], steps: Steps = (), *, numbered: bool = True) -> list[Beacon]:
    """The beacons of a view, each sent at once, by a client whose clock has these steps."""
    beacons, state = [], "s"
    for number, (at_ms, event, playhead_ms, attrs) in enumerate(events):
        stepped_ms = sum(by_ms for from_ms, by_ms in steps if at_ms >= from_ms)
        state = STATES.get(event, state)
        more = {"sta": state} if client == "cmcd" else {}
        made = (
            cmcd(number, event, at_ms, **attrs, **more) if client == "cmcd" else mux(number + 1, event, at_ms, **attrs)
        )
        has_number = client in ("mux", "cmcd") or (client == "native" and numbered)
        beacons.append(
            msgspec.structs.replace(
                made,
                source=client,
                view_id="v1",
                seq=made.seq if has_number else None,
                source_event=attrs.get("name", event),
                playhead_ms=playhead_ms,
                client_time_ms=T0 + at_ms + stepped_ms,
                recv_time_ms=T0 + at_ms + SKEW_MS,
                sent_time_ms=T0 + at_ms + stepped_ms if client in ("mux", "native") else None,
                clock_offset_ms=SKEW_MS - stepped_ms,
            )
        )
    return beacons


def beats(from_ms: int, to_ms: int, every_ms: int = 10_000) -> list[Event]:
    return [(at_ms, "heartbeat", None, {}) for at_ms in range(from_ms, to_ms + 1, every_ms)]


RATE = {"video_source_bitrate": 2_000_000, "bitrate_bps": 2_000_000, "bitrate": 2_000, "br": [[2_000, "v"]]}
SLEPT: list[Event] = [
    (0, "viewstart", None, {}),
    (1_000, "playing", None, RATE),
    *beats(11_000, 61_000),
    *beats(2_461_000, 2_511_000),
    (2_521_000, "viewend", None, {}),
]


def times(row: dict[str, Any]) -> tuple[int, int, int, int, int]:
    """Playing as we integrate it, the same with a known bitrate, and what was not counted."""
    playing_ms = row["playing_ms"] if row["source"] != "mux" else row["bitrate_time_ms"]
    return playing_ms, row["bitrate_time_ms"], row["gap_ms"], row["gap_count"], row["clock_step_count"]


@pytest.mark.parametrize("client", CLIENTS)
def test_sleep_is_not_playing(client: Client) -> None:
    row = row_of(story(client, SLEPT))
    assert times(row) == (120_000, 120_000, 2_400_000, 1, 0)
    if client != "mux":
        assert row["watch_ms"] == 121_000
    # Every beacon of a numbered view came; without numbers some may have been lost in the silence.
    assert row["complete"] == (client != "epas")
    assert (row["view_start_ms"], row["view_end_ms"]) == (T0 + SKEW_MS, T0 + SKEW_MS + 2_521_000)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_mean_bitrate_is_that_of_what_played_and_not_of_the_sleep(client: Client) -> None:
    faster = {"video_source_bitrate": 3_800_000, "bitrate_bps": 3_800_000, "bitrate": 3_800, "br": [[3_800, "v"]]}
    asleep: list[Event] = [(61_000, "background", None, {"name": "devicesleep"})] if client == "mux" else []
    awake: list[Event] = [(2_461_000, "renditionchange" if client != "cmcd" else "heartbeat", None, faster)]
    row = row_of(story(client, [*SLEPT[:8], *asleep, *awake, *SLEPT[9:]]))
    assert (row["bitrate_time_ms"], row["bitrate_integral"]) == (120_000, 2_900_000 * 120_000)


def test_mux_says_that_the_device_sleeps_however_short() -> None:
    events: list[Event] = [
        (0, "viewstart", None, {}), (100, "playing", 0, RATE), *beats(10_000, 60_000),
        (60_100, "background", 60_000, {"name": "devicesleep"}), (100_100, "background", 60_000, {"name": "devicewake"}),
        (101_000, "viewend", 60_900, {"view_playing_time_ms_cumulative": 60_900}),
    ]  # fmt: skip
    assert times(row_of(story("mux", events))) == (60_900, 60_900, 40_000, 1, 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_lost_beacons_of_a_view_that_plays_on_are_no_gap_and_a_sleep_among_them_is(client: Client) -> None:
    start: list[Event] = [(0, "viewstart", 0, {}), (1_000, "playing", 0, RATE), (11_000, "heartbeat", 10_000, {})]
    lost = [*start, (211_000, "heartbeat", 209_500, {}), (221_000, "viewend", 219_500, {})]
    assert times(row_of(story(client, lost)))[1:] == (220_000, 0, 0, 0)
    slept = [*start, (711_000, "heartbeat", 60_000, {}), (721_000, "viewend", 70_000, {})]
    assert times(row_of(story(client, slept)))[1:] == (70_000, 650_000, 1, 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_of_a_live_stream_the_playhead_that_jumps_to_the_edge_is_no_witness_of_playing(client: Client) -> None:
    kind = {"video_source_is_live": True, "stream_type": "live", "live": True, "st": "l"}
    start: list[Event] = [
        (0, "viewstart", 0, kind),
        (1_000, "playing", 0, RATE),
        *((at, e, at - 1_000, a) for at, e, _, a in beats(11_000, 61_000)),
    ]
    # After 40 min of sleep the player shows the live edge, some seconds nearer than before.
    slept = [*start, (2_461_000, "heartbeat", 2_465_000, {}), (2_471_000, "viewend", 2_475_000, {})]
    assert times(row_of(story(client, slept)))[1:] == (70_000, 2_400_000, 1, 0)
    # What it had loaded was played before the sleep, and it stayed behind.
    behind = [*start, (2_461_000, "heartbeat", 90_000, {}), (2_471_000, "viewend", 100_000, {})]
    assert times(row_of(story(client, behind)))[1:] == (100_000, 2_370_000, 1, 0)


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
def test_a_view_that_plays_three_times_as_fast_has_no_gap_where_beacons_were_lost(client: Client) -> None:
    events: list[Event] = [(0, "viewstart", 0, {}), (1_000, "playing", 0, RATE), (11_000, "heartbeat", 30_000, {})]
    lost = [*events, (411_000, "heartbeat", 1_230_000, {}), (421_000, "viewend", 1_260_000, {})]
    assert times(row_of(story(client, lost)))[1:] == (420_000, 0, 0, 0)


@pytest.mark.parametrize("sleeps", [2, 5])
def test_sleeps_do_not_become_the_rhythm_of_heartbeats(sleeps: int) -> None:
    events: list[Event] = [(0, "viewstart", None, {}), (1_000, "playing", None, RATE), *beats(11_000, 31_000)]
    at_ms = 31_000
    for _ in range(sleeps):
        at_ms += 40 * MINUTE_MS
        events.append((at_ms, "heartbeat", None, {}))
    events.append((at_ms + 10_000, "viewend", None, {}))
    row = row_of(story("cmcd", events))
    assert (row["playing_ms"], row["gap_count"]) == (40_000, sleeps)


def test_a_client_that_sleeps_between_all_its_heartbeats_has_no_rhythm_of_sleeps() -> None:
    events: list[Event] = [(0, "viewstart", None, {}), (1_000, "playing", None, RATE)]
    events += [(1_000 + number * 40 * MINUTE_MS, "heartbeat", None, {}) for number in range(1, 6)]
    row = row_of(story("cmcd", events))
    assert row["gap_count"] == 5


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pause_and_slow_timers_are_no_gap(client: Client) -> None:
    events: list[Event] = [
        (0, "viewstart", None, {}), (1_000, "playing", None, RATE), *beats(61_000, 301_000, 60_000),
        (310_000, "pause", None, {}), (1_910_000, "playing", None, {}), (1_920_000, "viewend", None, {}),
    ]  # fmt: skip
    assert times(row_of(story(client, events)))[1:] == (319_000, 0, 0, 0)


def test_a_client_without_heartbeats_has_no_gaps_and_one_with_slow_ones_is_measured() -> None:
    silent: list[Event] = [(0, "viewstart", None, {}), (1_000, "playing", None, RATE), (1_501_000, "viewend", None, {})]
    assert times(row_of(story("cmcd", silent)))[1:] == (1_500_000, 0, 0, 0)
    slow = [*silent[:2], *beats(241_000, 1_441_000, 240_000), (2_041_000, "heartbeat", None, {}), silent[2]]
    assert times(row_of(story("cmcd", [*slow[:-1], (2_050_000, "viewend", None, {})])))[1:] == (2_049_000, 0, 0, 0)
    declared = [*silent[:1], (1_000, "playing", None, RATE | {"heartbeat_interval_ms": 600_000}), silent[2]]
    assert times(row_of(story("native", declared)))[1:] == (1_500_000, 0, 0, 0)


def test_requests_between_two_heartbeats_are_signs_of_life() -> None:
    events = [*SLEPT[:8], (1_261_000, "request", None, {"ttlb": 1_000}), *SLEPT[8:]]
    row = row_of(story("cmcd", events))
    assert (row["playing_ms"], row["gap_ms"]) == (1_319_000, 1_201_000)


def test_a_client_that_reports_requests_and_sends_no_heartbeats_buffers_for_ten_minutes_at_most() -> None:
    requests: list[Event] = [(at_ms, "request", None, {"ttlb": 500}) for at_ms in range(2_000, 62_000, 4_000)]
    events = [*SLEPT[:2], *requests, (2_461_000, "request", None, {"ttlb": 500}), SLEPT[-1]]
    row = row_of(story("cmcd", events))
    assert (row["playing_ms"], row["gap_ms"], row["gap_count"]) == (117_000, 2_403_000, 1)
    buffered = [*SLEPT[:2], *requests, (640_000, "viewend", None, {})]
    assert row_of(story("cmcd", buffered))["gap_ms"] == 0
    # One file in one request: the client has no rhythm.
    whole = [*SLEPT[:2], requests[0], SLEPT[-1]]
    assert row_of(story("cmcd", whole))["gap_ms"] == 0


def test_an_average_bitrate_is_that_of_playing_and_not_of_sleeping() -> None:
    events = [
        *SLEPT[:2],
        *beats(11_000, 31_000),
        (
            31_500,
            "rendition",
            None,
            RATE | {name: 2 * value if name != "br" else [[4_000, "v"]] for name, value in RATE.items()},
        ),
        *beats(41_000, 61_000),
        *beats(2_461_000, 2_461_000),
        (2_471_000, "viewend", None, {}),
    ]
    row = row_of(story("mux", events))
    assert row["avg_bitrate_bps"] == pytest.approx((30_500 * 2_000_000 + 39_500 * 4_000_000) / 70_000, rel=0.001)


STEPPED: list[Event] = [
    (0, "viewstart", None, {}),
    (900, "playing", None, RATE),
    (10_900, "heartbeat", None, {}),
    (20_900, "rebufferstart", None, {}),
    (23_900, "rebufferend", None, {}),
    *beats(33_900, 53_900),
    (63_900, "viewend", None, {}),
]


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


PAUSED: list[Event] = [
    (0, "viewstart", 0, {}),
    (900, "playing", 0, RATE),
    *((at_ms, "heartbeat", at_ms - 900, {}) for at_ms in range(10_900, 40_901, 10_000)),
    (45_900, "pause", 45_000, {}),
    (1_845_900, "playing", 45_000, {}),
    (1_855_900, "heartbeat", 55_000, {}),
    (1_865_900, "viewend", 65_000, {}),
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("by_ms", [5 * HOUR_MS, 2 * MINUTE_MS, 40_000])
def test_a_clock_that_is_set_forward_in_a_pause_makes_it_no_longer(client: Client, by_ms: int) -> None:
    plain, row = (row_of(story(client, PAUSED, steps)) for steps in ((), ((1_000_000, by_ms),)))
    assert (plain.pop("clock_step_count"), row.pop("clock_step_count")) == (0, 1)
    assert (row["bitrate_time_ms"], row["gap_ms"], row["view_end_ms"]) == (65_000, 0, T0 + SKEW_MS + 1_865_900)
    assert row == plain


STALLED: list[Event] = [
    (0, "viewstart", None, {}),
    (900, "playing", None, RATE),
    *beats(10_900, 40_900),
    (50_900, "rebufferstart", None, {}),
    (90_900, "rebufferend", None, {}),
    *beats(100_900, 140_900),
    (150_900, "viewend", None, {}),
]


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


PAUSED_ON: list[Event] = [(at_ms, "heartbeat", at_ms - 1_800_900, {}) for at_ms in range(1_875_900, 1_925_901, 10_000)]


@pytest.mark.parametrize("client", ["cmcd", "native", "epas"])
def test_a_clock_set_back_by_less_than_30_s_is_not_distinguished_from_a_slow_request(client: Client) -> None:
    row = row_of(story(client, STALLED, ((60_000, -25_000),)))
    assert (row["clock_step_count"], row["rebuffer_ms"]) == (0, 15_000)


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
