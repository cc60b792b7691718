"""Flushes: what a slot does not wait for."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from services.processor.engine.core.core import Core
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.partition.flushes import Flushes
from services.processor.runtime.partition.transaction import Durable
from services.processor.runtime.store.rocksdb import RocksStore
from tests.unit.processor.engine.core.test_core import record
from tests.unit.processor.engine.counting import APPLICATION
from tests.unit.processor.runtime.store.test_rocksdb import MEMORY


def test_a_flush_that_has_no_thread_is_not_waited_for() -> None:
    """All threads may be stuck in a client that never comes back."""
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    core.fold([record(0)])
    core.cut()
    core.commit()
    stuck = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(stuck.wait)
        flushes = Flushes(0, pool, interval_seconds=0.0)
        flushes.begin_when_due(core, local, Durable(1, 0), bytes_max=1)
        flushes.abandon()
        stuck.set()
    assert local.position() is None


def test_a_store_into_which_nothing_is_written_writes_its_files_again(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store", MEMORY, open_seconds_max=5, rewrite_seconds=0.0)
    store.write({b"\x01gone": pack(0, b"somebody")}, LocalMeta(Meta({}, 1, 1), 1))
    store.write({b"\x01gone": None}, None)
    core = Core(APPLICATION, 0, store)
    with ThreadPoolExecutor(1) as pool:
        flushes = Flushes(0, pool, interval_seconds=0.0)
        flushes.begin_when_due(core, store, Durable(1, 0), bytes_max=1)
        wait([pool.submit(int)])
        assert not any(b"somebody" in file.read_bytes() for file in (tmp_path / "store").glob("*.sst"))
        flushes.settle(core)
        # What comes then is a flush of rows again.
        core.fold([record(0)])
        core.cut()
        core.commit()
        flushes.begin_when_due(core, store, Durable(2, 0), bytes_max=1)
        wait([pool.submit(int)])
        flushes.settle(core)
    assert not core.unflushed_bytes
    store.close()


def test_a_store_that_is_always_written_writes_its_files_again_after_a_flush(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store", MEMORY, open_seconds_max=5, rewrite_seconds=0.0)
    store.write({b"\x01gone": pack(0, b"somebody")}, LocalMeta(Meta({}, 1, 1), 1))
    store.write({b"\x01gone": None}, None)
    core = Core(APPLICATION, 0, store)
    core.fold([record(0)])
    core.cut()
    core.commit()
    with ThreadPoolExecutor(1) as pool:
        flushes = Flushes(0, pool, interval_seconds=0.0)
        flushes.begin_when_due(core, store, Durable(1, 0), bytes_max=1)
        wait([pool.submit(int)])
        flushes.settle(core)
    assert not core.unflushed_bytes
    assert not any(b"somebody" in file.read_bytes() for file in (tmp_path / "store").glob("*.sst"))
    store.close()
