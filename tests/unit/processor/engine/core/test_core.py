"""The core: what it cuts, what it drops, and that a crash anywhere changes nothing."""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.engine.application.application import Application, Context, StoreSpec
from services.processor.engine.application.tables import Tables
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.failures import FoldFailed, RowUnstorable
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import LocalMeta, MemoryStore, StoreCorrupt
from services.processor.engine.state.rows import META_KEY, Meta, NewerFormat, decode_meta, encode_meta
from shared import topics
from shared.topics import BEACONS, REJECTED, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS, Counting

Drive = Callable[[Application], Driver]


def record(offset: int, key: bytes = b"a", value: bytes = b"", at_ms: int = 1000) -> Record:
    return Record(BEACONS.name, 0, offset, at_ms, key, value)


def values(driver: Driver, topic: topics.Topic = VIEWS) -> list[tuple[bytes, bytes]]:
    return [(output.key, output.value) for output in driver.outputs(topic)]


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


def test_an_abort_takes_back_the_checkpoint_in_flight_and_what_came_after() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0)])
    core.cut()
    core.commit()
    core.fold([record(1)])
    core.cut()
    core.fold([record(2)])
    core.abort()
    assert core.next_offset(BEACONS.name) == 1
    assert not core.is_dirty
    core.fold([record(1), record(2)])
    core.advance_to(5000)
    assert [output.value for output in core.cut().outputs] == [b"3"]


def test_an_aborted_firing_fires_again() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0)])
    core.cut()
    core.commit()
    core.advance_to(5000)
    assert len(core.cut().outputs) == 1
    core.abort()
    core.advance_to(5000)
    assert len(core.cut().outputs) == 1


def test_an_aborted_firing_from_the_local_store_fires_again_even_after_a_flush() -> None:
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    core.fold([record(0)])
    core.cut()
    core.commit()
    rows, meta = core.begin_flush()
    local.write(rows, LocalMeta(meta, 1))
    core.end_flush()
    core.advance_to(5000)
    core.cut()
    core.abort()
    rows, meta = core.begin_flush()
    local.write(rows, LocalMeta(meta, 1))
    core.end_flush()
    # A crash now: the successor finds the timer in the local store.
    successor = Core(APPLICATION, 0, local)
    successor.advance_to(5000)
    assert [output.value for output in successor.cut().outputs] == [b"1"]


def test_a_timer_flushed_while_it_waits_for_its_turn_is_not_lost() -> None:
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    core._folding.fired_max = 2
    core.fold([record(offset, key=b"key-%d" % offset) for offset in range(5)])
    core.cut()
    core.commit()
    outputs = []
    while not core.advance_to(5000) or core.is_dirty:
        outputs += core.cut().outputs
        core.commit()
        rows, meta = core.begin_flush()
        local.write(rows, LocalMeta(meta, 1))
        core.end_flush()
    assert sorted(output.key for output in outputs) == [b"key-%d" % number for number in range(5)]


def test_no_record_is_taken_while_more_timers_are_due_than_a_checkpoint_holds() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core._folding.fired_max = 2
    core.fold([record(offset, key=b"key-%d" % offset) for offset in range(5)])
    late = [record(5, key=b"key-4", at_ms=9000)]
    assert core.fold(late) == 0
    core.cut()
    core.commit()
    assert core.fold(late) == 0
    core.cut()
    core.commit()
    assert core.fold(late) == 1


def test_a_checkpoint_is_bounded_by_bytes_when_timers_fire_too() -> None:
    """300 large traces that were due at once made a checkpoint of 265 MB."""

    class Large(Counting):
        def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
            super().fire(spec, key)
            self._context.emit(VIEWS, key, bytes(1_000))

    core = Core(dataclasses.replace(APPLICATION, start=Large), 0, MemoryStore())
    core.fold([record(offset, key=b"key-%d" % offset) for offset in range(50)])
    core.limit(cache_rows_max=100, cache_bytes_max=10_000, dirty_bytes_max=10_000)
    core.cut()
    core.commit()
    fired: list[bytes] = []
    while not core.advance_to(5000) or core.is_dirty:
        assert core.dirty_bytes < 12_000
        fired += [output.key for output in core.cut().outputs if len(output.value or b"") == 1_000]
        core.commit()
    assert sorted(fired) == sorted(b"key-%d" % number for number in range(50))
    assert core.clock_ms == 5000


