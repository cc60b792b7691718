"""What a client can make a session hold: every payload is stored, no row is large, and a payload costs what it adds."""

import random
from collections.abc import Callable

import pytest

from services.processor.applications.recordings import app
from services.processor.applications.recordings.app import application
from services.processor.applications.recordings.session import ABSENT_RANGES_MAX
from services.processor.applications.recordings.settings import SessionRules
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from services.processor.engine.state.meta import META_KEY
from shared import topics
from shared.topics import REJECTED
from tests.unit.processor.applications.recordings.sending import T0, chunks, pipe, rows

APPLICATION = application(SessionRules(gap_ms=1_000, waiting_max=5))
ROW_BYTES_MAX = 40_000


def send(driver: Driver, numbers: list[int]) -> None:
    for number in numbers:
        pipe(driver, chunks(number, b"%d" % number, upload=f"u{number}"))


def largest_row(driver: Driver) -> int:
    return max(len(row or b"") for _, row in driver.changelog)


@pytest.mark.thorough
def test_thousands_of_payloads_behind_one_slow_object_cost_what_they_add_and_are_stored() -> None:
    driver = Driver(APPLICATION)
    driver.objects_away = True
    send(driver, list(range(2_000)))
    # One row of a few hundred bytes a payload, and its session's.
    assert sum(len(row or b"") for _, row in driver.changelog) < 2_000 * 2_000
    assert largest_row(driver) < 2_000
    driver.objects_away = False
    driver.work_media()
    assert [(row.sequence, row.state) for row in rows(driver)] == [(number, "stored") for number in range(2_000)]
    assert driver.outputs(REJECTED) == []
    assert driver.rows["waiting"] == 0


@pytest.mark.thorough
def test_numbers_with_gaps_everywhere_are_all_stored_and_no_row_grows() -> None:
    driver = Driver(APPLICATION)
    driver.objects_away = True
    numbers = list(range(1, 3 * ABSENT_RANGES_MAX, 2))
    random.Random(1).shuffle(numbers)
    send(driver, numbers)
    assert largest_row(driver) < ROW_BYTES_MAX
    driver.objects_away = False
    driver.work_media()
    driver.advance_to(driver.clock_ms + 60_000)
    driver.work_media()
    # What was given up comes after all.
    absent = [row for row in rows(driver) if row.state == "missing"]
    assert len(absent) > ABSENT_RANGES_MAX
    send(driver, [number - 1 for number in numbers])
    stored = {row.sequence for row in rows(driver) if row.state == "stored"}
    assert stored == set(range(3 * ABSENT_RANGES_MAX))
    assert len(driver.objects) == len(stored)
    assert largest_row(driver) < 80_000
    assert driver.outputs(REJECTED) == []


def test_any_order_with_repetitions_and_absences_stores_every_payload_once(
    drive: Callable[[Application], Driver],
) -> None:
    random_ = random.Random(7)
    for _ in range(6):
        driver = drive(application(SessionRules(gap_ms=1_000, waiting_max=4)))
        numbers = [random_.randrange(30) for _ in range(60)]
        for place, number in enumerate(numbers):
            driver.objects_away = random_.random() < 0.7
            for one in chunks(number, b"%d" % number, upload=f"u{place}"):
                at_ms = T0 + place * random_.choice([1, 400])
                driver.pipe(topics.RECORDINGS, one.key, one.value, at_ms=at_ms, headers=one.headers)
        driver.objects_away = False
        driver.work_media()
        driver.advance_to(driver.clock_ms + 60_000)
        driver.work_media()
        stored = [row.sequence for row in rows(driver) if row.state == "stored"]
        assert sorted(stored) == sorted(set(numbers))
        assert driver.rows["waiting"] == 0


def written_bytes(payloads: int) -> int:
    """What a session writes to the changelog, keys and tombstones included, until it is forgotten."""
    driver = Driver(application(SessionRules(kept_ms=60_000)))
    send(driver, list(range(payloads)))
    assert len(driver.objects) == payloads
    driver.advance_to(driver.clock_ms + 120_000)
    assert set(driver.rows.values()) == {0}
    return sum(len(key) + len(row or b"") for key, row in driver.changelog if key != META_KEY)


def test_a_stored_payload_costs_its_own_bytes_however_many_are_listed() -> None:
    """The list was written in pages of 256: each payload wrote its page again."""
    assert written_bytes(240) < 2.1 * written_bytes(120)


def test_a_session_with_very_many_payloads_is_forgotten_in_several_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_FORGOTTEN_AT_ONCE", 30)
    driver = Driver(application(SessionRules(kept_ms=60_000)))
    send(driver, list(range(100)))
    before = len(driver.changelog)
    driver.advance_to(driver.clock_ms + 60_000)
    driver.advance_to(driver.clock_ms + 10)
    assert set(driver.rows.values()) == {0}
    assert sum(row is None for _, row in driver.changelog[before:]) == 101
