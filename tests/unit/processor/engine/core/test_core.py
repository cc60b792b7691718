"""The core: what it cuts, what it drops, and that a crash anywhere changes nothing."""

import random
from collections.abc import Callable
from dataclasses import replace

from services.processor.engine.application.application import Application
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION, Counting, record, values

Drive = Callable[[Application], Driver]


class Overdue(Counting):
    """Gives each row a deadline of the present."""

    def fold(self, record: Record) -> None:
        assert record.key is not None
        self._counts.put(record.key, 1, self._context.clock_ms)


def test_a_silent_key_closes_once_with_all_that_came(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for at_ms in (1000, 1050, 1120):
        driver.pipe(BEACONS, b"a", b"", at_ms=at_ms)
    driver.advance_to(1219)
    assert values(driver) == []
    driver.advance_to(1220)
    assert values(driver) == [(b"a", b"3")]
    driver.advance_to(99_999)
    assert values(driver) == [(b"a", b"3")]


def test_another_keys_record_moves_the_clock_for_all(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    driver.pipe(BEACONS, b"b", b"", at_ms=5000)
    assert values(driver) == [(b"a", b"1")]


def test_a_record_that_comes_with_a_passed_deadline_finds_the_key_closed(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    driver.pipe(BEACONS, b"a", b"", at_ms=5000)
    driver.advance_to(9000)
    assert values(driver) == [(b"a", b"1"), (b"a", b"1")]


def test_random_traffic_gives_the_same_in_every_weather(drive: Drive) -> None:
    random_ = random.Random(3)
    calm, driver = Driver(APPLICATION), drive(APPLICATION)
    at_ms = 1000
    for _ in range(300):
        at_ms += random_.choice([0, 1, 10, 90, 200])
        key = random_.choice([b"a", b"b", b"c", b"d"])
        for each in (calm, driver):
            each.pipe(BEACONS, key, b"", at_ms=at_ms)
    for each in (calm, driver):
        each.advance_to(at_ms + 1000)
    assert values(driver) == values(calm)
    assert sum(int(value) for _, value in values(driver)) == 300


def test_a_record_folded_before_is_passed_over() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0), record(1)])
    core.fold([record(0), record(1), record(2)])
    core.advance_to(5000)
    assert [output.value for output in core.cut().outputs] == [b"3"]


def test_what_was_dropped_is_wanted_again_from_the_committed_offset() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0)])
    core.cut()
    core.commit()
    core.fold([record(1), record(2)])
    core.cut()
    core.fold([record(3)])
    core.abort()
    assert core.next_offset(BEACONS.name) == 1
    core.fold([record(1), record(2), record(3)])
    core.advance_to(5000)
    assert [output.value for output in core.cut().outputs] == [b"4"]


def test_a_deadline_that_has_passed_is_of_the_next_millisecond() -> None:
    """A takeover reads no timers up to the committed clock: no committed row may be due by then."""
    local = MemoryStore()
    core = Core(replace(APPLICATION, start=Overdue), 0, local)
    core.fold([record(0, at_ms=1000)])
    meta = core.cut().meta
    core.commit()
    local.write(core.begin_flush()[0], LocalMeta(meta, 1))
    core.end_flush()
    assert meta.clock_ms == 1000
    after = Core(replace(APPLICATION, start=Overdue), 0, local)
    after.advance_to(1001)
    assert [output.value for output in after.cut().outputs] == [b"1"]


def test_the_clock_never_goes_back() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0, at_ms=5000), record(1, at_ms=4000)])
    core.advance_to(3000)
    assert core.clock_ms == 5000


def test_the_clock_survives_a_crash(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(BEACONS, b"a", b"", at_ms=7000)
    driver.pipe(BEACONS, b"a", b"", at_ms=6000)
    assert driver.clock_ms == 7000