def test_a_record_folded_before_is_passed_over() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([record(0), record(1)])
    core.fold([record(0), record(1), record(2)])
    core.advance_to(5000)
    assert [output.value for output in core.cut().outputs] == [b"3"]


def test_a_failed_fold_names_the_record() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    with pytest.raises(FoldFailed, match="beacons/0/7: ZeroDivisionError"):
        core.fold([record(7, value=b"poison")])


def test_a_core_is_full_at_its_bytes_and_takes_one_record_at_least() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.limit(cache_rows_max=10, cache_bytes_max=1_000, dirty_bytes_max=25)
    records = [record(offset, value=bytes(10)) for offset in range(9)]
    assert core.fold(records) == 3
    assert core.is_full
    assert core.fold(records[3:]) == 0
    core.cut()
    core.commit()
    assert not core.is_full
    # The row changed again counts as it was stored, too.
    assert core.fold(records[3:]) == 3
    assert core.dirty_bytes == 30 + len(b"\x01a") + 8 + 1
    core.cut()
    core.commit()
    assert core.fold([record(9, value=bytes(1_000))]) == 1
    core.abort()
    assert core.dirty_bytes == 0


def test_what_is_committed_is_never_due_at_its_clock() -> None:
    context = CoreContext(
        APPLICATION, 0, Layers((COUNTS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000)), Tables(())
    )
    store = context.store(COUNTS)
    context.clock_ms = 5000
    store.put(b"a", 1, 4000)
    assert store.deadline_ms(b"a") == 5001


def test_an_earlier_deadline_stays_where_a_row_is_put_by_a_time() -> None:
    context = CoreContext(
        APPLICATION, 0, Layers((COUNTS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000)), Tables(())
    )
    store = context.store(COUNTS)
    context.clock_ms = 5000
    deadlines_ms = []
    for deadline_ms in (9000, 9500, 8000, 4000):
        store.put_by(b"a", deadline_ms, deadline_ms)
        deadlines_ms.append(store.deadline_ms(b"a"))
        assert store.get(b"a") == deadline_ms
    assert deadlines_ms == [9000, 9000, 8000, 5001]
    store.delete(b"a")
    store.put_by(b"a", 1, 9500)
    assert store.deadline_ms(b"a") == 9500


def test_a_store_that_was_not_declared_is_refused() -> None:
    context = CoreContext(
        APPLICATION, 0, Layers((COUNTS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000)), Tables(())
    )
    with pytest.raises(ValueError, match="has not declared store other"):
        context.store(dataclasses.replace(COUNTS, name="other"))


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


def test_state_of_a_newer_version_is_refused() -> None:
    with pytest.raises(NewerFormat, match="upgrade"):
        decode_meta(encode_meta(Meta({}, 0, 1, format=99)))


def test_state_of_a_newer_version_stops_a_core_that_has_nothing_to_replay() -> None:
    local = MemoryStore()
    local.write({}, LocalMeta(Meta({}, 0, 1, format=99), 1))
    with pytest.raises(NewerFormat, match="format 99"):
        Core(APPLICATION, 0, local)


def test_a_newer_version_is_found_in_any_meta_row() -> None:
    with pytest.raises(NewerFormat, match="format 99"):
        decode_meta(msgspec.msgpack.encode(["elsewhere", "later", None, 99, {"views": "2"}]))


def test_the_meta_row_cannot_be_a_stores_row() -> None:
    assert all(META_KEY[0] != spec.id for spec in APPLICATION.stores)
