"""Two inputs joined in sessions by event time: the same in every weather, in every order, in every size of batch."""

import dataclasses
import random
from collections.abc import Callable

import pytest

from services.processor.engine.application.application import Application, NotCoPartitioned
from services.processor.engine.driver import Driver
from shared import topics
from shared.topics import PROFILES, REJECTED, Topic
from tests.unit.processor.engine.joining import APPLICATION, JOINED, LEFT, RIGHT

Drive = Callable[[Application], Driver]
Piped = tuple[Topic, bytes, bytes, int]


def said(topic: Topic, event_ms: int, text: str, key: bytes = b"a") -> Piped:
    return topic, key, f"{event_ms} {text}".encode(), 100_000


def joined(driver: Driver) -> list[str]:
    return sorted(f"{output.key.decode()} {output.value.decode()}" for output in driver.outputs(JOINED))


def late(driver: Driver) -> list[bytes]:
    return [output.value for output in driver.outputs(topics.LATE)]


def test_two_topics_meet_in_a_session(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe_all([said(LEFT, 1_000, "l"), said(RIGHT, 1_100, "r"), said(RIGHT, 1_201, "alone")], commit_every=1)
    driver.advance_to(1_250)
    assert joined(driver) == []
    driver.advance_to(1_251)
    assert joined(driver) == ["a 1000-1100: l|r"]
    driver.advance_to(9_000)
    assert joined(driver) == ["a 1000-1100: l|r", "a 1201-1201: |alone"]


def test_a_record_within_the_grace_bridges_two_sessions(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe_all([said(LEFT, 1_000, "l"), said(LEFT, 1_150, "m"), said(LEFT, 1_100, "r")], commit_every=1)
    driver.advance_to(9_000)
    assert joined(driver) == ["a 1000-1150: l,m,r|"]


def test_the_clock_is_the_largest_event_time_not_the_broker_s(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(LEFT, b"a", b"1000 l", at_ms=900_000)
    assert driver.clock_ms == 1_000
    driver.pipe(LEFT, b"a", b"900 l", at_ms=950_000)
    assert driver.clock_ms == 1_000


@pytest.mark.parametrize(("event_ms", "is_late"), [(950, False), (949, True)])
def test_a_record_older_than_the_clock_by_more_than_the_grace_is_reported_as_late(
    drive: Drive, event_ms: int, is_late: bool
) -> None:
    driver = drive(APPLICATION)
    driver.pipe_all([said(LEFT, 1_000, "l"), said(LEFT, event_ms, "x")], commit_every=1)
    assert late(driver) == ([b"949 x"] if is_late else [])


def test_a_late_record_is_late_after_a_takeover_too(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe_all([said(LEFT, 1_000, "l")], commit_every=1)
    driver.advance_to(2_000)
    driver.pipe_all([said(RIGHT, 1_000, "r")], commit_every=1)
    assert joined(driver) == ["a 1000-1000: l|"]
    assert late(driver) == [b"1000 r"]


def test_a_record_without_a_time_or_far_ahead_of_its_append_time_is_rejected(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(LEFT, b"a", b"1000 l", at_ms=1_000)
    driver.pipe(LEFT, b"a", b"never", at_ms=1_000)
    driver.pipe(LEFT, b"a", b"2001 ahead", at_ms=1_000)
    driver.pipe(LEFT, b"a", b"1040 r", at_ms=1_000)
    driver.advance_to(9_000)
    assert [dict(output.headers)["detail"] for output in driver.outputs(REJECTED)] == [
        b"no time",
        b"its time is 1001 ms ahead of its append time",
    ]
    assert joined(driver) == ["a 1000-1040: l,r|"]


def test_a_record_on_whose_time_the_application_raises_is_rejected_and_the_rest_goes_on(drive: Drive) -> None:
    driver = drive(APPLICATION)
    poison = (RIGHT, b"a", b"poison", 1_000)
    driver.pipe_all([said(LEFT, 1_000, "l"), poison, said(RIGHT, 1_010, "r")], commit_every=2)
    driver.advance_to(9_000)
    assert [dict(output.headers)["reason"] for output in driver.outputs(REJECTED)] == [b"fold_failed"]
    assert joined(driver) == ["a 1000-1010: l|r"]


def random_traffic(seed: int) -> list[Piped]:
    """Keys in sessions, times out of order beyond the grace now and then."""
    random_ = random.Random(seed)
    now = 1_000
    piped = []
    for number in range(200):
        now += random_.choice([0, 5, 20, 60, 300])
        event_ms = now - random_.choice([0, 0, 10, 40, 200])
        piped.append(said(random_.choice([LEFT, RIGHT]), event_ms, str(number), random_.choice([b"a", b"b", b"c"])))
    return piped


@pytest.mark.parametrize("commit_every", [1, 3, 50, 1_000])
def test_a_replay_in_other_batches_and_weathers_gives_the_same(drive: Drive, commit_every: int) -> None:
    replays = (Driver(APPLICATION), drive(APPLICATION))
    for driver, every in zip(replays, (7, commit_every), strict=True):
        driver.pipe_all(random_traffic(8), commit_every=every)
        driver.advance_to(99_999)
    first, second = replays
    assert joined(second) == joined(first)
    assert sorted(late(second)) == sorted(late(first))
    assert late(first)
    texts = [text for line in joined(first) for text in line.split(": ")[1].replace("|", ",").split(",") if text]
    assert sorted([*texts, *(value.split()[1].decode() for value in late(first))]) == sorted(str(n) for n in range(200))


@pytest.mark.parametrize("seed", range(5))
def test_within_the_grace_the_order_does_not_matter(drive: Drive, seed: int) -> None:
    random_ = random.Random(seed)
    records_in = [
        said(random_.choice([LEFT, RIGHT]), 1_000 + 300 * group + at, f"{group}.{at}")
        for group in range(6)
        for at in (0, 20, 50)
    ]
    groups = [records_in[start : start + 3] for start in range(0, len(records_in), 3)]
    shuffled = [record for group in groups for record in random_.sample(group, 3)]
    calm, driver = Driver(APPLICATION), drive(APPLICATION)
    for each, records in ((calm, records_in), (driver, shuffled)):
        for record in records:
            topic, key, value, at_ms = record
            each.pipe(topic, key, value, at_ms=at_ms)
        each.advance_to(99_999)
    assert len(joined(calm)) == 6
    assert joined(driver) == joined(calm)
    assert late(driver) == []


def test_topics_with_other_partition_counts_are_refused() -> None:
    profile = PROFILES["laptop"]
    assert APPLICATION.partitions(profile) == profile.view_partitions
    odd = dataclasses.replace(RIGHT, partitions_fixed=3)
    with pytest.raises(NotCoPartitioned, match="left 8, right 3"):
        dataclasses.replace(APPLICATION, inputs=(LEFT, odd)).partitions(profile)
