"""What of a write is on the disk at every point of it: the position never without its rows."""

import shutil
from pathlib import Path

import pytest

from services.processor.engine.state.local import LocalMeta
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.store.rocksdb import SLICE_BYTES_MAX, RocksStore
from services.processor.runtime.store.rocksdb_options import Memory
from services.rim.process.crash_points import CrashPoint, CrashPoints

MEMORY = Memory(block_cache_bytes=4 << 20, write_buffer_bytes=64 << 20)
ROWS = {b"\x01row-%d" % number: pack(0, bytes(SLICE_BYTES_MAX // 4)) for number in range(10)}


class Copying(CrashPoints):
    """At its point forces to the disk what may be there already, and keeps what a crash would leave; once."""

    def __init__(self, folder: Path, point: CrashPoint) -> None:
        super().__init__()
        self._folder = folder
        self._point = point
        self.store: RocksStore | None = None

    def reach(self, here: CrashPoint) -> None:
        if here == self._point and self.store is not None:
            self.store._db.flush()
            self.store = None
            # Two flushes, so nothing is compacted meanwhile. The rest is what RocksDB deletes as it goes, and nobody needs.
            shutil.copytree(
                self._folder / "store",
                self._folder / "left",
                ignore=shutil.ignore_patterns("*.log", "LO*", "OPTIONS*", "*.dbtmp"),
            )


def opened(folder: Path, points: CrashPoints | None = None) -> RocksStore:
    return RocksStore(folder, MEMORY, open_seconds_max=5, crash_points=points)


@pytest.mark.parametrize("point", ["slice_written", "rows_written", "flushed"])
def test_a_position_never_stands_without_its_rows(tmp_path: Path, point: CrashPoint) -> None:
    points = Copying(tmp_path, point)
    store = opened(tmp_path / "store", points)
    former, later = (LocalMeta(Meta({}, 0, number), number) for number in (1, 2))
    store.write({}, former)
    points.store = store
    store.write(ROWS, later)
    store.close()
    left = opened(tmp_path / "left")
    assert left.position() == (later if point == "flushed" else former)
    assert point == "slice_written" or [left.get(key) for key in ROWS] == list(ROWS.values())
    left.close()


def test_what_was_deleted_is_gone_from_the_files_once_they_are_written_again(tmp_path: Path) -> None:
    marker = b"somebody's own words"
    deleted = {b"\x01gone": pack(0, marker)}

    def has_marker() -> bool:
        return any(marker in file.read_bytes() for file in (tmp_path / "store").glob("*.sst"))

    def at(offset: int) -> LocalMeta:
        return LocalMeta(Meta({"beacons": offset}, clock_ms=1, commit_number=offset), offset)

    for rewrite_seconds, is_left in ((3600.0, True), (0.0, False)):
        folder = tmp_path / "store"
        shutil.rmtree(folder, ignore_errors=True)
        store = RocksStore(folder, MEMORY, open_seconds_max=5, rewrite_seconds=rewrite_seconds)
        store.write(deleted, at(1))
        assert has_marker()
        store.write({b"\x01gone": None}, at(2))
        assert has_marker(), "a write does not do it: who takes a partition over waits for it"
        assert store.is_rewrite_due != is_left
        if store.is_rewrite_due:
            store.rewrite()
        assert has_marker() == is_left
        assert store.get(b"\x01gone") is None
        store.close()


def test_no_timer_keeps_the_key_of_a_row_that_is_gone_or_has_moved(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = RocksStore(folder, MEMORY, open_seconds_max=5, rewrite_seconds=0.0)
    day_ms = 86_400_000
    rows = {
        b"\x01gone": pack(70 * day_ms, b"a"),
        b"\x01moved": pack(70 * day_ms, b"b"),
        b"\x01stays": pack(day_ms, b"c"),
    }
    store.write(rows, LocalMeta(Meta({}, clock_ms=1, commit_number=1), 1))
    changed = {b"\x01gone": None, b"\x01moved": pack(2 * day_ms, b"b")}
    store.write(changed, LocalMeta(Meta({}, clock_ms=2, commit_number=2), 2))
    store.rewrite()
    assert store.due((0, b""), 1 << 62, 10) == [(day_ms, b"\x01stays"), (2 * day_ms, b"\x01moved")]
    assert not any(b"\x01gone" in file.read_bytes() for file in folder.glob("*.sst"))
    store.close()


def test_many_timers_are_held_beside_their_rows(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store", MEMORY, open_seconds_max=5, rewrite_seconds=0.0)
    rows = {b"\x01%05d" % number: pack(1_000 + number, b"row") for number in range(2_500)}
    store.write(rows, LocalMeta(Meta({}, clock_ms=1, commit_number=1), 1))
    gone = dict.fromkeys(list(rows)[::2])
    store.write(gone, LocalMeta(Meta({}, clock_ms=2, commit_number=2), 2))
    store.rewrite()
    left = [key for _, key in store.due((0, b""), 1 << 62, 5_000)]
    assert left == [key for key in rows if key not in gone]
    store.close()


def test_a_store_that_was_closed_meanwhile_is_written_again_all_the_same(tmp_path: Path) -> None:
    """Slots that are restarted every day would else never do it."""
    folder = tmp_path / "store"

    def opened_after(rewrite_seconds: float) -> RocksStore:
        return RocksStore(folder, MEMORY, open_seconds_max=5, rewrite_seconds=rewrite_seconds)

    store = opened_after(0.0)
    store.write({b"\x01one": pack(0, b"first"), b"\x01other": pack(0, b"x")}, LocalMeta(Meta({}, 1, 1), 1))
    store.write({b"\x01other": None}, LocalMeta(Meta({}, 2, 2), 2))
    store.close()
    store = opened_after(3_600.0)
    store.write({b"\x01one": None}, LocalMeta(Meta({}, 3, 3), 3))
    assert not store.is_rewrite_due
    store.close()
    store = opened_after(0.0)
    assert store.is_rewrite_due
    store.rewrite()
    assert not store.is_rewrite_due
    assert not any(b"first" in file.read_bytes() for file in folder.glob("*.sst"))
    store.close()
