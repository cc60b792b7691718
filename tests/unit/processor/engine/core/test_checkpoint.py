"""Checkpoints of the core: what an abort takes back, and what bounds one."""

import dataclasses
from typing import Any

from services.processor.engine.application.application import StoreSpec
from services.processor.engine.core.core import Core
from services.processor.engine.state.local import LocalMeta, MemoryStore
from shared.topics import BEACONS, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, Counting, record


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


def test_a_row_whose_deadline_moves_with_every_record_has_few_timers() -> None:
    """Also where it has changed by the end of each flush, as a row of a busy key has; and the last one fires after an abort."""
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    for offset in range(0, 3_000, 3):
        core.fold([record(offset, at_ms=1_000 + offset)])
        core.cut()
        core.commit()
        rows, meta = core.begin_flush()
        core.fold([record(offset + 1, at_ms=1_001 + offset)])
        core.cut()
        core.fold([record(offset + 2, at_ms=1_002 + offset)])
        local.write(rows, LocalMeta(meta, 1))
        core.end_flush()
        assert len(core._layers._timers._heap) < 10
        core.commit()
    core.abort()
    core.advance_to(5_000)
    (output,) = core.cut().outputs
    assert (output.key, output.value) == (b"a", b"2999")


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
