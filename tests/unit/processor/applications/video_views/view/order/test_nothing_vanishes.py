"""What was accepted ends in a row, in `late`, in `rejected` or in the count of dropped beacons, in any order and number."""

import random
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.bounds import (
    HELD_BYTES_MAX,
    HELD_STEPS_MAX,
    NUMBER_RANGES_MAX,
    VIEW_BYTES_MAX,
)
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    mux,
    pipe,
    rows,
)
from tests.unit.processor.applications.video_views.counted import assert_each_is_counted_once, newest


def spooled(heartbeats: int) -> list[Beacon]:
    """A view whose first POST comes last."""
    first = mux(1, "viewstart", 0, view_start=T0, video_id="film", view_watch_time=0)
    playing = mux(2, "playing", 400, view_time_to_first_frame=400, view_watch_time=400)
    rest = [mux(3 + n, "heartbeat", 1_000 * (n + 1), view_watch_time=1_000 * (n + 1)) for n in range(heartbeats)]
    return [*rest, mux(3 + heartbeats, "viewend", 1_000 * heartbeats + 500, video_id="film"), first, playing]


@pytest.mark.thorough
@pytest.mark.parametrize("heartbeats", [HELD_STEPS_MAX - 1, HELD_STEPS_MAX, HELD_STEPS_MAX + 1, 1_000])
def test_a_view_whose_viewstart_comes_after_hundreds_of_its_beacons_has_a_row(drive: Drive, heartbeats: int) -> None:
    driver = driver_of(drive)
    story = spooled(heartbeats)
    for number, beacon in enumerate(story):
        pipe(driver, beacon, 10_000 + number)
    driver.advance_to(T0 + 4 * HOUR_MS)
    assert_each_is_counted_once(driver, len(story), len(story))
    row = newest(driver)["v1"]
    assert (row.beacon_count, row.end_reason, row.video_id) == (len(story), "clean", "film")
    assert (row.view_start_ms, row.startup_ms, row.watch_ms) == (T0 + SKEW_MS, 400, 1_000 * heartbeats)
    # Up to the number that may wait the row is exact, and beyond it says that it is not.
    assert row.complete == (heartbeats < HELD_STEPS_MAX)


