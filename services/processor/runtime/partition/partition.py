"""Partition: one partition of this slot, from its takeover to its release.

    taking   its thread fences, opens and replays (`takeover`)         the partition is paused
    working  records are folded, checkpoints committed
    dropped  an outcome was unclear: core and producer are discarded, then taking again
    closed   released

Everything here is called by the slot's one folding thread; commits, flushes and takeovers run on the pool.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import structlog

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.engine.record import Record
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.pools import Pools
from services.processor.runtime.partition.takeover import TakenPartition
from services.processor.runtime.partition.taking import Taking
from services.processor.runtime.partition.task import TakeOverAgain, Task
from services.processor.runtime.plan import Limits, Plan
from services.processor.runtime.questions import Looked, Unanswered
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.runtime.telemetry.counts import Counts
from services.processor.runtime.telemetry.status import PartitionStatus, QuarantinedKeyStatus

log = structlog.get_logger(__name__)


class Partition:
    """One partition of this slot, of all inputs. `rewind` gets the topic and offset from which reading goes on."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        stores: Stores,
        pools: Pools,
        rewind: Callable[[str, int, int | None], None],
        *,
        warm: RocksStore | None = None,
    ) -> None:
        self.partition = partition
        self._plan = plan
        self._limits = plan.limits(1)
        self._stores = stores
        self._pools = pools
        self._rewind = rewind
        self._given_up = threading.Event()
        self._counts = Counts(plan.application.name, partition)
        self._task: Task | None = None
        self._taking: Taking | None = None
        self._take(warm=warm)

    # What others ask.

    @property
    def is_working(self) -> bool:
        """Whether records can be given to it."""
        return self._task is not None

    @property
    def has_more(self) -> bool:
        """Whether records or timers wait that its last turn had no time for."""
        return self._task is not None and self._task.has_more

    def is_overfull(self, topic: str) -> bool:
        """Whether so many records of an input wait that no more of it should be read."""
        return self._task is not None and self._task.is_overfull(topic)

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970; 0 while it is being taken."""
        return self._task.clock_ms if self._task is not None else 0

    def look(self, lookup: Lookup, key: bytes, ends: Mapping[str, End]) -> Looked:
        """Answers a question from the core's rows as they are now. Raises `Unanswered` or `LookFailed`."""
        if self._task is None:
            raise Unanswered("the partition is being taken")
        return self._task.look(lookup, key, ends)

    def ask(self, query: Query, subject: bytes) -> bytes | None:
        """Answers a question from the core's committed rows. Raises `Unanswered` or `LookFailed`."""
        if self._task is None:
            raise Unanswered("the partition is being taken")
        return self._task.ask(query, subject)

    @property
    def commit_number(self) -> int | None:
        """Of the last commit taken in; None while the partition is being taken."""
        return None if self._task is None else self._task.commit_number

    def quarantined(self, release: bytes | None) -> list[QuarantinedKeyStatus]:
        """The quarantined keys; with `release` those that are released now: that key, or every one where it is empty."""
        return [] if self._task is None else self._task.quarantined(release)

    def status(self, ends: Mapping[str, End]) -> PartitionStatus:
        """What operators see of it."""
        restoring, counts = self._restoring, self._counts
        told = PartitionStatus(
            partition=self.partition,
            owner=self._plan.slot,
            state="taking",
            dropped_commits=dict(counts.dropped),
            rejected=dict(counts.rejected),
            late=counts.late,
            restored_rows=restoring.rows,
            restored_rows_per_second=restoring.rows_per_second,
            restore_left_records=restoring.left_records,
        )
        return told if self._task is None else self._task.tell(told, ends)

    # Work.

    def limit(self, limits: Limits) -> None:
        """From now on these are the partition's share of the slot's memory."""
        self._limits = limits
        if self._task is not None:
            self._task.limit(limits)

    def accept(self, topic: str, records: list[Record], position: int) -> None:
        """Takes records read from an input up to (not including) offset `position`."""
        if self._task is not None:
            self._task.accept(topic, records, position)

    def step(self, ends: Mapping[str, End], group_metadata: Callable[[], Any], until: float) -> None:
        """One turn: finish what the pool has done, fold what waits, let the clock run, cut when it is time.

        `ends` are the inputs' confirmed ends, as far as they are known. It folds until then (monotonic seconds), plus the rest of
        the present slice, and not at all if that time has passed.
        """
        if self._taking is not None:
            taken = self._taking.taken()
            if taken is None:
                return
            self._taking = None
            self._task = self._start(taken)
        if self._task is not None:
            try:
                self._task.turn(ends, group_metadata, until)
            except TakeOverAgain as anew:
                former, self._task = self._task, None
                self._take(leave=former.leave, wait_seconds=anew.wait_seconds, discard=anew.discard)

    # Taking and giving up.

    def _take(self, **how: Any) -> None:
        taking = Taking(self._plan, self.partition, self._stores, self._pools.takeovers, given_up=self._given_up, **how)
        self._taking, self._restoring = taking, taking.restoring

    def _start(self, taken: TakenPartition) -> Task:
        try:
            working = Task(
                self._plan,
                self.partition,
                taken,
                self._pools.commits,
                counts=self._counts,
                media=self._pools.media,
                rewind=self._rewind,
            )
        except BaseException:
            taken.store.close()
            raise
        working.limit(self._limits)
        return working

    def begin_close(self, group_metadata: Any, deadline: float) -> None:
        """The partition is being taken from this slot: commit what is folded, by `deadline` (monotonic seconds)."""
        self._given_up.set()
        if self._task is not None:
            self._task.begin_close(group_metadata, deadline)

    def end_close(self, deadline: float) -> bool:
        """Closes the partition. False when something folded could not be committed: the successor folds it again."""
        is_clean = self._task is None or self._task.is_closed_by(deadline)
        self.drop_lost()
        return is_clean

    def drop_lost(self) -> None:
        """The partition already belongs to another slot: no commit is allowed any more."""
        self._given_up.set()
        if self._task is not None:
            # It may wait for a flush: neither the group nor the other partitions do. Who opens the files next waits for them.
            self._pools.takeovers.submit(self._task.leave).add_done_callback(self._tell_of_failure)
            self._task = None
        if self._taking is not None:
            self._taking.abandon()
            self._taking = None

    def _tell_of_failure(self, leaving: Future[None]) -> None:
        if not leaving.cancelled() and (error := leaving.exception()) is not None:
            log.error("leaving_failed", partition=self.partition, error=str(error), exc_info=error)
