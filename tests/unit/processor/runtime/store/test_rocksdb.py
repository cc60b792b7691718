"""What of a write is on the disk at every point of it: the position never without its rows."""

import shutil
from pathlib import Path

import pytest

from services.processor.engine.state.local import LocalMeta
from services.processor.engine.state.rows import Meta, pack
from services.processor.runtime.store.rocksdb import SLICE_BYTES_MAX, Memory, RocksStore
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
        assert has_marker() == is_left
        assert store.get(b"\x01gone") is None
        store.close()
