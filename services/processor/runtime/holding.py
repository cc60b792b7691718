"""Holding: one partition that this slot has, from being taken to being given up.

    taking   its thread fences, opens and replays (`takeover`)         the partition is paused
    working  records are folded, checkpoints committed
    dropped  an outcome was unclear: core and producer are thrown away, then taking again
    closed   given up

Everything here is called by the slot's one folding thread; commits, flushes and takeovers run on the pool.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final, NamedTuple

import structlog

from services.processor.engine.application import Lookup
from services.processor.engine.core import Checkpoint, Core
from services.processor.engine.failures import ApplicationFailed
from services.processor.engine.inbox import Inbox
from services.processor.engine.local import LocalMeta, StoreCorrupt
from services.processor.engine.record import Record
from services.processor.runtime import counts
from services.processor.runtime.caught_up import CaughtUp
from services.processor.runtime.changelog import GivenUp, Restoring
from services.processor.runtime.checkpoints import Aborted, Committer, Durable, Fenced, Unclear
from services.processor.runtime.ends import End
from services.processor.runtime.plan import Limits, Plan
from services.processor.runtime.questions import Looked, Unanswered
from services.processor.runtime.rocks_store import Memory, RocksStore
from services.processor.runtime.status import PartitionStatus
from services.processor.runtime.takeover import Taken, take_over

log = structlog.get_logger(__name__)

#: After a fence: a zombie that wakes inside its own `init_transactions` may have fenced the rightful owner, once.
FENCED_SECONDS: Final = 3.0
UNCLEAR_SECONDS: Final = 0.2


class Pools(NamedTuple):
    """The threads that wait for Kafka and disks in a slot's stead."""

    commits: ThreadPoolExecutor
    takeovers: ThreadPoolExecutor


