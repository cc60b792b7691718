"""What fails in a fold: records and rows that are rejected, and what stops the core."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.engine.application.application import Application, Context, StoreSpec
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.failures import FoldFailed, RowUnstorable
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import MemoryStore, StoreCorrupt
from shared.topics import BEACONS, REJECTED, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS, Counting, record, values

Drive = Callable[[Application], Driver]


def test_what_cannot_be_decoded_is_rejected_with_its_reason_and_bytes(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(BEACONS, b"a", b"garbage", at_ms=1000)
    driver.pipe(BEACONS, b"a", b"", at_ms=1001)
    driver.advance_to(2000)
    (rejected,) = driver.outputs(REJECTED)
    assert rejected.value == b"garbage"
    assert dict(rejected.headers)["reason"] == b"undecodable"
    assert dict(rejected.headers)["origin"] == b"beacons/0/0"
    assert values(driver) == [(b"a", b"1")]


def test_a_record_on_which_the_application_raises_is_rejected_and_the_rest_goes_on(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    driver.pipe(BEACONS, b"a", b"poison", at_ms=1001)
    driver.pipe(BEACONS, b"a", b"", at_ms=1002)
    driver.advance_to(2000)
    assert [dict(output.headers)["reason"] for output in driver.outputs(REJECTED)] == [b"fold_failed"]
    assert values(driver) == [(b"a", b"2")]


def test_a_row_on_which_the_application_raises_is_rejected_and_the_rest_goes_on(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for key in (b"a", b"unfinishable", b"b"):
        driver.pipe(BEACONS, key, b"", at_ms=1000)
    driver.advance_to(2000)
    driver.advance_to(9000)
    (rejected,) = driver.outputs(REJECTED)
    assert (rejected.key, rejected.value) == (b"unfinishable", msgspec.msgpack.encode(1))
    assert dict(rejected.headers)["reason"] == b"fire_failed"
    assert dict(rejected.headers)["origin"] == b"counting/0/store counts"
    assert values(driver) == [(b"a", b"1"), (b"b", b"1")]


def test_a_row_that_the_application_leaves_due_is_rejected_and_not_forgotten(drive: Drive) -> None:
    class Forgetful(Counting):
        def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
            if key != b"left":
                super().fire(spec, key)

    driver = drive(dataclasses.replace(APPLICATION, start=Forgetful))
    for key in (b"left", b"a"):
        driver.pipe(BEACONS, key, b"", at_ms=1000)
    driver.advance_to(2000)
    (rejected,) = driver.outputs(REJECTED)
    assert rejected.key == b"left"
    assert dict(rejected.headers)["reason"] == b"fire_failed"
    assert driver.rows == {"counts": 0}
    assert values(driver) == [(b"a", b"1")]


def test_a_due_row_that_cannot_be_decoded_is_rejected_and_the_rest_goes_on() -> None:
    def refuse_two(row: bytes) -> int:
        if row == msgspec.msgpack.encode(2):
            raise msgspec.DecodeError("not what was stored")
        return msgspec.msgpack.decode(row, type=int)

    spec = dataclasses.replace(COUNTS, decode=refuse_two)
    application = dataclasses.replace(APPLICATION, stores=(spec,), start=type("Refusing", (Counting,), {"SPEC": spec}))
    driver = Driver(APPLICATION)
    for key in (b"a", b"b", b"b", b"c"):
        driver.pipe(BEACONS, key, b"", at_ms=1000)
    driver.restart_with(application)
    driver.advance_to(2000)
    (rejected,) = driver.outputs(REJECTED)
    assert (rejected.key, rejected.value) == (b"b", msgspec.msgpack.encode(2))
    assert dict(rejected.headers)["origin"] == b"counting/0/store counts"
    assert values(driver) == [(b"a", b"1"), (b"c", b"1")]


@pytest.mark.parametrize("releases", [True, False])
def test_what_belongs_to_a_row_that_is_rejected_goes_with_it(drive: Drive, releases: bool) -> None:
    """Where the application cannot release it either, it is deleted all the same."""
    names = StoreSpec[int](name="names", id=2, encode=COUNTS.encode, decode=COUNTS.decode, goes_with=COUNTS.name)

    class Named(Counting):
        def __init__(self, context: Context) -> None:
            super().__init__(context)
            self._names = context.store(names)

        def fold(self, record: Record) -> None:
            super().fold(record)
            assert record.key is not None
            self._names.put(record.key, 7)

        def release(self, spec: StoreSpec[Any], key: bytes) -> None:
            self._context.emit(VIEWS, key, b"released")
            if not releases:
                raise ZeroDivisionError("a bug in releasing")

    application = dataclasses.replace(APPLICATION, stores=(COUNTS, names), start=Named)
    driver = drive(application)
    driver.pipe(BEACONS, b"unfinishable", b"", at_ms=1000)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    driver.advance_to(2000)
    rejected = {dict(output.headers)["origin"]: output.value for output in driver.outputs(REJECTED)}
    assert rejected == {
        b"counting/0/store counts": msgspec.msgpack.encode(1),
        b"counting/0/store names": msgspec.msgpack.encode(7),
    }
    assert driver.rows == {"counts": 0, "names": 1}
    assert values(driver) == [(b"a", b"1"), *([(b"unfinishable", b"released")] if releases else [])]


def test_a_record_whose_row_cannot_be_stored_is_rejected_and_its_row_goes_on(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for value in (b"", b"huge", b""):
        driver.pipe(BEACONS, b"a", value, at_ms=1000)
    driver.advance_to(2000)
    (rejected,) = driver.outputs(REJECTED)
    assert rejected.value == b"huge"
    assert dict(rejected.headers)["origin"] == b"beacons/0/1"
    assert values(driver) == [(b"a", b"2")]


def test_a_row_over_its_stores_limit_is_refused() -> None:
    spec = StoreSpec[bytes](name="small", id=1, encode=bytes, decode=bytes, row_bytes_max=10)
    layers = Layers((spec,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000))
    layers.put(b"\x01a", bytes(10), 0)
    layers.cut()
    layers.commit()
    layers.put(b"\x01a", bytes(11), 0)
    with pytest.raises(RowUnstorable, match="11 bytes; at most 10"):
        layers.cut()


def test_a_store_that_fails_in_a_fold_is_no_fault_of_the_record() -> None:
    class Broken(MemoryStore):
        def get(self, key: bytes) -> bytes | None:
            raise StoreCorrupt("a block")

    core = Core(APPLICATION, 0, Broken())
    with pytest.raises(StoreCorrupt):
        core.fold([record(0)])


def test_a_failed_fold_names_the_record() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    with pytest.raises(FoldFailed, match="beacons/0/7: ZeroDivisionError"):
        core.fold([record(7, value=b"poison")])
