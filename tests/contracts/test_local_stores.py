"""MemoryStore and RocksStore keep one contract; RocksStore keeps it across a close."""

import os
from pathlib import Path

import pytest

from services.processor.engine.state.local import LocalMeta, LocalStore, MemoryStore, StoreCorrupt, StoreLocked
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.rocksdb_options import Memory
from tests.contracts.local_store import LocalStoreContract

MEMORY = Memory(block_cache_bytes=4 << 20, write_buffer_bytes=8 << 20)


class TestMemoryStore(LocalStoreContract):
    def make_store(self) -> LocalStore:
        return MemoryStore()


class TestRocksStore(LocalStoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._path = tmp_path / "store"

    def make_store(self) -> RocksStore:
        return RocksStore(self._path, MEMORY, open_seconds_max=5)

    def test_what_was_flushed_is_there_after_a_close(self) -> None:
        store = self.make_store()
        position = LocalMeta(Meta({"beacons": 3}, 4, 1), 7)
        store.write({b"\x01a": pack(5, b"x")}, position)
        store.close()
        again = self.make_store()
        assert again.position() == position
        assert again.due((0, b""), 9, 9) == [(5, b"\x01a")]

    def test_rows_larger_than_a_slice_are_all_written(self) -> None:
        store = self.make_store()
        rows = {b"\x01" + str(number).encode(): pack(0, bytes(100_000)) for number in range(35)}
        store.write(dict(rows), LocalMeta(None, 1))
        assert all(store.get(key) == row for key, row in rows.items())

    @pytest.mark.thorough
    def test_a_store_in_use_is_refused_with_its_path(self) -> None:
        store = self.make_store()
        with pytest.raises(StoreLocked, match="in use"):
            RocksStore(self._path, MEMORY, open_seconds_max=0.2)
        store.close()

    def test_a_broken_block_is_reported_and_never_taken_for_the_end(self) -> None:
        store = self.make_store()
        rows = {b"\x01" + str(number).encode(): pack(1_000 + number, b"") for number in range(5_000)}
        store.write(dict(rows), LocalMeta(None, 1))
        store.close()
        for path in self._path.glob("*.sst"):
            size = path.stat().st_size
            with path.open("r+b") as file:
                # Timers come after rows; index and footer, at the end, stay whole: it opens.
                file.seek(size // 2)
                file.write(os.urandom(size // 5))
        again = self.make_store()
        with pytest.raises(StoreCorrupt):
            again.due((0, b""), 1 << 60, 9_999)
        again.close()
