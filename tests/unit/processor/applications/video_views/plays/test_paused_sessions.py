"""CMCD sessions that pause, go on, and are used again while their plays close, in all weathers: each beacon is counted once."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.app import application
from services.processor.engine.driver import Driver, Weather
from shared import topics
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import (
    FAST_RULES,
    FASTER,
    HOUR_MS,
    MINUTE_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    mux,
    pipe,
    rows,
)
from tests.unit.processor.applications.video_views.counted import assert_each_is_counted_once, newest
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed

#: Beacons with the time of their arrival, ms after T0.
Story = list[tuple[int, Beacon]]
WEATHERS: tuple[Weather, ...] = ("calm", "crash after commit", "crash before commit")


def random_session(random_: random.Random) -> Story:
    """Plays with pauses between and within them, from seconds to hours; some of their beacons are lost."""
    story: Story = []
    at_ms, seq, content = 1_000, 0, "a"
    lost = random_.choice([0.0, 0.0, 0.15])
    for _ in range(random_.randint(1, 5)):
        kind = random_.choice(["restart", "restart", "content", "resume"])
        if kind == "restart":
            seq = 0
        elif kind == "content":
            content = random_.choice("abc")
        is_headless = kind == "restart" and random_.random() < 0.3
        for number in range(random_.randint(1, 6)):
            at_ms += random_.choice([1, 500, 10_000, 40_000])
            sta = "s" if number == 0 else random_.choice("ppprkae")
            beacon = cmcd(seq, "custom", at_ms, sta=sta, cid=content)
            seq += 1
            if not (is_headless and number == 0) and random_.random() >= lost:
                story.append((at_ms, beacon))
        at_ms += random_.choice([1_000, 7 * MINUTE_MS, 50 * MINUTE_MS, 70 * MINUTE_MS, 3 * HOUR_MS, 8 * HOUR_MS])
    return story or [(1_000, cmcd(0, "viewstart", 1_000, sta="s", cid="a"))]


def disordered(random_: random.Random, story: Story) -> Story:
    """The story as it arrives: some beacons later, by milliseconds or hours, some again."""
    arrivals = []
    for at_ms, beacon in story:
        delays = (0, 0, 0, 1, 2_000, 60_000, 20 * MINUTE_MS, 90 * MINUTE_MS, 4 * HOUR_MS)
        arrivals.append((at_ms + random_.choice(delays), beacon))
        while random_.random() < 0.2:
            arrivals.append((at_ms + random_.choice(delays), beacon))
    return sorted(arrivals, key=lambda arrival: arrival[0])


def driven(story: Story, weather: Weather) -> Driver:
    driver = Driver(application(FAST_RULES), weather)
    for at_ms, beacon in story:
        pipe(driver, beacon, at_ms // FASTER)
    driver.advance_to(T0 + story[-1][0] // FASTER + FAST_RULES.paused_ms + 5_000)
    return driver


def distinct(story: Story) -> int:
    return len({(beacon.seq, beacon.client_time_ms) for _, beacon in story})


@given(seed=st.integers(0, 1 << 32))
def test_every_beacon_is_counted_once_in_any_order_and_through_crashes(seed: int) -> None:
    random_ = random.Random(seed)
    story = disordered(random_, random_session(random_))
    drivers = [driven(story, weather) for weather in WEATHERS]
    assert_each_is_counted_once(drivers[0], len(story), distinct(story))
    outputs = [[driver.outputs(topic) for topic in (topics.VIEWS, topics.LATE, topics.LIVE)] for driver in drivers]
    assert outputs[1] == outputs[0]
    assert outputs[2] == outputs[0]


def play_of(at_ms: int, *seqs: int, content: str = "a") -> list[Beacon]:
    """Beacons a second apart, of which the first starts and the last ends."""
    states = ["s", *"p" * (len(seqs) - 2), "e"]
    return [
        cmcd(seq, "custom", at_ms + 1_000 * number, sta=sta, cid=content)
        for number, (seq, sta) in enumerate(zip(seqs, states, strict=True))
    ]


def test_a_whole_play_after_a_closed_one_is_a_view_though_its_first_beacon_is_lost(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in play_of(0, 0, 1, 2, 3):
        pipe(driver, beacon)
    # Only its numbers show that it began again, reported after the other play's end.
    for beacon in reversed(play_of(5 * HOUR_MS, 1, 2, 3, 4)[:3]):
        pipe(driver, beacon, 5 * HOUR_MS + 20_000)
    driver.advance_to(T0 + 8 * HOUR_MS)
    assert {view_id: (row.beacon_count, row.seq_gaps) for view_id, row in newest(driver).items()} == {
        "s1": (4, 0),
        "s1.2": (3, 1),
    }
    assert driver.outputs(topics.LATE) == []


def test_what_goes_on_with_the_numbers_of_a_closed_play_is_late(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in play_of(0, 0, 1, 2, 3):
        pipe(driver, beacon)
    late = play_of(5 * HOUR_MS, 4, 5)
    for beacon in [*late, *late]:
        pipe(driver, beacon, 5 * HOUR_MS + 20_000)
    driver.advance_to(T0 + 8 * HOUR_MS)
    assert list(newest(driver)) == ["s1"]
    assert_each_is_counted_once(driver, 8, 6)
    assert len(driver.outputs(topics.LATE)) == 2


def test_a_play_that_ended_closes_though_its_session_goes_on(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in play_of(0, 0, 1, 2, 3):
        pipe(driver, beacon)
    for number in range(200):
        pipe(driver, cmcd(number, "heartbeat", 60_000 + number * MINUTE_MS, sta="p", cid="a"))
    assert [row.view_id for row in rows(driver)] == ["s1"]
    assert driver.rows["closed"] == 1
    # It is late, not a revision: the session that goes on has not kept the play open.
    pipe(driver, cmcd(4, "heartbeat", 3_500, sta="p", cid="a"), 201 * MINUTE_MS)
    assert len(driver.outputs(topics.LATE)) == 1


def test_a_play_after_one_whose_run_is_closed_in_part_has_all_its_numbers(drive: Drive) -> None:
    driver = driver_of(drive)
    first, second = play_of(0, 0, 1, 2, 3), play_of(10_000, 7, 8, 9, content="b")
    for beacon in [*first, *second[:2]]:
        pipe(driver, beacon)
    for number in range(1, 40):
        pipe(driver, cmcd(8 + number, "heartbeat", 10_000 + number * 4 * MINUTE_MS, sta="p", cid="b"))
    assert driver.rows["closed"] == 1
    third = play_of(3 * HOUR_MS, 0, 1, 2, 3, 4, 5, 6, content="b")
    for beacon in third:
        pipe(driver, beacon)
    driver.advance_to(T0 + 8 * HOUR_MS)
    found = {view_id: (row.beacon_count, row.seq_gaps) for view_id, row in newest(driver).items()}
    assert found == {"s1": (4, 3), "s1.2": (41, 0), "s1.3": (7, 0)}
    assert driver.outputs(topics.LATE) == []


def test_what_is_late_in_a_session_is_known_after_a_crash(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in play_of(0, 0, 1, 2, 3):
        pipe(driver, beacon)
    # The play closes before, with a commit of its own.
    driver.advance_to(T0 + 2 * HOUR_MS + MINUTE_MS)
    late = cmcd(7, "heartbeat", 2_500, sta="p", cid="a")
    for number in range(3):
        pipe(driver, late, 3 * HOUR_MS + number * MINUTE_MS)
    driver.advance_to(T0 + 8 * HOUR_MS)
    assert_each_is_counted_once(driver, 7, 5)


NATIVE = [timed("native", "viewstart", 0), timed("native", "playing", 900), timed("native", "viewend", 5_000)]
EPAS = [timed("epas", "viewstart", 0), timed("epas", "playing", 900), timed("epas", "viewend", 5_000)]
MUX = [mux(1, "viewstart", 0), mux(2, "playing", 900), mux(4, "viewend", 5_000)]


@pytest.mark.parametrize(
    ("story", "late"),
    [
        (MUX, mux(3, "heartbeat", 1_000)),
        (NATIVE, timed("native", "heartbeat", 1_000)),
        (EPAS, timed("epas", "heartbeat", 1_000)),
        (play_of(0, 0, 1, 3), cmcd(2, "heartbeat", 1_500, sta="p", cid="a")),
    ],
)
def test_after_its_window_a_new_beacon_is_late_once_and_all_others_are_duplicates(
    drive: Drive, story: list[Beacon], late: Beacon
) -> None:
    driver = driver_of(drive)
    for beacon in story:
        pipe(driver, beacon)
    driver.advance_to(T0 + 2 * HOUR_MS + MINUTE_MS)
    for number, beacon in enumerate([late, *story, late, late]):
        pipe(driver, beacon, 3 * HOUR_MS + number)
    driver.advance_to(T0 + 5 * HOUR_MS)
    (row,) = rows(driver)
    assert (row.beacon_count, row.duplicate_count) == (3, 0)
    assert_each_is_counted_once(driver, 9, 4)
    assert len(driver.outputs(topics.LATE)) == 1


def test_a_row_whose_play_turns_out_to_be_of_others_is_taken_back(drive: Drive) -> None:
    driver = driver_of(drive)
    first = play_of(0, 0, 1, 3, 4)
    # Reported last, soon after the others and numbered between them, with another content: a play in their middle, until its run
    # is known.
    second = play_of(6_000, 0, 1, 2, content="b")
    for beacon in [*first, second[2]]:
        pipe(driver, beacon, 110_000)
    driver.advance_to(T0 + 30 * MINUTE_MS)
    assert list(newest(driver)) == ["s1", "s1.2", "s1.3"]
    for beacon in second[:2]:
        pipe(driver, beacon, 31 * MINUTE_MS)
    driver.advance_to(T0 + 5 * HOUR_MS)
    assert {view_id: row.beacon_count for view_id, row in newest(driver).items()} == {"s1": 4, "s1.2": 3}
    (taken_back,) = [row for row in rows(driver) if row.deleted]
    assert (taken_back.view_id, taken_back.revision, taken_back.day) == ("s1.3", 2, rows(driver)[0].day)
