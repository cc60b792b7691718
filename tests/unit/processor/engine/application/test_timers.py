"""Several timers of a row, by name: through crashes, flushes, failures and quarantines; and ranges of a map in a fold."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from services.processor.engine.application.application import (
    Application,
    Context,
    MapSpec,
    StoreSpec,
    TimersSpec,
    timers_of,
)
from services.processor.engine.application.failure_rules import FailureRules
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from shared.topics import BEACONS, REJECTED, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS

Drive = Callable[[Application], Driver]

TIMERS = timers_of(COUNTS, name="count_timers", store_id=2)
SEEN = MapSpec[bytes](name="seen", id=3, encode=bytes, decode=bytes, goes_with="counts")


class Timed:
    """`silent` fires 100 ms after the last record, `hourly` each 1,000 ms, `end` once; a record may cancel or fail them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts = context.store(COUNTS)
        self._timers = context.timers(TIMERS)
        self._seen = context.map(SEEN)

    def fold(self, record: Record) -> None:
        key, now_ms = record.key or b"", self._context.clock_ms
        if record.value == b"poison":
            raise ZeroDivisionError("a bug in the application")
        if record.value == b"cancel":
            self._timers.cancel(key, b"end")
            return
        if self._counts.get(key) is None:
            self._timers.set(key, b"hourly", now_ms + 1_000)
            self._timers.set(key, b"end", now_ms + 2_500)
        self._counts.put(key, (self._counts.get(key) or 0) + 1)
        self._seen.put(key, b"%06d" % now_ms, b"")
        self._timers.set(key, b"silent", now_ms + 100)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        raise AssertionError("no row here has a deadline of its own")

    def fire_timer(self, spec: TimersSpec, key: bytes, name: bytes) -> None:
        assert spec is TIMERS
        now_ms = self._context.clock_ms
        self._context.emit(VIEWS, key, name + b" %d" % now_ms)
        if key.startswith(b"unfinishable"):
            raise ZeroDivisionError("a bug in the application")
        if name == b"hourly":
            recent = self._seen.items(key, 9, after=b"%06d" % (now_ms - 1_000), before=b"%06d" % (now_ms - 500))
            self._context.emit(VIEWS, key, b",".join(entry for entry, _ in recent))
            assert self._timers.at_ms(key, b"hourly") == 0
            self._timers.set(key, b"hourly", now_ms + 1_000)
        if name == b"end":
            self._counts.delete(key)
            self._seen.clear(key, 99)
            assert self._timers.clear(key, 99) >= 1


TIMED = dataclasses.replace(
    APPLICATION, stores=(COUNTS, TIMERS, SEEN), start=Timed, failure_rules=FailureRules(quarantine_failures=3)
)


def emitted(driver: Driver, key: bytes = b"k\x00") -> list[bytes | None]:
    return [output.value for output in driver.outputs(VIEWS) if output.key == key]


def test_each_timer_fires_at_its_own_time_and_a_range_is_scanned_in_the_fold(drive: Drive) -> None:
    driver = drive(TIMED)
    for at_ms in (1_000, 1_050, 1_400, 1_600):
        driver.pipe(BEACONS, b"k\x00", b"", at_ms=at_ms)
    driver.advance_to(9_000)
    assert emitted(driver) == [
        b"silent 1150",
        b"silent 1500",
        b"silent 1700",
        b"hourly 2000",
        b"001050,001400",
        b"hourly 3000",
        b"",
        b"end 3500",
    ]
    assert driver.rows == {"counts": 0, "count_timers": 0, "seen": 0}


def test_a_timer_that_is_cancelled_does_not_fire(drive: Drive) -> None:
    driver = drive(TIMED)
    driver.pipe(BEACONS, b"k\x00", b"", at_ms=1_000)
    driver.pipe(BEACONS, b"k\x00", b"cancel", at_ms=1_001)
    driver.advance_to(4_500)
    assert [value for value in emitted(driver) if value] == [
        b"silent 1100",
        b"hourly 2000",
        b"hourly 3000",
        b"hourly 4000",
    ]
    assert driver.rows["count_timers"] == 1


def test_a_timer_that_fails_rejects_its_row_with_all_that_goes_with_it(drive: Drive) -> None:
    driver = drive(TIMED)
    driver.pipe(BEACONS, b"unfinishable", b"", at_ms=1_000)
    driver.pipe(BEACONS, b"k\x00", b"", at_ms=1_050)
    driver.advance_to(1_200)
    assert emitted(driver, b"unfinishable") == []
    origins = [dict(output.headers)["origin"].rpartition(b" ")[2] for output in driver.outputs(REJECTED)]
    assert sorted(origins) == [b"count_timers"] * 3 + [b"counts", b"seen"]
    assert driver.rows == {"counts": 1, "count_timers": 2, "seen": 1}
    driver.advance_to(9_000)
    assert emitted(driver)[-1] == b"end 3550"


def test_a_quarantined_key_keeps_its_timers_and_they_fire_after_its_release(drive: Drive) -> None:
    driver = drive(TIMED)
    driver.pipe(BEACONS, b"k\x00", b"", at_ms=1_000)
    for _ in range(3):
        driver.pipe(BEACONS, b"k\x00", b"poison", at_ms=1_010)
    assert driver.quarantined[b"k\x00"].rows == 5
    driver.pipe(BEACONS, b"other", b"", at_ms=5_000)
    assert emitted(driver) == []
    driver.release(b"k\x00")
    driver.advance_to(9_000)
    # All are due at once, in the order of their names; the first ends the row.
    assert emitted(driver) == [b"end 5001"]


def test_what_is_declared_wrongly_is_refused() -> None:
    with pytest.raises(ValueError, match="are of store counts, which is not declared"):
        dataclasses.replace(TIMED, stores=(TIMERS, SEEN))
    with pytest.raises(ValueError, match="entries of a map have none"):
        timers_of(SEEN, name="t", store_id=4)

    def start(context: Context) -> Timed:
        context.map(TIMERS)
        return Timed(context)

    with pytest.raises(ValueError, match="store count_timers is of timers"):
        Core(dataclasses.replace(TIMED, start=start), 0, MemoryStore())
    with pytest.raises(ValueError, match="has not declared store count_timers"):
        Core(dataclasses.replace(TIMED, stores=(COUNTS, SEEN)), 0, MemoryStore())


def test_rows_of_timers_are_empty() -> None:
    assert (TIMERS.encode(b""), TIMERS.record_key_of(TIMERS.row_key(b"k", b"end")[1:])) == (b"", b"k")