class Holding:
    """One partition of this slot, of all inputs. `rewind` is told the topic and offset that reading must go on from."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        memory: Memory,
        pools: Pools,
        rewind: Callable[[str, int, int | None], None],
        *,
        warm: RocksStore | None = None,
    ) -> None:
        self.partition = partition
        self._plan = plan
        self._topics = [topic.name for topic in plan.application.inputs]
        self._limits = plan.limits(1)
        self._memory = memory
        self._pools = pools
        self._rewind = rewind
        self._given_up = threading.Event()
        self._taking: Future[Taken] | None = None
        self._taken: Taken | None = None
        self._core: Core | None = None
        self._committer: Committer | None = None
        self._committing: Future[Durable] | None = None
        self._checkpoint: Checkpoint | None = None
        self._cut_at = 0.0
        self._stands_at = Durable(0, 0)
        self._flushing: Future[None] | None = None
        self._flushed_at = 0.0
        self._inbox = Inbox(plan.application)
        #: The clock, and when on this machine's monotonic clock it stood there at the latest.
        self._anchor = (0, 0.0)
        self._caught_up = CaughtUp(self._topics)
        self._committed_at = 0.0
        self._commit_seconds: float | None = None
        self._take(wait_seconds=0.0, warm=warm)

    # What others ask.

    @property
    def is_working(self) -> bool:
        """Whether records can be given to it."""
        return self._core is not None

    def is_overfull(self, topic: str) -> bool:
        """Whether so many records of an input wait that no more of it should be read."""
        is_many = self._inbox.waiting_records(topic) >= self._plan.waiting_records_max
        return is_many or self._inbox.waiting_bytes(topic) >= self._limits.waiting_bytes_max

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970; 0 while it is being taken."""
        return self._core.clock_ms if self._core is not None else 0

    def lag_records(self, ends: Mapping[str, End]) -> int:
        """Input records not yet folded, as far as the confirmed ends tell."""
        core = self._core
        folded = {topic: (core.next_offset(topic) if core is not None else None) or 0 for topic in self._topics}
        return sum(max(0, end.offset - folded[topic]) for topic, end in ends.items())

    def look(self, lookup: Lookup, key: bytes, ends: Mapping[str, End]) -> Looked:
        """Answers a question from the core's rows as they are now. Raises `Unanswered` or `LookFailed`."""
        if self._core is None:
            raise Unanswered("the partition is being taken")
        try:
            found = self._core.look(lookup, key)
        except StoreCorrupt as error:
            # The next turn that reads the store meets it too, and takes the partition anew.
            raise Unanswered("the local store cannot be read") from error
        if found.json is None and not self._has_caught_up(self._core, ends):
            raise Unanswered("not there yet: the partition was taken or rolled back and has not caught up")
        return Looked(found.json, found.is_committed, self._committed_at, self._known_lag(ends))

    def status(self, ends: Mapping[str, End]) -> PartitionStatus:
        """What operators see of it."""
        core, restoring = self._core, self._restoring
        if core is None:
            return PartitionStatus(
                partition=self.partition,
                owner=self._plan.slot,
                state="taking",
                restored_rows=restoring.rows,
                restore_left_records=restoring.left_records,
            )
        return PartitionStatus(
            partition=self.partition,
            owner=self._plan.slot,
            state="working",
            lag_records=self._known_lag(ends),
            clock_ms=core.clock_ms,
            commit_ms=None if self._commit_seconds is None else round(self._commit_seconds * 1000),
            age_ms=round((time.monotonic() - self._committed_at) * 1000),
            rows=core.rows,
            timers_due=core.waiting_timers,
            restored_rows=restoring.rows,
            restore_left_records=0,
        )

    def _known_lag(self, ends: Mapping[str, End]) -> int | None:
        return self.lag_records(ends) if len(ends) == len(self._topics) else None

    def _has_caught_up(self, core: Core, ends: Mapping[str, End]) -> bool:
        folded = {topic: core.next_offset(topic) or 0 for topic in self._topics}
        return self._caught_up.observe(ends, folded, read_at=self._inbox.caught_up_at)

    # Work.

    def limit(self, limits: Limits) -> None:
        """From now on these are the partition's share of the slot's memory."""
        self._limits = limits
        if self._core is not None:
            self._core.limit(cache_rows_max=limits.cache_rows_max, dirty_bytes_max=limits.dirty_bytes_max)

    def accept(self, topic: str, records: list[Record], position: int) -> None:
        """Takes records read from an input up to (not including) offset `position`."""
        if self._core is not None:
            self._inbox.add(topic, records, position, time.monotonic())

    def step(self, ends: Mapping[str, End], group_metadata: Callable[[], Any]) -> None:
        """One turn: finish what the pool has done, fold what waits, let the clock run, cut when it is time.

        `ends` are the inputs' confirmed ends, as far as they are known.
        """
        try:
            try:
                self._work(ends, group_metadata)
            except ApplicationFailed as failure:
                self._set_aside(failure)
        except StoreCorrupt as error:
            # A commit in flight may end as it likes: the takeover finds out.
            if self._committing is not None:
                self._committing.exception()
                self._committing = self._checkpoint = None
            self._drop()
            self._take(wait_seconds=0.0, discard=str(error))

    def _work(self, ends: Mapping[str, End], group_metadata: Callable[[], Any]) -> None:
        self._settle()
        core = self._core
        if core is None:
            return
        for topic, end in ends.items():
            self._inbox.confirm(topic, end.offset, end.asked_at)
        self._fold(core)
        self._run_clock(core)
        self._has_caught_up(core, ends)
        now = time.monotonic()
        is_time = now - self._cut_at >= self._plan.commit_interval_ms / 1000
        is_much = self._is_full(core)
        if self._core is core and self._committing is None and core.is_dirty and (is_time or is_much):
            self._cut(core, group_metadata(), None)
        self._flush_when_due(core, now)

    def _settle(self) -> None:
        """Takes in what the pool has finished."""
        if self._taking is not None and self._taking.done():
            self._finish_taking(self._taking.result())
        if self._committing is not None and self._committing.done():
            self._finish_commit()
        if self._flushing is not None and self._flushing.done():
            self._finish_flush()

    def _fold(self, core: Core) -> None:
        unwaited = self._inbox.unwaited
        try:
            self._fold_ready(core)
        finally:
            counts.unwaited(self._plan.application.name, self._inbox.unwaited - unwaited)

    def _fold_ready(self, core: Core) -> None:
        # Two overlays at the most: while one is in flight and the next is large, records wait.
        while self._committing is None or not self._is_full(core):
            ready = self._inbox.ready(time.monotonic())
            if not ready:
                return
            folded = core.fold(ready)
            self._inbox.taken(folded)
            self._anchor = (core.clock_ms, time.monotonic())
            if folded < len(ready) or self._is_full(core):
                return

    def _is_full(self, core: Core) -> bool:
        return core.is_full or core.dirty_rows >= self._plan.dirty_rows_max

    def _set_aside(self, failure: ApplicationFailed) -> None:
        """The application failed on one record or row: everything since the last commit is done again without it."""
        log.error("application_failed", partition=self.partition, error=str(failure), exc_info=failure)
        # The commit in flight was cut before: it is good. Afterwards the core may be another, which will fail anew.
        self._join_commit()
        if self._core is not None:
            counts.commit_failed(self._plan.application.name, self.partition, "application_failed", "")
            folded, anchor = self._folded(self._core), self._anchor
            self._core.quarantine(failure)
            self._resume(self._core)
            if self._folded(self._core) == folded:
                # There is nothing to read again: the time that has passed since has passed.
                self._anchor = anchor

    def _folded(self, core: Core) -> list[int | None]:
        return [core.next_offset(topic) for topic in self._topics]

    def _run_clock(self, core: Core) -> None:
        """The clock runs on only while everything that the leaders have is known to be folded."""
        read_at = self._inbox.caught_up_at
        clock_ms, stood_at = self._anchor
        if read_at is not None and read_at > stood_at:
            core.advance_to(clock_ms + int((read_at - stood_at) * 1000))

    # Commits.

    def _cut(self, core: Core, group_metadata: Any, deadline: float | None) -> None:
        """Cuts and commits; without a deadline (monotonic seconds) the commit has its usual time from its start."""
        assert self._committer is not None
        self._cut_at = time.monotonic()
        self._checkpoint = core.cut()
        self._committing = self._pools.commits.submit(
            self._committer.commit, self._checkpoint, group_metadata, deadline, self._plan.commit_seconds_max
        )

    def _finish_commit(self) -> None:
        committing, checkpoint, core = self._committing, self._checkpoint, self._core
        assert committing is not None
        assert checkpoint is not None
        assert core is not None
        self._committing = self._checkpoint = None
        name = self._plan.application.name
        try:
            self._stands_at = committing.result()
        except Aborted as error:
            log.warning("commit_aborted", partition=self.partition, error=str(error))
            self._abort(core, "aborted", error.code)
        except Unclear as error:
            outcome = "fenced" if isinstance(error, Fenced) else "unclear"
            log.warning("commit_unclear", partition=self.partition, outcome=outcome, error=str(error))
            counts.commit_failed(name, self.partition, outcome, error.code)
            self._drop()
            self._take(wait_seconds=FENCED_SECONDS if outcome == "fenced" else UNCLEAR_SECONDS)
        else:
            core.commit()
            self._committed_at = time.monotonic()
            self._commit_seconds = self._committed_at - self._cut_at
            counts.committed(name, self.partition, checkpoint, self._commit_seconds)

    def _join_commit(self) -> None:
        if self._committing is not None:
            # The commit has a deadline of its own: this wait ends.
            self._committing.exception()
            self._finish_commit()

    def _abort(self, core: Core, outcome: str, code: str) -> None:
        counts.commit_failed(self._plan.application.name, self.partition, outcome, code)
        core.abort()
        self._resume(core)

    def _resume(self, core: Core) -> None:
        """Reading goes on from where the core stands."""
        self._inbox.start({topic: core.next_offset(topic) or 0 for topic in self._topics})
        now = time.monotonic()
        self._anchor = (core.clock_ms, now)
        self._caught_up.restart(now)
        for topic in self._topics:
            self._rewind(topic, self.partition, core.next_offset(topic))

    # Flushes.

    def _flush_when_due(self, core: Core, now: float) -> None:
        is_due = now - self._flushed_at >= self._plan.flush_interval_seconds
        if self._flushing is not None or self._core is not core or not core.unflushed_bytes:
            return
        if is_due or core.unflushed_bytes >= self._limits.unflushed_bytes_max:
            assert self._taken is not None
            rows, meta = core.begin_flush()
            position = LocalMeta(meta, self._stands_at.changelog_offset, self._stands_at.append_ms)
            self._flushed_at = now
            self._flushing = self._pools.commits.submit(self._taken.store.write, rows, position)

    def _finish_flush(self) -> None:
        flushing, self._flushing = self._flushing, None
        assert flushing is not None
        # A failed write (a full disk) ends the process: the store is behind, not wrong, but it cannot go on.
        flushing.result()
        counts.flushed(time.monotonic() - self._flushed_at)
        if self._core is not None:
            self._core.end_flush()

    # Taking and giving up.

    def _take(self, *, wait_seconds: float, warm: RocksStore | None = None, discard: str | None = None) -> None:
        self._restoring = Restoring()
        self._taking = self._pools.takeovers.submit(
            take_over,
            self._plan,
            self.partition,
            self._memory,
            self._given_up,
            restoring=self._restoring,
            wait_seconds=wait_seconds,
            warm=warm,
            discard=discard,
        )

    def _finish_taking(self, taken: Taken) -> None:
        self._taken, self._taking = taken, None
        self._core = Core(self._plan.application, self.partition, self._taken.store)
        self.limit(self._limits)
        self._committer = Committer(
            self._taken.producer, self._plan.application, self.partition, self._plan.crash_points
        )
        stored = self._taken.store.position()
        if stored is not None:
            self._stands_at = Durable(stored.changelog_offset, stored.current_ms)
        self._cut_at = self._flushed_at = self._committed_at = time.monotonic()
        self._resume(self._core)

    def _drop(self) -> None:
        """Throws core and producer away. What was committed is in the changelog; what was not is read again."""
        if self._flushing is not None:
            failure = self._flushing.exception()
            self._flushing = None
            if failure is not None:
                log.warning("flush_failed", partition=self.partition, error=str(failure))
        self._inbox.start({})
        self._core = self._committer = None
        if self._taken is not None:
            self._taken.store.close()
            self._taken = None

    def begin_close(self, group_metadata: Any, deadline: float) -> None:
        """The partition is being taken from this slot: commit what is folded, by `deadline` (monotonic seconds)."""
        self._given_up.set()
        self._inbox.start({})
        if self._committing is not None and (
            not _wait(self._committing, deadline) or self._committing.exception() is not None
        ):
            return
        try:
            if self._committing is not None:
                self._finish_commit()
            if self._core is not None and self._core.is_dirty:
                self._cut(self._core, group_metadata, deadline)
        except (ApplicationFailed, StoreCorrupt) as error:
            # The heir meets it too, and has the time to deal with it.
            log.warning("closed_uncommitted", partition=self.partition, error=str(error))
            self._drop()

    def end_close(self, deadline: float) -> bool:
        """Closes the partition. False when something folded could not be committed: the heir folds it again."""
        is_clean = True
        if self._committing is not None:
            # A commit that cannot end in time is abandoned with its producer; the heir's `init_transactions` decides.
            is_clean = _wait(self._committing, deadline) and self._committing.exception() is None
        self.drop_lost()
        return is_clean

    def drop_lost(self) -> None:
        """The partition is another slot's already: nothing may be committed any more."""
        self._given_up.set()
        self._committing = None
        self._drop()
        if self._taking is not None:
            self._taking.add_done_callback(_close_unused)
            self._taking = None


def _wait(future: Future[Any], deadline: float) -> bool:
    try:
        future.exception(max(0.0, deadline - time.monotonic()))
    except FutureTimeout:
        return False
    return True


def _close_unused(taking: Future[Taken]) -> None:
    error = taking.exception()
    if error is None:
        taking.result().store.close()
    elif not isinstance(error, GivenUp):
        log.warning("takeover_ended", error=str(error))
