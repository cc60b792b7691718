"""Global tables: what folds look up, what is no entry, and what a restart finds again."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.engine.application.application import Application, Context, StoreSpec, TableSpec
from services.processor.engine.application.tables import WRONG_BYTES_MAX, WRONG_RECORDS_MAX, Tables
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from shared.codec import Undecodable
from shared.topics import BEACONS, REJECTED, VIDEO_VIEWS_CHANGELOG, VIEWS, Topic

SETTINGS = Topic(name="settings", key="k", schema="s", owner="test", cleanup="compact")
Drive = Callable[[Application], Driver]
FORGOTTEN = StoreSpec[int](name="seen", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(int).decode)


def decode(value: bytes) -> int:
    if value == b"poison":
        raise ZeroDivisionError("a bug in the application")
    if not value.isdigit():
        raise Undecodable("no number")
    return int(value)


TABLE = TableSpec(SETTINGS, decode, entries_max=3, bytes_max=100)


class Looking:
    """Emits what the table says of each record's key."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._table = context.table(TABLE)

    def fold(self, record: Record) -> None:
        key = record.key or b""
        if record.value == b"poison":
            raise ZeroDivisionError("a bug in the application")
        self._context.emit(VIEWS, key, str(self._table.get(key)).encode())

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        raise NotImplementedError


APPLICATION = Application(
    name="looking",
    inputs=(BEACONS,),
    outputs=(VIEWS, REJECTED),
    changelog=VIDEO_VIEWS_CHANGELOG,
    stores=(FORGOTTEN,),
    start=Looking,
    tables=(TABLE,),
)


def looked(driver: Driver) -> list[str]:
    return [(one.value or b"").decode() for one in driver.outputs(VIEWS)]


def rejected(driver: Driver) -> list[tuple[bytes, bytes | None, str, str]]:
    return [
        (one.key, one.value, dict(one.headers)["reason"].decode(), dict(one.headers)["origin"].decode())
        for one in driver.outputs(REJECTED)
    ]


def test_a_fold_finds_the_newest_entry_of_any_key(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(BEACONS, b"a", b"", at_ms=1_000)
    driver.pipe(SETTINGS, b"a", b"1", at_ms=9_000)
    driver.pipe(SETTINGS, b"b", b"7", at_ms=9_000)
    driver.pipe(BEACONS, b"a", b"", at_ms=2_000)
    driver.pipe(SETTINGS, b"a", b"2", at_ms=9_000)
    driver.pipe(BEACONS, b"a", b"", at_ms=3_000)
    driver.pipe(BEACONS, b"b", b"", at_ms=3_000)
    driver.pipe(SETTINGS, b"a", None, at_ms=9_000)
    driver.pipe(BEACONS, b"a", b"", at_ms=4_000)
    assert looked(driver) == ["None", "1", "2", "7", "None"]
    assert driver.clock_ms == 4_000, "a table moves no clock"
    assert (rejected(driver), driver.committed.next_offsets) == ([], {BEACONS.name: 5})


def test_what_is_no_entry_is_rejected_once_and_its_key_has_none(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(SETTINGS, b"a", b"1", at_ms=1)
    driver.pipe(SETTINGS, b"a", b"one", at_ms=1)
    driver.pipe(SETTINGS, b"b", b"poison", at_ms=1)
    driver.pipe(SETTINGS, None, b"5", at_ms=1)
    for key in (b"a", b"b"):
        driver.pipe(BEACONS, key, b"", at_ms=2_000)
    # A record that fails is given again; what was rejected of the table in the same checkpoint too.
    driver.pipe(BEACONS, b"a", b"poison", at_ms=2_000)
    driver.pipe(SETTINGS, b"a", b"3", at_ms=1)
    driver.pipe(BEACONS, b"a", b"", at_ms=2_000)
    assert looked(driver) == ["None", "None", "3"]
    assert rejected(driver) == [
        (b"a", b"one", "undecodable", "settings/0/1"),
        (b"b", b"poison", "fold_failed", "settings/0/2"),
        (b"", b"5", "undecodable", "settings/0/3"),
        (b"a", b"poison", "fold_failed", "beacons/0/2"),
    ]


def test_a_table_has_a_bound_and_what_finds_no_room_is_rejected(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for key in (b"a", b"b", b"c", b"d"):
        driver.pipe(SETTINGS, key, b"1", at_ms=1)
    driver.pipe(SETTINGS, b"a", b"1" * 100, at_ms=1)
    driver.pipe(SETTINGS, b"d", b"4", at_ms=1)
    for key in (b"a", b"b", b"c", b"d"):
        driver.pipe(BEACONS, key, b"", at_ms=2_000)
    assert looked(driver) == ["None", "1", "1", "4"]
    assert [(key, reason) for key, _, reason, _ in rejected(driver)] == [(b"d", "table_full"), (b"a", "table_full")]


def test_each_wrong_record_is_rejected_by_one_of_the_cores_also_by_its_successor() -> None:
    tables = Tables((TABLE,))
    tables.take_records(
        Record(SETTINGS.name, number, offset, 1, b"k%d" % number, b"x") for offset in range(2) for number in range(5)
    )
    cores = [Core(APPLICATION, number, MemoryStore(), partitions=2, tables=tables) for number in range(2)]
    found = []
    for core in cores:
        core.reject_of_tables()
        core.reject_of_tables()
        checkpoint = core.cut()
        core.commit()
        found.append([dict(one.headers)["origin"].decode() for one in checkpoint.outputs])
        core.reject_of_tables()
        assert not core.is_dirty
    assert [sorted(origins) for origins in found] == [
        [f"settings/{number}/{offset}" for number in (0, 2, 4) for offset in range(2)],
        [f"settings/{number}/{offset}" for number in (1, 3) for offset in range(2)],
    ]
    # Dropped with its checkpoint, it is rejected by the next.
    tables.take_records([Record(SETTINGS.name, 1, 2, 1, b"k", b"x")])
    cores[1].reject_of_tables()
    cores[1].abort()
    cores[1].reject_of_tables()
    assert len(cores[1].cut().outputs) == 1


def test_wrong_records_are_kept_within_bounds() -> None:
    tables = Tables((TABLE,))
    tables.take_records(
        Record(SETTINGS.name, 0, offset, 1, b"k", b"x" * 10_000) for offset in range(2 * WRONG_RECORDS_MAX)
    )
    kept = tables.wrong(0, 1, {})
    assert len(kept) == WRONG_RECORDS_MAX
    assert sum(len(one.record.value or b"") for one in kept) <= WRONG_BYTES_MAX
    assert kept[-1].record.offset == 2 * WRONG_RECORDS_MAX - 1


def test_a_topic_that_begins_again_has_nothing_of_before() -> None:
    tables = Tables((TABLE,))
    tables.take_records([Record(SETTINGS.name, 0, 7, 1, b"a", b"1"), Record(SETTINGS.name, 0, 8, 1, b"b", b"x")])
    assert tables.sizes() == {SETTINGS.name: (1, 2)}
    tables.restart(SETTINGS.name)
    assert (tables.of(TABLE).get(b"a"), tables.wrong(0, 1, {}), tables.sizes()) == (None, [], {SETTINGS.name: (0, 0)})


def test_declarations_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="must be compacted"):
        TableSpec(VIEWS, decode)
    with pytest.raises(ValueError, match="reads a topic twice"):
        dataclasses.replace(APPLICATION, inputs=(BEACONS, SETTINGS))
    with pytest.raises(ValueError, match="not declared"):
        Tables((TABLE,)).of(dataclasses.replace(TABLE))
