"""Taking: a partition whose takeover runs on a thread of the pool."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import structlog

from services.processor.runtime.partition.changelog import GivenUp, Restoring
from services.processor.runtime.partition.takeover import TakenPartition, take_over
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores

log = structlog.get_logger(__name__)


class Taking:
    """A takeover (`takeover.take_over`) of one partition, or the next one after something went wrong."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        stores: Stores,
        pool: ThreadPoolExecutor,
        *,
        given_up: threading.Event,
        leave: Callable[[], None] | None = None,
        wait_seconds: float = 0.0,
        warm: RocksStore | None = None,
        discard: str | None = None,
    ) -> None:
        """`leave` closes what this slot had of the partition before: it may wait for a disk, so the loop does not do it."""
        #: How far it is.
        self.restoring = Restoring()

        def take_partition() -> TakenPartition:
            if leave is not None:
                leave()
            return take_over(
                plan,
                partition,
                stores,
                given_up,
                restoring=self.restoring,
                wait_seconds=wait_seconds,
                warm=warm,
                discard=discard,
            )

        self._future = pool.submit(take_partition)

    def taken(self) -> TakenPartition | None:
        """The partition once it is taken. Raises what the takeover raised."""
        return self._future.result() if self._future.done() else None

    def abandon(self) -> None:
        """The partition was released meanwhile: the producer and store of its takeover are closed. Its `given_up` is set."""
        self._future.add_done_callback(_close_unused)


def _close_unused(taking: Future[TakenPartition]) -> None:
    if taking.cancelled():
        return
    error = taking.exception()
    if error is None:
        taking.result().store.close()
    elif not isinstance(error, GivenUp):
        log.warning("takeover_ended", error=str(error))
