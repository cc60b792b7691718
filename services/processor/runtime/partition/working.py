"""Working: the state of a partition that folds and commits, until it is released or must be taken over again."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import msgspec
import structlog

from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.failures import ApplicationFailed
from services.processor.engine.state.local import StoreCorrupt
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.kafka.refusals import WorkerFailed
from services.processor.runtime.kafka.topic_ids import check
from services.processor.runtime.objects.media import Media, MediaPool
from services.processor.runtime.partition.answers import Answers
from services.processor.runtime.partition.append_times import AppendTimes
from services.processor.runtime.partition.changelog import RestoreProgress
from services.processor.runtime.partition.commits import Commits
from services.processor.runtime.partition.flushes import Flushes
from services.processor.runtime.partition.inputs import Inputs
from services.processor.runtime.partition.takeover import TakenPartition
from services.processor.runtime.partition.transaction import Aborted, Committer, Durable, Fenced, Unclear
from services.processor.runtime.plan import Limits, Plan
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.telemetry.counts import Counts
from shared.schemas.slots import PartitionStatus
from shared.topics import REJECTED

log = structlog.get_logger(__name__)

#: After a fence: a zombie that wakes inside its own `init_transactions` may have fenced the rightful owner, once.
FENCED_SECONDS: Final = 3.0
UNCLEAR_SECONDS: Final = 0.2


#: Gets an input topic, a partition, the offset from which reading continues (None: its beginning), and a leader epoch.
Rewind = Callable[[str, int, int | None, int | None], None]


class TakeOverAgain(Exception):
    """Core and producer must be discarded, and the partition taken over again after `wait_seconds`.

    `discard` says why its local store is to be deleted before, where it is.
    """

    def __init__(self, *, wait_seconds: float, discard: str | None = None) -> None:
        super().__init__(discard or "")
        self.wait_seconds = wait_seconds
        self.discard = discard


class Working:
    """A partition's core, and the parts that make its checkpoints durable."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        taken: TakenPartition,
        pool: Executor,
        *,
        restored: RestoreProgress,
        counts: Counts,
        media: MediaPool | None,
        rewind: Rewind,
    ) -> None:
        """`rewind` is called to read an input again (`Positions.rewind`).

        Raises `NewerFormat` when a newer version of the application has written what was taken.
        """
        application = plan.application
        self._partition = partition
        self._plan = plan
        self._limits = plan.limits(1)
        self._store = taken.store
        self._rewind = rewind
        self._core = Core(
            application,
            partition,
            taken.store,
            partitions=plan.partitions,
            hands_on=plan.has_grown,
            tables=taken.tables,
        )
        self._core.topic_ids = taken.topic_ids
        profile = plan.settings.profile
        partitions = {topic.name: topic.partitions(profile) for topic in (*application.topics, REJECTED)}
        self._committer = Committer(taken.producer, application, partition, partitions, plan.crash_points)
        self._inputs = Inputs(application)
        self._append_times = AppendTimes(
            application.name, partition, plan.settings.append_lead_ms_max, clock_ms=self._core.clock_ms
        )
        self._flushes = Flushes(partition, pool, plan.settings.flush_interval_ms / 1000)
        self._media = Media(application.name, partition, media)
        stored = taken.store.position()
        stands_at = Durable(stored.changelog_offset, stored.current_ms) if stored is not None else Durable(0, 0)
        self._counts = counts
        self._restored = restored
        self._commits = Commits(plan, partition, counts, pool, stands_at)
        self._answers = Answers(partition, self._core, self._inputs, self._commits)
        #: The error that the application raised. The core is in the middle of a record, and is not touched until that record is
        #: rejected.
        self._failed: ApplicationFailed | None = None
        #: Whether records or timers wait that the last turn had no time for.
        self.has_more = False
        self._resume()

    # What others ask.

    @property
    def answers(self) -> Answers:
        """Answers from the core's rows. Raises `Unanswered` while a record is being rejected."""
        if self._failed is not None:
            raise Unanswered("a record is being rejected")
        return self._answers

    @property
    def is_at_rest(self) -> bool:
        """Whether a turn would do nothing before something comes: records, confirmed ends, or the next flush."""
        core = self._core
        is_settled = not self._commits.is_in_flight and not self._flushes.is_running and self._failed is None
        has_nothing = self._inputs.is_empty and not core.is_dirty and not core.is_full and self._media.is_idle(core)
        return is_settled and has_nothing and not self.has_more

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970."""
        return self._core.clock_ms

    def is_overfull(self, topic: str) -> bool:
        """Whether so many records of an input wait that no more of it should be read."""
        waiting_records, waiting_bytes = self._inputs.waiting(topic)
        return (
            waiting_records >= self._plan.settings.waiting_records_max
            or waiting_bytes >= self._limits.waiting_bytes_max
        )

    def check_topics(self, present: Mapping[str, str]) -> None:
        """Raises `TopicReplaced` when an input or the changelog is another topic than before; `present` are the ids."""
        check(self._plan.application, self._partition, self._core.topic_ids, present)
        self._core.topic_ids = dict(present)

    @property
    def commit_number(self) -> int:
        """The number of the last commit that is taken in."""
        return self._core.committed.commit_number

    def add_status(self, status: PartitionStatus, ends: Mapping[str, End]) -> PartitionStatus:
        """`status` with the figures of this state."""
        core, commits = self._core, self._commits
        return msgspec.structs.replace(
            self._restored.add_status(status),
            state="working",
            lag_records=self._inputs.lag_records(core, ends),
            clock_ms=core.clock_ms,
            commit_ms=None if commits.seconds is None else round(commits.seconds * 1000),
            age_ms=round((time.monotonic() - commits.committed_at) * 1000),
            rows=core.rows,
            tallies=core.tallies,
            timers_due=core.waiting_timers,
            quarantined_keys=len(core.quarantined),
            restore_left_records=0,
        )

    # Work.

    def limit(self, limits: Limits) -> None:
        """From now on these are the partition's share of the slot's memory."""
        self._limits = limits
        self._core.limit(
            cache_rows_max=limits.cache_rows_max,
            cache_bytes_max=limits.cache_bytes_max,
            dirty_bytes_max=limits.dirty_bytes_max,
        )

    def accept(self, topic: str, records: list[Record], position: int, leader_epoch: int | None = None) -> None:
        """Takes records read from an input up to (not including) offset `position`, the last one with `leader_epoch`."""
        if leader_epoch is not None and leader_epoch > self._core.leader_epochs.get(topic, -1):
            self._core.leader_epochs[topic] = leader_epoch
        self._inputs.accept(topic, self._append_times.bounded(records, self._commits.stands_at), position)

    def turn(self, ends: Mapping[str, End], group_metadata: Callable[[], Any], until: float) -> None:
        """Finishes what the pool has done, folds what waits, lets the clock run, cuts when it is time.

        It folds until then (monotonic seconds), plus the rest of the present slice; not at all if that time has passed. Raises
        `TakeOverAgain`, `WorkerFailed`, `StoreFailed`.
        """
        self.has_more = False
        has_time = time.monotonic() < until
        try:
            self._settle_commit()
            self._flushes.settle(self._core)
            self._reject()
            # The commit in flight was cut before what failed: it is good. The other partitions do not wait for it.
            if self._failed is None:
                try:
                    self._work(ends, group_metadata, until if has_time else None)
                except ApplicationFailed as failure:
                    log.error("application_failed", partition=self._partition, error=str(failure), exc_info=failure)
                    self._failed = failure
                    self._reject()
        except StoreCorrupt as error:
            # A commit in flight may end as it likes: the takeover finds out.
            raise TakeOverAgain(wait_seconds=0.0, discard=str(error)) from error

    def _work(self, ends: Mapping[str, End], group_metadata: Callable[[], Any], until: float | None) -> None:
        core, commits = self._core, self._commits
        core.reject_of_tables()
        self._media.settle(core)
        self._inputs.confirm(ends)
        self.has_more = not self._fold_ready(until) and self._inputs.has_ready
        self._media.begin(core)
        self._inputs.has_caught_up(core, ends)
        if not commits.is_in_flight and core.is_dirty and (commits.is_time or self._is_full):
            commits.cut(core, self._committer, group_metadata())
        self._flushes.begin_when_due(core, self._store, commits.stands_at, bytes_max=self._limits.unflushed_bytes_max)

    def _fold_ready(self, until: float | None) -> bool:
        """Folds what may be folded now, and lets the clock run. False when there was not enough time."""
        if self._flushes.is_behind(self._core, bytes_max=self._limits.unflushed_bytes_max):
            return True
        # Two overlays at the most: while one is in flight and the next is large, records wait.
        while not (self._commits.is_in_flight and self._is_full):
            if until is None:
                return False
            if not self._inputs.fold_slice(self._core) or self._is_full:
                break
            if time.monotonic() >= until:
                return False
        self._inputs.run_clock(self._core)
        return True

    @property
    def _is_full(self) -> bool:
        return self._core.is_full or self._core.dirty_rows >= self._plan.settings.dirty_rows_max

    def _reject(self) -> None:
        """The application failed on one record or row: everything since the last commit is done again without it."""
        failure, core = self._failed, self._core
        if failure is None or self._commits.is_in_flight:
            return
        self._failed = None
        self._counts.failed("application_failed", "")
        folded = self._inputs.folded(core)
        core.retry(failure)
        # Where there is nothing to read again, the time that has passed since has passed.
        self._resume(time_goes_on=self._inputs.folded(core) == folded)

    def _resume(self, *, time_goes_on: bool = False) -> None:
        """Reading continues from the core's position."""
        self._inputs.start(self._core, time_goes_on=time_goes_on)
        for topic in self._inputs.topics:
            leader_epoch = self._core.leader_epochs.get(topic)
            self._rewind(topic, self._partition, self._core.next_offset(topic), leader_epoch)

    def _settle_commit(self) -> None:
        """Takes the outcome of the commit in flight in, where there is one. Raises `TakeOverAgain`."""
        if self._commits.is_done:
            try:
                self._commits.finish(self._core)
            except Aborted as error:
                log.warning("commit_aborted", partition=self._partition, error=str(error))
                self._counts.failed("aborted", error.code)
                # What failed since is met again, and folded alone then.
                failure, self._failed = self._failed, None
                if failure is None:
                    self._core.abort()
                else:
                    self._core.retry(failure)
                self._resume()
            except Unclear as error:
                raise self._unclear(
                    "fenced" if isinstance(error, Fenced) else "unclear", error.code, str(error)
                ) from error
        elif self._commits.give_up_overdue():
            raise self._unclear("overdue", "", "the client let the commit's deadline pass")
        elif self._commits.is_stuck:
            raise WorkerFailed(
                f"a commit of partition {self._partition} gets no thread: the Kafka client hangs in all of them"
            )

    def _unclear(self, outcome: str, code: str, why: str) -> TakeOverAgain:
        """The outcome of the commit is unknown: the takeover determines it."""
        log.warning("commit_unclear", partition=self._partition, outcome=outcome, error=why)
        self._counts.failed(outcome, code)
        return TakeOverAgain(wait_seconds=FENCED_SECONDS if outcome == "fenced" else UNCLEAR_SECONDS)

    # Giving up.

    def renew(self, group_metadata: Callable[[], Any], deadline: float) -> None:
        """The partition is being taken from this slot: see `Commits.renew`."""
        self._commits.renew(group_metadata, deadline)

    def begin_close(self, group_metadata: Callable[[], Any], deadline: float) -> None:
        """The partition is being taken from this slot: commits what is folded, by `deadline` (monotonic seconds)."""
        self._media.forget()
        if not self._commits.wait_for_success(deadline):
            return
        try:
            if self._commits.is_in_flight:
                self._commits.finish(self._core)
            if self._failed is not None:
                raise self._failed
            if self._core.is_dirty:
                self._commits.cut(self._core, self._committer, group_metadata(), deadline)
        except (ApplicationFailed, StoreCorrupt) as error:
            # The successor meets it too, and has the time to deal with it.
            log.warning("closed_uncommitted", partition=self._partition, error=str(error))

    def wait_closed(self, deadline: float) -> bool:
        """Waits until then. False when something folded could not be committed: the successor folds it again."""
        # A commit that cannot end in time is abandoned with its producer; the successor's `init_transactions` decides.
        is_clean = self._commits.wait_for_success(deadline)
        if is_clean and self._commits.is_in_flight:
            # The last of them is counted like all before.
            self._commits.finish(self._core)
        return is_clean and not self._core.is_dirty

    def leave(self) -> None:
        """Discards core and producer. Committed rows are in the changelog; other input is read again.

        Waits for a running flush. May be called from another thread: no other method is called any more.
        """
        self._commits.forget()
        self._media.forget()
        try:
            self._flushes.abandon()
        finally:
            # With any outcome of the flush: an open store locks its files for the rest of the process's life.
            self._store.close()
