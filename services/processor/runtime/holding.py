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
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from services.processor.engine.application import Lookup
from services.processor.engine.core import Core
from services.processor.engine.failures import ApplicationFailed
from services.processor.engine.local import StoreCorrupt
from services.processor.engine.record import Record
from services.processor.runtime.changelog import Restoring
from services.processor.runtime.checkpoints import Aborted, Committer, Durable, Fenced, Unclear
from services.processor.runtime.commits import Commits
from services.processor.runtime.ends import End
from services.processor.runtime.flushes import Flushes
from services.processor.runtime.inputs import Inputs
from services.processor.runtime.plan import Limits, Plan
from services.processor.runtime.questions import Looked, Unanswered
from services.processor.runtime.refusals import WorkerFailed
from services.processor.runtime.rocks_store import RocksStore
from services.processor.runtime.status import PartitionStatus
from services.processor.runtime.stores import Stores
from services.processor.runtime.takeover import Taken, close_unused, take_over
from shared.topics import REJECTED

log = structlog.get_logger(__name__)

#: After a fence: a zombie that wakes inside its own `init_transactions` may have fenced the rightful owner, once.
FENCED_SECONDS: Final = 3.0
UNCLEAR_SECONDS: Final = 0.2
#: A partition's turn, but for the batch at hand: while one catches up the others wait, and so do the group and a SIGTERM.
FOLD_SECONDS_MAX: Final = 0.1


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
        self._takeovers = pools.takeovers
        self._rewind = rewind
        self._given_up = threading.Event()
        self._taking: Future[Taken] | None = None
        self._taken: Taken | None = None
        self._core: Core | None = None
        self._committer: Committer | None = None
        self._inputs = Inputs(plan.application)
        self._commits = Commits(plan, partition, pools.commits)
        self._flushes = Flushes(partition, pools.commits, plan.flush_interval_seconds)
        self._take(wait_seconds=0.0, warm=warm)

    # What others ask.

    @property
    def is_working(self) -> bool:
        """Whether records can be given to it."""
        return self._core is not None

    def is_overfull(self, topic: str) -> bool:
        """Whether so many records of an input wait that no more of it should be read."""
        waiting_records, waiting_bytes = self._inputs.waiting(topic)
        return waiting_records >= self._plan.waiting_records_max or waiting_bytes >= self._limits.waiting_bytes_max

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970; 0 while it is being taken."""
        return self._core.clock_ms if self._core is not None else 0

    def look(self, lookup: Lookup, key: bytes, ends: Mapping[str, End]) -> Looked:
        """Answers a question from the core's rows as they are now. Raises `Unanswered` or `LookFailed`."""
        if self._core is None:
            raise Unanswered("the partition is being taken")
        try:
            found = self._core.look(lookup, key)
        except StoreCorrupt as error:
            # The next turn that reads the store meets it too, and takes the partition anew.
            raise Unanswered("the local store cannot be read") from error
        if found.json is None and not self._inputs.has_caught_up(self._core, ends):
            raise Unanswered("not there yet: the partition was taken or rolled back and has not caught up")
        lag_records = self._inputs.lag_records(self._core, ends)
        return Looked(found.json, found.is_committed, self._commits.committed_at, lag_records)

    def status(self, ends: Mapping[str, End]) -> PartitionStatus:
        """What operators see of it."""
        core, restoring, commits = self._core, self._restoring, self._commits
        told = PartitionStatus(
            partition=self.partition,
            owner=self._plan.slot,
            state="taking" if core is None else "working",
            dropped_commits=dict(commits.counts.dropped),
            rejected=dict(commits.counts.rejected),
            late=commits.counts.late,
            restored_rows=restoring.rows,
            restored_rows_per_second=restoring.rows_per_second,
            restore_left_records=restoring.left_records,
        )
        if core is None:
            return told
        return msgspec.structs.replace(
            told,
            lag_records=self._inputs.lag_records(core, ends),
            clock_ms=core.clock_ms,
            commit_ms=None if commits.seconds is None else round(commits.seconds * 1000),
            age_ms=round((time.monotonic() - commits.committed_at) * 1000),
            rows=core.rows,
            tallies=core.tallies,
            timers_due=core.waiting_timers,
            restore_left_records=0,
        )

    # Work.

    def limit(self, limits: Limits) -> None:
        """From now on these are the partition's share of the slot's memory."""
        self._limits = limits
        if self._core is not None:
            self._core.limit(cache_rows_max=limits.cache_rows_max, dirty_bytes_max=limits.dirty_bytes_max)

    def accept(self, topic: str, records: list[Record], position: int) -> None:
        """Takes records read from an input up to (not including) offset `position`."""
        if self._core is not None:
            self._inputs.accept(topic, records, position)

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
            self._commits.forget(wait=True)
            self._drop()
            self._take(wait_seconds=0.0, discard=str(error))

    def _work(self, ends: Mapping[str, End], group_metadata: Callable[[], Any]) -> None:
        if self._taking is not None and self._taking.done():
            self._finish_taking(self._taking.result())
        if self._commits.is_done and self._core is not None:
            self._finish_commit(self._core)
        elif self._commits.give_up_overdue():
            self._start_over("overdue", "", "the client let the commit's deadline pass")
        elif self._commits.is_stuck:
            raise WorkerFailed(
                f"a commit of partition {self.partition} gets no thread: the Kafka client hangs in all of them"
            )
        self._flushes.settle(self._core)
        core = self._core
        if core is None:
            return
        self._inputs.confirm(ends)
        self._fold(core)
        self._inputs.run_clock(core)
        self._inputs.has_caught_up(core, ends)
        if not self._commits.is_in_flight and core.is_dirty and (self._commits.is_time or self._is_full(core)):
            self._cut(core, group_metadata())
        assert self._taken is not None
        self._flushes.begin_when_due(
            core, self._taken.store, self._commits.stands_at, bytes_max=self._limits.unflushed_bytes_max
        )

    def _fold(self, core: Core) -> None:
        if self._flushes.is_behind(core, bytes_max=self._limits.unflushed_bytes_max):
            return
        end = time.monotonic() + FOLD_SECONDS_MAX
        # Two overlays at the most: while one is in flight and the next is large, records wait.
        while not self._commits.is_in_flight or not self._is_full(core):
            if not self._inputs.fold_ready(core) or self._is_full(core) or time.monotonic() >= end:
                return

    def _is_full(self, core: Core) -> bool:
        return core.is_full or core.dirty_rows >= self._plan.dirty_rows_max

    def _set_aside(self, failure: ApplicationFailed) -> None:
        """The application failed on one record or row: everything since the last commit is done again without it."""
        log.error("application_failed", partition=self.partition, error=str(failure), exc_info=failure)
        # The commit in flight was cut before: it is good. Afterwards the core may be another, which will fail anew.
        if self._commits.is_in_flight and self._core is not None:
            self._finish_commit(self._core)
        core = self._core
        if core is not None:
            self._commits.counts.failed("application_failed", "")
            folded = self._inputs.folded(core)
            core.quarantine(failure)
            # Where there is nothing to read again, the time that has passed since has passed.
            self._resume(core, time_goes_on=self._inputs.folded(core) == folded)

    # Commits.

    def _cut(self, core: Core, group_metadata: Any, deadline: float | None = None) -> None:
        assert self._committer is not None
        self._commits.cut(core, self._committer, group_metadata, deadline)

    def _finish_commit(self, core: Core) -> None:
        try:
            self._commits.finish(core)
        except Aborted as error:
            log.warning("commit_aborted", partition=self.partition, error=str(error))
            self._commits.counts.failed("aborted", error.code)
            core.abort()
            self._resume(core)
        except Unclear as error:
            self._start_over("fenced" if isinstance(error, Fenced) else "unclear", error.code, str(error))

    def _start_over(self, outcome: str, code: str, why: str) -> None:
        """Nobody knows how the commit ended: the takeover finds out."""
        log.warning("commit_unclear", partition=self.partition, outcome=outcome, error=why)
        self._commits.counts.failed(outcome, code)
        self._drop()
        self._take(wait_seconds=FENCED_SECONDS if outcome == "fenced" else UNCLEAR_SECONDS)

    def _resume(self, core: Core, *, time_goes_on: bool = False) -> None:
        """Reading goes on from where the core stands."""
        self._inputs.start(core, time_goes_on=time_goes_on)
        for topic in self._inputs.topics:
            self._rewind(topic, self.partition, core.next_offset(topic))

    # Taking and giving up.

    def _take(self, *, wait_seconds: float, warm: RocksStore | None = None, discard: str | None = None) -> None:
        self._restoring = Restoring()
        self._taking = self._takeovers.submit(
            take_over,
            self._plan,
            self.partition,
            self._stores,
            self._given_up,
            restoring=self._restoring,
            wait_seconds=wait_seconds,
            warm=warm,
            discard=discard,
        )

    def _finish_taking(self, taken: Taken) -> None:
        self._taken, self._taking = taken, None
        self._core = Core(self._plan.application, self.partition, taken.store)
        self.limit(self._limits)
        application = self._plan.application
        profile = self._plan.settings.profile
        partitions = {topic.name: topic.partitions(profile) for topic in (*application.topics, REJECTED)}
        self._committer = Committer(taken.producer, application, self.partition, partitions, self._plan.crash_points)
        stored = taken.store.position()
        self._commits.start(Durable(stored.changelog_offset, stored.current_ms) if stored is not None else None)
        self._flushes.start()
        self._resume(self._core)

    def _drop(self) -> None:
        """Throws core and producer away. What was committed is in the changelog; what was not is read again."""
        self._flushes.abandon()
        self._inputs.forget()
        self._core = self._committer = None
        if self._taken is not None:
            self._taken.store.close()
            self._taken = None

    def begin_close(self, group_metadata: Any, deadline: float) -> None:
        """The partition is being taken from this slot: commit what is folded, by `deadline` (monotonic seconds)."""
        self._given_up.set()
        self._inputs.forget()
        if not self._commits.is_good_by(deadline):
            return
        try:
            if self._commits.is_in_flight and self._core is not None:
                self._finish_commit(self._core)
            if self._core is not None and self._core.is_dirty:
                self._cut(self._core, group_metadata, deadline)
        except (ApplicationFailed, StoreCorrupt) as error:
            # The heir meets it too, and has the time to deal with it.
            log.warning("closed_uncommitted", partition=self.partition, error=str(error))
            self._drop()

    def end_close(self, deadline: float) -> bool:
        """Closes the partition. False when something folded could not be committed: the heir folds it again."""
        # A commit that cannot end in time is abandoned with its producer; the heir's `init_transactions` decides.
        is_clean = self._commits.is_good_by(deadline)
        if is_clean and self._commits.is_in_flight and self._core is not None:
            # The last of them is counted like all before.
            self._commits.finish(self._core)
        self.drop_lost()
        return is_clean

    def drop_lost(self) -> None:
        """The partition is another slot's already: nothing may be committed any more."""
        self._given_up.set()
        self._commits.forget()
        self._drop()
        if self._taking is not None:
            self._taking.add_done_callback(close_unused)
            self._taking = None
