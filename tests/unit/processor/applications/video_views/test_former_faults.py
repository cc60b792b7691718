"""Faults that rows of real sessions once had, with the figures that they had, and how often."""

import random
from collections.abc import Iterable

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    T0,
    Drive,
    cmcd,
    mux,
)
from tests.unit.processor.applications.video_views.counted import newest
from tests.unit.processor.applications.video_views.row.test_definitions import row_of
from tests.unit.processor.applications.video_views.view.timing.stories import CLIENTS, Client, Event, Steps, story


def rows_of(views: Iterable[list[Beacon]]) -> list[View]:
    """The row of each view, all of them folded together."""
    named = [[msgspec.structs.replace(one, view_id=f"v{number}") for one in view] for number, view in enumerate(views)]
    driver = Driver(application(RULES))
    records = [
        (topics.BEACONS, view_key(one.customer_id, one.view_id), codec.BEACON.encode(one), T0 + MINUTE_MS)
        for view in named
        for one in view
    ]
    driver.pipe_all(records, commit_every=1_000)
    driver.advance_to(T0 + 8 * MINUTE_MS)
    found = newest(driver)
    return [found[f"v{number}"] for number in range(len(named))]


def test_a_bitrate_of_2_9_mbps_is_not_0_85_for_a_sleep_of_40_minutes() -> None:
    """Mux told of the sleep, and the row had 2,460,100 ms with a bitrate beside 60,100 ms of playing."""
    played_ms, slept_ms, down_ms = 60_100, 2_400_000, 57_368
    asleep = story("mux", [(played_ms, "background", played_ms, {"name": "devicesleep"})])[0]
    view = [
        mux(1, "viewstart", 0, playhead_ms=0),
        mux(2, "playing", 0, playhead_ms=0, video_source_bitrate=3_000_000),
        mux(3, "rendition", down_ms, playhead_ms=down_ms, video_source_bitrate=800_000),
        msgspec.structs.replace(asleep, seq=4),
        mux(5, "viewend", played_ms + slept_ms, view_playing_time_ms_cumulative=played_ms),
    ]
    (row,) = rows_of([view])
    assert (row.playing_ms, row.bitrate_time_ms, row.gap_ms) == (60_100, 60_100, 2_400_000)
    assert row.avg_bitrate_bps == pytest.approx(2_900_000, abs=100)
    # What it was with the sleep in it.
    wrong_bps = (row.bitrate_integral + 800_000 * slept_ms) / (played_ms + slept_ms)
    assert wrong_bps == pytest.approx(850_000, abs=5_000)


def random_events(chance: random.Random) -> list[Event]:
    """A view that plays, stalls and changes its rendition. Nothing gives a playhead."""
    at_ms = chance.randrange(200, 2_000)
    events: list[Event] = [(0, "viewstart", None, {}), (at_ms, "playing", None, {"video_source_bitrate": 2_000_000})]
    for _ in range(chance.randrange(4, 14)):
        at_ms += chance.randrange(1_000, 10_000)
        match chance.randrange(4):
            case 0:
                stalled_ms = chance.randrange(100, 9_000)
                events += [(at_ms, "rebufferstart", None, {}), (at_ms + stalled_ms, "rebufferend", None, {})]
                at_ms += stalled_ms
            case 1:
                events.append((at_ms, "rendition", None, {"video_source_bitrate": chance.choice([1, 4]) * 1_000_000}))
            case _:
                events.append((at_ms, "heartbeat", None, {}))
    return [*events, (at_ms + chance.randrange(1, 10_000), "viewend", None, {})]


@pytest.mark.thorough
def test_no_mux_row_of_807_has_a_wrong_bitrate_sum_for_a_clock_that_steps() -> None:
    """19 of 807 had."""
    chance = random.Random(807)
    lives = [random_events(chance) for _ in range(807)]
    steps: list[Steps] = [
        ((chance.randrange(1, events[-1][0]), chance.choice([-HOUR_MS, -2 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS])),)
        for events in lives
    ]
    plain = rows_of(story("mux", events) for events in lives)
    stepped = rows_of(story("mux", events, step) for events, step in zip(lives, steps, strict=True))
    wrong = [
        (one.bitrate_time_ms, other.bitrate_time_ms)
        for one, other in zip(plain, stepped, strict=True)
        if (one.bitrate_integral, one.bitrate_time_ms) != (other.bitrate_integral, other.bitrate_time_ms)
    ]
    assert wrong == []
    assert {row.clock_step_count for row in stepped} == {1}


def lossy(client: Client, chance: random.Random) -> list[Beacon]:
    """A view of 570 s of playing, without the beacon of its first frame; others are lost, too."""
    first_ms = chance.randrange(300, 3_000)
    events: list[Event] = [(0, "viewstart", 0, {}), (first_ms, "playing", 0, {})]
    for at_ms in range(30_000, 570_001, 30_000):
        played_ms = at_ms - first_ms
        events.append((at_ms, "heartbeat", played_ms, {"view_playing_time_ms_cumulative": played_ms}))
    beacons = story(client, events)
    return [one for at, one in enumerate(beacons) if at != 1 and (at in (0, 2) or chance.random() < 0.7)]


@pytest.mark.thorough
def test_no_row_of_696_whose_first_frame_was_lost_says_that_nothing_played() -> None:
    """12 of 696 lossy rows said `ebvs` beside 570 s of playing."""
    chance = random.Random(696)
    rows = rows_of(lossy(CLIENTS[number % len(CLIENTS)], chance) for number in range(696))
    assert len(rows) == 696
    assert {(row.ebvs, row.startup_failed, row.startup_ms) for row in rows} == {(False, False, None)}
    assert {row.startup_unknown for row in rows} == {"first_frame_lost"}
    # Not the time of the heartbeat that said so: it bounds the start.
    assert {row.startup_ms_max for row in rows} == {30_000}


def test_one_page_has_a_start_of_9_ms_by_mux_embed_and_of_520_by_cmcd_and_each_row_names_its_client(
    drive: Drive,
) -> None:
    """The element fires `play` when enough is loaded; hls.js begins when its source is attached."""
    by_mux = row_of(
        drive, [mux(1, "viewstart", 505), mux(2, "play", 511), mux(3, "playing", 520, view_time_to_first_frame=9)]
    )
    by_cmcd = row_of(drive, [cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 520, sta="p")])
    assert [(row.startup_ms, row.source) for row in (by_mux, by_cmcd)] == [(9, "mux"), (520, "cmcd")]
    assert (by_mux.player_measured, by_cmcd.player_measured) == (["startup_ms"], [])
