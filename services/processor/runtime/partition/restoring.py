"""Restoring: the state of a partition while a thread of the pool takes it over."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Self

import structlog

from services.processor.runtime.partition.changelog import GivenUp, RestoreProgress
from services.processor.runtime.partition.takeover import TakenPartition, take_over
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Restoring:
    """A running takeover (`takeover.take_over`) of one partition: the first one, or the next one after a failure."""

    takeover: Future[TakenPartition]
    #: How far it is.
    progress: RestoreProgress

    @classmethod
    def begin(
        cls,
        plan: Plan,
        partition: int,
        stores: Stores,
        pool: Executor,
        *,
        given_up: threading.Event,
        leave: Callable[[], None] | None = None,
        wait_seconds: float = 0.0,
        warm: RocksStore | None = None,
        discard: str | None = None,
    ) -> Self:
        """Begins a takeover. `leave` closes the former state of the partition; it may wait for a disk, so the pool calls it."""
        progress = RestoreProgress()

        def take_partition_over() -> TakenPartition:
            if leave is not None:
                leave()
            return take_over(
                plan,
                partition,
                stores,
                given_up,
                progress=progress,
                wait_seconds=wait_seconds,
                warm=warm,
                discard=discard,
            )

        return cls(pool.submit(take_partition_over), progress)

    @property
    def is_over(self) -> bool:
        """Whether the takeover has an outcome."""
        return self.takeover.done()

    def abandon(self) -> None:
        """The partition was released meanwhile: closes what the takeover opens. `given_up` is set."""
        self.takeover.add_done_callback(_close_unused)


def _close_unused(takeover: Future[TakenPartition]) -> None:
    if takeover.cancelled():
        return
    error = takeover.exception()
    if error is None:
        takeover.result().store.close()
    elif not isinstance(error, GivenUp):
        log.warning("takeover_ended", error=str(error))
