"""Flushes: writes the committed rows of one partition to its local store on a thread of the pool, one at a time."""

import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future

import structlog

from services.processor.engine.core.core import Core
from services.processor.engine.state.local import LocalMeta, LocalStore
from services.processor.runtime.partition.transaction import Durable
from services.processor.runtime.telemetry import counts

log = structlog.get_logger(__name__)


class Flushes:
    """Writes the store, which has everything at first, every `interval_seconds`, or sooner when many bytes wait."""

    def __init__(self, partition: int, pool: Executor, interval_seconds: float) -> None:
        self._partition = partition
        self._pool = pool
        self._interval_seconds = interval_seconds
        self._flushing: Future[None] | None = None
        #: Whether that only writes the store's files again.
        self._is_rewrite = False
        self._began_at = time.monotonic()

    def begin_when_due(self, core: Core, store: LocalStore, stands_at: Durable, *, bytes_max: int) -> None:
        """Begins one when it is time, or when more than `bytes_max` wait. When that is due, the store's files are written again."""
        if self._flushing is not None:
            return
        if not core.unflushed_bytes:
            if store.is_rewrite_due:
                self._is_rewrite = True
                self._flushing = self._pool.submit(store.rewrite)
            return
        now = time.monotonic()
        if now - self._began_at >= self._interval_seconds or core.unflushed_bytes >= bytes_max:
            rows, meta = core.begin_flush()
            self._began_at = now
            position = LocalMeta(meta, stands_at.changelog_offset, stands_at.append_ms)
            self._flushing = self._pool.submit(_write, store, rows, position)

    @property
    def is_running(self) -> bool:
        """Whether one has not been taken in yet."""
        return self._flushing is not None

    def is_behind(self, core: Core, *, bytes_max: int) -> bool:
        """Whether the limit of rows that wait for the next flush is reached while one runs."""
        return self._flushing is not None and core.unflushed_bytes >= bytes_max

    def settle(self, core: Core | None) -> None:
        """Takes in what the pool has finished.

        Raises what the write raised: a full disk ends the process. The store is behind, not wrong, but it cannot go on.
        """
        if self._flushing is None or not self._flushing.done():
            return
        flushing, self._flushing = self._flushing, None
        was_rewrite, self._is_rewrite = self._is_rewrite, False
        flushing.result()
        if was_rewrite:
            return
        counts.flushed(time.monotonic() - self._began_at)
        if core is not None:
            core.end_flush()

    def abandon(self) -> None:
        """Waits until the store is not written any more; its core is discarded."""
        flushing, self._flushing = self._flushing, None
        self._is_rewrite = False
        # One that waits for a thread need not begin: threads may be stuck in the client, and then it never would.
        if flushing is None or flushing.cancel():
            return
        failure = flushing.exception()
        if failure is not None:
            log.warning("flush_failed", partition=self._partition, error=str(failure))


def _write(store: LocalStore, rows: Mapping[bytes, bytes | None], position: LocalMeta) -> None:
    store.write(rows, position)
    if store.is_rewrite_due:
        store.rewrite()
