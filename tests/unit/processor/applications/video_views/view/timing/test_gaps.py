"""Sleeps and other silences (docs/view.md, "Gaps")."""

import pytest

from tests.unit.processor.applications.video_views.beacons import MINUTE_MS, SKEW_MS, T0
from tests.unit.processor.applications.video_views.test_any_order import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import (
    CLIENTS,
    RATE,
    SLEPT,
    Client,
    Event,
    beats,
    story,
    times,
)


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
