"""CMCD sessions longer than what can be taken back: exact while their disorder is small, and counted once in any disorder."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.bounds import RECENT_STEPS_MAX
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, RULES, T0, cmcd, rows
from tests.unit.processor.applications.video_views.counted import assert_each_is_counted_once, newest
from tests.unit.processor.applications.video_views.plays.test_plays import fields
from tests.unit.processor.applications.video_views.test_any_order import ARRIVAL_FIELDS

KEY = view_key("acme", "s1")


def long_session(random_: random.Random) -> list[Beacon]:
    """One to three plays of up to 150 beacons, with requests among them."""
    beacons: list[Beacon] = []
    at_ms, seq, content = 1_000, 0, "a"
    for _ in range(random_.randint(1, 3)):
        if random_.random() < 0.6:
            seq = 0
        else:
            content = random_.choice("abc")
        for number in range(random_.choice([5, 70, 150])):
            at_ms += random_.randint(1, 900)
            sta = "s" if number == 0 else random_.choice("ppprka")
            is_request = number > 0 and random_.random() < 0.3
            more: dict[str, Any] = {"ttlb": random_.randint(0, 900)} if is_request else {"br": [[seq + 1, "v"]]}
            beacons.append(cmcd(seq, "request" if is_request else "custom", at_ms, sta=sta, cid=content, **more))
            seq += 1
    return beacons


def shaken(random_: random.Random, beacons: list[Beacon], places: int) -> list[Beacon]:
    """The beacons, each up to so many places from where it was."""
    late = sorted(range(len(beacons)), key=lambda at: at + random_.random() * places)
    return [beacons[at] for at in late]


def folded(beacons: list[Beacon]) -> Driver:
    driver = Driver(application(RULES))
    driver.pipe_all(
        [(topics.BEACONS, KEY, codec.BEACON.encode(beacon), T0 + number) for number, beacon in enumerate(beacons)],
        commit_every=40,
    )
    driver.advance_to(T0 + 4 * HOUR_MS)
    return driver


def rows_of(driver: Driver) -> dict[str, dict[str, Any]]:
    return {row.view_id: fields(row, ARRIVAL_FIELDS) for row in rows(driver)}


@pytest.mark.thorough
@given(seed=st.integers(0, 1 << 32))
def test_a_long_session_has_the_same_rows_when_its_beacons_are_a_little_out_of_order_and_come_again(seed: int) -> None:
    random_ = random.Random(seed)
    beacons = long_session(random_)
    arrived = shaken(random_, beacons, RECENT_STEPS_MAX // 2)
    again = [(random_.random() * len(arrived), beacon) for beacon in random_.sample(beacons, min(5, len(beacons)))]
    for at, beacon in again:
        arrived.insert(max(int(at), arrived.index(beacon)), beacon)
    driver = folded(arrived)
    assert rows_of(driver) == rows_of(folded(beacons))
    assert_each_is_counted_once(driver, len(arrived), len(beacons))


@pytest.mark.thorough
@given(seed=st.integers(0, 1 << 32))
def test_every_beacon_of_a_long_session_is_counted_once_in_any_order(seed: int) -> None:
    random_ = random.Random(seed)
    beacons = long_session(random_)
    driver = folded(shaken(random_, beacons, random_.choice([100, len(beacons)])))
    assert_each_is_counted_once(driver, len(beacons), len(beacons))
    assert sum(row.late_count for row in newest(driver).values()) <= len(beacons)
