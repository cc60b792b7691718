"""The rows of one record key: found in every kind of store, and forgotten with what they count for."""

import dataclasses
from typing import Any

from services.processor.applications.video_views.stores import VIEWS
from services.processor.applications.video_views.view.progress.timeline import NO_EVENTS, with_event
from services.processor.applications.video_views.view.state import new_view
from services.processor.engine.application.application import StoreSpec
from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.rows import pack
from services.processor.runtime.operations.state.keys import _read, rows_of_key
from shared.topics import BEACONS
from tests.unit.processor.engine.application.test_timers import SEEN, TIMED, TIMERS
from tests.unit.processor.engine.counting import COUNTS

PLAYS = StoreSpec[bytes](name="plays", id=9, encode=bytes, decode=bytes, record_key=lambda key: key.partition(b"/")[0])


def test_rows_of_a_key_are_found_and_those_of_longer_keys_are_not() -> None:
    store = MemoryStore()
    keys: list[tuple[StoreSpec[Any], bytes]] = [
        (COUNTS, bytes([1]) + b"k"),
        (COUNTS, bytes([1]) + b"kk"),
        (TIMERS, TIMERS.row_key(b"k", b"end")),
        (SEEN, SEEN.row_key(b"k\x00", b"other")),
        *((SEEN, SEEN.row_key(b"k", b"%04d" % number)) for number in range(600)),
        (PLAYS, bytes([9]) + b"k/1"),
        (PLAYS, bytes([9]) + b"kk/1"),
    ]
    store.write({key: pack(5, b"\x01") for _, key in keys}, None)
    found = {spec.name: [key for key, _ in rows_of_key(store, spec, b"k")] for spec in (COUNTS, TIMERS, SEEN, PLAYS)}
    assert found["counts"] == [b"\x01k"]
    assert found["plays"] == [b"\x09k/1"]
    assert [len(found[name]) for name in ("count_timers", "seen")] == [1, 600]


def test_a_row_is_shown_also_where_it_cannot_be_decoded() -> None:
    shown = _read(COUNTS, b"\x01k\xff", pack(5, b"\x07"))
    assert (shown.store, shown.key, shown.deadline_ms, shown.row) == ("counts", "k\\xff", 5, 7)
    assert _read(COUNTS, b"\x01k", pack(0, b"not a number")).row is None
    assert _read(COUNTS, b"\x01k", pack(0, b"\x07", 9)).row is None


def test_what_a_row_keeps_packed_is_shown_too() -> None:
    view = new_view("mux", 5)
    view.folded.progress.timeline = with_event(NO_EVENTS, 1_700_000_000_000, 3, 250, 4_000_000)
    row = _read(VIEWS, b"\x01acme:v", pack(5, VIEWS.encode(view))).row
    assert row[0] == "mux"
    assert "[[1700000000000, 3, 250, 4000000]]" in str(row)


def test_a_core_forgets_a_key_with_its_timers_and_entries() -> None:
    store = MemoryStore()
    core = Core(TIMED, 0, store)
    core.fold([Record(BEACONS.name, 0, offset, 1_000, key, b"") for offset, key in enumerate((b"a", b"b", b"a"))])
    core.cut()
    core.commit()
    rows, meta = core.begin_flush()
    store.write(rows, LocalMeta(meta, 9))
    later = Core(dataclasses.replace(TIMED, version=""), 0, store)
    later.forget(b"a")
    checkpoint = later.cut()
    assert sorted(checkpoint.changes) == sorted(key for key in rows if b"a" in key[1:2])
    assert set(checkpoint.changes.values()) == {None}
    assert checkpoint.meta.rows == {1: 1, 2: 3, 3: 1, 254: 0}
    assert checkpoint.meta.next_offsets == {BEACONS.name: 3}
    later.commit()
    later.forget(b"a")
    assert later.dirty_rows == 0
