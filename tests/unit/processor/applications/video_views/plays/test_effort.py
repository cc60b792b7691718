"""What it takes to arrange a session's plays: little for each beacon, whatever its delay and that of those before it."""

import random
from collections.abc import Iterable
from functools import partial

import msgspec
import pytest

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import (
    ARRANGED_STEPS_MAX,
    HELD_STEPS_MAX,
    RECENT_STEPS_MAX,
    SESSION_STEPS_MAX,
)
from services.processor.applications.video_views.plays.arrangement import arranged
from services.processor.applications.video_views.plays.runs import Falls, are_of_two_runs
from services.processor.applications.video_views.view.order.set_back import found_in
from services.processor.applications.video_views.view.progress.fold_step import fold
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.topics import Topic
from tests.calls import calls_of
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    SKEW_MS,
    T0,
    application,
    cmcd,
    folded_fast,
)
from tests.unit.processor.applications.video_views.counted import assert_each_is_counted_once, newest
from tests.unit.processor.applications.video_views.plays.test_plays_generated import delayed, play


def any_steps(numbers: Iterable[int], seed: int, *, over_ms: int) -> list[Step]:
    """Steps with these numbers and any times, received next to each other; few are not timed."""
    random_ = random.Random(seed)
    times = [(number, random_.randrange(over_ms)) for number in numbers]
    return [
        Step(
            number,
            T0 + at_ms,
            T0 + over_ms + 5 * n,
            T0 + over_ms + 5 * n,
            reported_ms=T0 + at_ms,
            is_timed=random_.random() < 0.95,
        )
        for n, (number, at_ms) in enumerate(times)
    ]


@pytest.mark.parametrize("over_ms", [20_000, 70_000, HOUR_MS])
def test_steps_of_other_runs_are_those_that_a_comparison_of_each_pair_finds(over_ms: int) -> None:
    found = 0
    for seed in range(20):
        steps = any_steps(random.Random(seed).choices(range(300), k=60), seed, over_ms=over_ms)
        if seed % 2:
            # As if they were received when they were sent: their delays are about the same.
            steps = [msgspec.structs.replace(one, server_ms=one.at_ms + one.seq * 30) for one in steps]
        falls = Falls(steps)
        for at, one in enumerate(steps):
            others = {n for n, other in enumerate(steps) if are_of_two_runs(one, other)}
            assert {n for n in range(len(steps)) if falls.of(at) >> n & 1} == others
            found += len(others)
    assert (found > 0) == (over_ms > 30_000)


@pytest.mark.parametrize("over_ms", [20_000, HOUR_MS])
def test_twice_as_many_steps_take_little_more_than_twice_the_effort(over_ms: int) -> None:
    """Also where their numbers fall with the time, so that each is compared with those before it, and none is of another run."""
    numbers = random.Random(7).sample(range(1, 10_000), ARRANGED_STEPS_MAX)
    steps = any_steps(numbers, 7, over_ms=over_ms)
    few, many = (calls_of(partial(arranged, part, [])) for part in (steps[: len(steps) // 2], steps))
    assert many < 2.5 * few


def test_beacons_after_a_slow_one_arrange_nothing_again() -> None:
    beacons = play(200, 0, "a")
    beacons[70] = delayed(beacons[70], 45_000)
    beacons.sort(key=lambda one: one.recv_time_ms)
    found: list[Driver] = []
    assert calls_of(lambda: found.append(folded_fast(beacons, ())), arranged) <= 2
    [row] = newest(found[0]).values()
    assert (row.beacon_count, row.watch_ms, row.late_count) == (200, 1_990_000, 0)


def test_a_session_of_many_plays_is_not_searched_for_clocks_with_each_beacon() -> None:
    """Each request has one beacon, of any time of the last 50 minutes: the client's clock seems to be set again and again."""
    random_ = random.Random(1)
    beacons = [any_delay(n, random_.randrange(50 * MINUTE_MS), content=str(n // 40)) for n in range(480)]
    records = [
        (topics.BEACONS, view_key(one.customer_id, one.view_id), codec.BEACON.encode(one), T0 + HOUR_MS + n)
        for n, one in enumerate(beacons)
    ]
    driver = Driver(application(RULES))
    driver.pipe_all(records[:400], commit_every=50)
    assert calls_of(lambda: driver.pipe_all(records[400:], commit_every=50), found_in) == 0


def lossy_plays(plays: int, records: int) -> list[Beacon]:
    """Plays of one run of numbers, each without its second record: all that follow wait for it."""
    numbers = (n for n in range(plays * records) if n % records != 1)
    return [cmcd(n, "heartbeat" if n else "viewstart", 100 * n, sta="p", cid=str(n // records)) for n in numbers]


def piped(beacons: Iterable[Beacon]) -> Driver:
    driver = Driver(application(RULES))
    driver.pipe_all(records_of(beacons, T0), commit_every=50)
    return driver


def records_of(beacons: Iterable[Beacon], from_ms: int) -> list[tuple[Topic, bytes, bytes, int]]:
    return [
        (topics.BEACONS, view_key(one.customer_id, one.view_id), codec.BEACON.encode(one), from_ms + n)
        for n, one in enumerate(beacons)
    ]


def test_a_beacon_of_a_session_of_many_lossy_plays_does_not_fold_all_of_them_again() -> None:
    """Each play may have hundreds of steps that wait, and there may be a hundred plays: a beacon took 100 ms."""
    plays, records, more = 40, 60, 5
    driver = piped(lossy_plays(plays, records))
    # Of the play before the last one: what the last play needs to know of those before it may change.
    late = [cmcd(38 * records + 1, "heartbeat", -1_000 - n, sta="p") for n in range(more)]
    folds = calls_of(lambda: driver.pipe_all(records_of(late, T0 + MINUTE_MS), commit_every=1), fold)
    assert 0 < folds <= more * (SESSION_STEPS_MAX + HELD_STEPS_MAX + RECENT_STEPS_MAX)
    assert folds < more * plays * (records - 2)


def test_rows_of_a_session_of_many_lossy_plays_are_those_of_short_sessions() -> None:
    plays, records = 30, 60
    driver = piped(lossy_plays(plays, records))
    driver.advance_to(T0 + 4 * HOUR_MS)
    assert_each_is_counted_once(driver, plays * (records - 1), plays * (records - 1))
    found = newest(driver)
    assert len(found) == plays
    assert {(one.beacon_count, one.late_count, one.seq_gaps, one.watch_ms) for one in found.values()} == {
        (records - 1, 0, 1, (records - 1) * 100)
    }


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_every_beacon_of_a_session_of_many_lossy_plays_is_counted_once_in_any_order(seed: int) -> None:
    beacons = lossy_plays(30, 60)
    random.Random(seed).shuffle(beacons)
    driver = piped(beacons)
    driver.advance_to(T0 + 4 * HOUR_MS)
    assert_each_is_counted_once(driver, len(beacons), len(beacons))


def any_delay(number: int, delay_ms: int, *, content: str) -> Beacon:
    """A beacon that is received next to the one before, whatever its time."""
    beacon = cmcd(number, "heartbeat", HOUR_MS + 5 * number - delay_ms, sta="p", cid=content)
    return msgspec.structs.replace(
        beacon, clock_offset_ms=delay_ms + SKEW_MS, recv_time_ms=T0 + HOUR_MS + 5 * number + SKEW_MS
    )