def test_a_view_whose_gap_is_given_up_before_its_viewstart_comes_has_a_row(drive: Drive) -> None:
    driver = driver_of(drive)
    waiting = [mux(2 + n, "heartbeat", 1_000 * n, custom_1=f"{n}" * 200) for n in range(2 * HELD_BYTES_MAX // 300)]
    for number, beacon in enumerate([*waiting, mux(1, "viewstart", 0, video_id="film")]):
        pipe(driver, beacon, 10_000 + number)
    driver.advance_to(T0 + 4 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.truncated, row.video_id, row.beacon_count) == (False, "film", len(waiting) + 1)
    assert (row.late_count, row.seq_gaps) == (1, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("gaps", [NUMBER_RANGES_MAX, 2 * NUMBER_RANGES_MAX])
def test_a_view_whose_viewstart_comes_after_more_gaps_than_are_remembered_has_a_row(drive: Drive, gaps: int) -> None:
    driver = driver_of(drive)
    every_second = [mux(2 * n, "heartbeat", 1_000 * n, view_watch_time=1_000 * n) for n in range(1, gaps + 2)]
    first = mux(1, "viewstart", 0, view_start=T0, video_id="film", view_watch_time=0)
    rest = [mux(2 * n + 1, "heartbeat", 1_000 * n + 500, view_watch_time=1_000 * n + 500) for n in range(1, gaps + 1)]
    # Each comes twice in the end: the last of them are known to be copies.
    for number, beacon in enumerate([*every_second, first, *rest, first, *rest]):
        pipe(driver, beacon, 10_000 + number)
    driver.advance_to(T0 + 4 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.video_id, row.view_start_ms) == ("film", T0 + SKEW_MS)
    assert (row.beacon_count, row.duplicate_count) == (2 * gaps + 2, gaps + 1)
    assert row.seq_gaps == 0


def lossy(source: str, minutes: int) -> list[Beacon]:
    """A long view of beacons as large as those of real players, of which one of the first never comes."""
    url = "https://cdn.example.com/content/2026/11/series-title/season-2/episode-07/master.m3u8"
    times = range(10_000, minutes * MINUTE_MS + 1, 10_000)
    if source == "mux":
        begun = [mux(1, "viewstart", 0, view_watch_time=0), mux(2, "playing", 0, view_watch_time=0)]
        texts = {"video_source_url": url, "page_url": url, "video_title": "A title"}
        story = [*begun, *(mux(2 + n, "heartbeat", at, view_watch_time=at, **texts) for n, at in enumerate(times, 1))]
    else:
        story = [cmcd(0, "viewstart", 0, sta="p", cid=url, view_id="v1")]
        story += [
            cmcd(n, "heartbeat", at, sta="p", cid=url, br=[[5000, "v"]], view_id="v1") for n, at in enumerate(times, 1)
        ]
    return [*story[:7], *story[8:]]


@pytest.mark.parametrize("source", ["mux", "cmcd"])
def test_one_lost_beacon_does_not_end_the_counting_of_a_long_view(source: str) -> None:
    story = lossy(source, minutes=120)
    driver = Driver(application(RULES))
    key = view_key("acme", "v1")
    arrivals = [(topics.BEACONS, key, codec.BEACON.encode(one), one.recv_time_ms) for one in story]
    driver.pipe_all(arrivals, commit_every=50)
    driver.advance_to(T0 + 8 * HOUR_MS)
    row = newest(driver)["v1"]
    assert (row.watch_ms, row.truncated) == (120 * MINUTE_MS, False)
    assert (row.beacon_count, row.seq_gaps, row.late_count, row.complete) == (len(story), 1, 0, False)
    assert max(len(value) for _, value in driver.changelog if value is not None) < VIEW_BYTES_MAX


def test_gaps_without_end_are_counted_and_cost_no_more_room() -> None:
    story = [
        mux(1, "viewstart", 0),
        *(mux(2 * n, "heartbeat", 1_000 * n, view_watch_time=1_000 * n) for n in range(1, 2_001)),
    ]
    driver = Driver(application(RULES))
    key = view_key("acme", "v1")
    arrivals = [(topics.BEACONS, key, codec.BEACON.encode(one), one.recv_time_ms) for one in story]
    driver.pipe_all(arrivals, commit_every=50)
    driver.advance_to(T0 + 8 * HOUR_MS)
    row = newest(driver)["v1"]
    assert (row.watch_ms, row.beacon_count, row.seq_gaps, row.complete) == (2_000_000, 2_001, 1_999, False)
    assert max(len(value) for _, value in driver.changelog if value is not None) < VIEW_BYTES_MAX


def story_of(random_: random.Random, source: Literal["mux", "cmcd", "epas", "native"], *, began: bool) -> list[Beacon]:
    """A view of up to some hundred beacons of which one alone says that it has begun; CMCD players repeat their state."""
    beacons = []
    for number in range(random_.choice([3, 70, 300])):
        event = "viewstart" if not number else random_.choice(["heartbeat", "rendition", "request", "custom", "pause"])
        seq = (
            None if source == "epas" or (source == "native" and random_.random() < 0.5) else number + (source != "cmcd")
        )
        attrs: dict[str, Any] = {"custom_1": "x" * random_.choice([0, 1, 400]), "number": number}
        if source == "cmcd":
            attrs = {"br": [[number, "v"]]} | ({"sta": "p" if number else "s"} if began and event != "request" else {})
        beacon = mux(seq or 0, event, number * 500, **attrs)
        beacons.append(msgspec.structs.replace(beacon, source=source, seq=seq))
    return beacons


@given(seed=st.integers(0, 1 << 32), source=st.sampled_from(["mux", "cmcd", "epas", "native"]))
def test_every_view_that_began_has_a_row_in_any_order_and_number(
    seed: int, source: Literal["mux", "cmcd", "epas", "native"]
) -> None:
    random_ = random.Random(seed)
    began = random_.random() < 0.8
    story = story_of(random_, source, began=began)[not began :]
    random_.shuffle(story)
    driver = Driver(application(RULES))
    key = view_key("acme", "v1")
    arrivals = [(topics.BEACONS, key, codec.BEACON.encode(one), T0 + MINUTE_MS + n) for n, one in enumerate(story)]
    driver.pipe_all(arrivals, commit_every=50)
    driver.advance_to(T0 + 4 * HOUR_MS)
    assert_each_is_counted_once(driver, len(story), len(story))
    found = newest(driver)
    assert bool(found) == began
    assert sum(row.beacon_count for row in found.values()) == (len(story) if began else 0)
