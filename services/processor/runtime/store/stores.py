"""Local stores of a process: opened in the plan's folder, checked against the broker, and deleted when they cannot be trusted."""

import os
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

import structlog

from services.processor.engine.state.local import LocalMeta, StoreFailed
from services.processor.runtime.kafka.changelog_ends import ChangelogEnds
from services.processor.runtime.kafka.tables import TableReader
from services.processor.runtime.kafka.topic_ids import TopicIds
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.deletions import Deletions
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.rocksdb_files import delete_store, delete_unused_store
from services.processor.runtime.store.rocksdb_options import Memory
from services.rim.process.elastic import MovingPermits
from services.rim.telemetry.metrics import counter
from shared.metrics import PROCESSOR_STORES_DISCARDED

log = structlog.get_logger(__name__)

#: How often stores that are not used any more are looked for.
SWEEP_SECONDS: Final = 60.0
#: Stores that are filled from the changelog at once: each takes up to some 20 MiB of memory.
REPLAYS_MAX: Final = 16


class StoreTooOld(RuntimeError):
    """The changelog no longer has all rows that the local store lacks. Delete the store's files and replay from the beginning."""


class StoreAhead(RuntimeError):
    """The local store's position is after the changelog's end: the changelog lost committed records. Do not continue."""


class Stores:
    """The local stores of one process, of which each is one partition's. May be used from any thread."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._memory = Memory(
            block_cache_bytes=plan.settings.block_cache_bytes, write_buffer_bytes=plan.settings.write_buffer_bytes
        )
        #: The ids of the topics that rows are made from.
        self.topic_ids = TopicIds(plan.settings, plan.application)
        #: The application's global tables: a partition works once they have all.
        self.tables = TableReader(plan.settings, plan.application)
        self.changelog_ends = ChangelogEnds(plan.settings, plan.application)
        #: Held by a replay. One that gets nothing of its broker holds up no other.
        self.replays = MovingPermits(REPLAYS_MAX)
        self._deletions = Deletions(plan.settings, plan.application.changelog)
        #: When each store was opened last, monotonic seconds; a store is not deleted while another thread opens it.
        self._opened_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._swept_at = time.monotonic()

    def open(self, partition: int) -> RocksStore:
        """Opens the store of a partition at its present position."""
        plan = self._plan
        with self._lock:
            self._opened_at[partition] = time.monotonic()
        path, seconds_max = plan.store_path(partition), plan.settings.store_open_ms_max / 1000
        return RocksStore(
            path,
            self._memory,
            open_seconds_max=seconds_max,
            rewrite_seconds=plan.settings.rewrite_interval_ms / 1000,
            crash_points=plan.crash_points,
        )

    def discard(self, partition: int, why: str) -> None:
        """Deletes the closed store of a partition: the changelog has everything. Logged and counted."""
        log.error("store_discarded", partition=partition, why=why)
        counter(PROCESSOR_STORES_DISCARDED).labels(self._plan.application.name).inc()
        delete_store(self._plan.store_path(partition))

    def delete_unused(self, in_use: Collection[int]) -> list[int]:
        """Deletes the stores of this process, but those `in_use`, that were not used for `PROCESSOR_STORE_KEPT_MS`.

        Returns the numbers of their partitions. Raises `StoreFailed`.
        """
        kept_seconds = self._plan.settings.store_kept_ms / 1000
        deleted = []
        for path in _folders(self._plan.store_path(0).parent):
            partition = int(path.name)
            if partition in in_use:
                continue
            idle_seconds = time.time() - _used_at(path)
            with self._lock:
                opened_at = self._opened_at.get(partition)
                was_opened = opened_at is not None and time.monotonic() - opened_at < kept_seconds
                if was_opened or idle_seconds < kept_seconds or not delete_unused_store(path):
                    continue
            log.info("store_deleted", partition=partition, idle_seconds=round(idle_seconds))
            deleted.append(partition)
        return deleted

    def sweep(self, in_use: Collection[int]) -> None:
        """As `delete_unused`. A failure is logged: nothing depends on it."""
        try:
            self.delete_unused(in_use)
        except (StoreFailed, OSError) as error:
            log.warning("stores_not_deleted", error=str(error))

    @property
    def is_sweep_due(self) -> bool:
        """Whether it is time for a `sweep`; True once in `SWEEP_SECONDS`."""
        now = time.monotonic()
        is_due = now - self._swept_at >= SWEEP_SECONDS
        if is_due:
            self._swept_at = now
        return is_due

    def check(self, partition: int, position: LocalMeta, low: int, end: int, *, now_ms: int) -> None:
        """Holds a store's position against the ends of its changelog. `now_ms`: this machine's time, ms since 1970.

        Raises `StoreTooOld`, `StoreAhead`; `KafkaException` when the broker does not say how long deletions are kept.
        """
        name = self._plan.application.changelog.name
        check_reach(f"{name}/{partition}", position, low, end)
        # A commit takes two offsets and more, one of them its marker. A store stands before the marker of its last commit.
        if end - position.changelog_offset > 1:
            check_age(name, position, now_ms=now_ms, kept_ms=self._deletions.kept_ms())


def _folders(of_process: Path) -> list[Path]:
    """The folders of the stores of a process."""
    return sorted(path for path in of_process.glob("*") if path.name.isdecimal()) if of_process.exists() else []


def _used_at(path: Path) -> float:
    """When a store was written last, seconds since 1970."""
    with os.scandir(path) as entries:
        return max([entry.stat().st_mtime for entry in entries], default=path.stat().st_mtime)


def check_reach(changelog: str, position: LocalMeta, low: int, end: int) -> None:
    """Raises `StoreTooOld` when the changelog begins after the position, `StoreAhead` when it ends before it."""
    stands_at = position.changelog_offset
    if stands_at < low:
        raise StoreTooOld(f"the local store stands at {stands_at}, {changelog} begins at {low}")
    if stands_at > end:
        raise StoreAhead(
            f"{changelog}: the local store stands at {stands_at}, the changelog ends at {end}: it has lost"
            " committed records. Find out why; going on would lose them silently."
        )


def check_age(changelog: str, position: LocalMeta, *, now_ms: int, kept_ms: int) -> None:
    """Raises `StoreTooOld` when deletions later than the position may be gone: what they deleted would rise again.

    The broker keeps them for `kept_ms` after their append. Half of that is the limit, since this machine's clock (`now_ms`,
    ms since 1970) and the broker's may differ.
    """
    age_ms = now_ms - position.current_ms
    if age_ms > kept_ms // 2:
        raise StoreTooOld(f"the local store is {age_ms} ms old; {changelog} keeps deletions for {kept_ms} ms")
