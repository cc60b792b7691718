"""Commits: makes the checkpoints of one partition durable on a thread of the pool, one at a time."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final

import structlog

from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.core.core import Core
from services.processor.runtime.partition.transaction import Committer, Durable, GroupChanged
from services.processor.runtime.plan import Plan
from services.processor.runtime.telemetry.counts import Counts

log = structlog.get_logger(__name__)

#: The client keeps to a commit's deadline, more or less. One that is over it by more than this is not waited for.
OVERDUE_SECONDS: Final = 5.0
#: Abandoned commits keep their threads until the client ends them. A commit that gets no thread for so long never gets one.
STUCK_SECONDS: Final = 120.0


class Commits:
    """Cuts, commits, and takes the outcome in; what follows from a failure is its owner's business."""

    def __init__(self, plan: Plan, partition: int, counts: Counts, pool: Executor, stands_at: Durable) -> None:
        """The partition was taken over: its core is at a commit."""
        self._plan = plan
        self._partition = partition
        self._counts = counts
        self._pool = pool
        self._committing: Future[Durable] | None = None
        self._checkpoint: Checkpoint | None = None
        self._committer: Committer | None = None
        #: Whether this is the second try of a commit that the group has refused.
        self._is_renewed = False
        #: When the commit in flight must have an outcome; None until its thread has begun.
        self._due_at: float | None = None
        #: The position of the last commit in the changelog.
        self.stands_at = stands_at
        #: When the core was last at a commit (monotonic seconds), and how long the last commit took from its cut.
        self._cut_at = self.committed_at = time.monotonic()
        self.seconds: float | None = None

    @property
    def is_in_flight(self) -> bool:
        """Whether a commit's outcome has not been taken in yet."""
        return self._committing is not None

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome to be taken in."""
        return self._committing is not None and self._committing.done()

    @property
    def is_time(self) -> bool:
        """Whether the last cut is an interval ago."""
        return time.monotonic() - self._cut_at >= self._plan.settings.commit_interval_ms / 1000

    def cut(self, core: Core, committer: Committer, group_metadata: Any, deadline: float | None = None) -> None:
        """Cuts and commits; without a deadline (monotonic seconds) the commit has its usual time from its start.

        Raises `RowUnstorable` when a row cannot be stored.
        """
        self._cut_at = time.monotonic()
        self._checkpoint, self._committer, self._is_renewed = core.cut(), committer, False
        self._submit(group_metadata, deadline)

    def _submit(self, group_metadata: Any, deadline: float | None) -> None:
        checkpoint, committer = self._checkpoint, self._committer
        assert checkpoint is not None
        assert committer is not None
        self._due_at = None

        def commit() -> Durable:
            by = time.monotonic() + self._plan.settings.commit_ms_max / 1000 if deadline is None else deadline
            self._due_at = by + OVERDUE_SECONDS
            return committer.commit(checkpoint, group_metadata, by)

        self._committing = self._pool.submit(commit)

    def finish(self, core: Core) -> None:
        """Takes the outcome in; waits until there is one: a commit has a deadline. Raises what the commit raised."""
        committing, checkpoint = self._committing, self._checkpoint
        assert committing is not None
        assert checkpoint is not None
        self._committing = self._checkpoint = None
        self.stands_at = committing.result()
        core.commit()
        self.committed_at = time.monotonic()
        # The loop may come to look at it only now: it ended when its thread was through.
        self.seconds = (self.stands_at.ended_at or self.committed_at) - self._cut_at
        self._counts.committed(checkpoint, self.seconds)
        if self._plan.record_traces is not None:
            self._plan.record_traces.committed(self._partition, checkpoint)

    def renew(self, group_metadata: Callable[[], Any], deadline: float) -> None:
        """Waits for the outcome until `deadline` (monotonic seconds), and commits once more what the group has refused.

        Partitions move while the group changes, so a commit that was cut before is often of a generation that is over. It is
        made again in the present one: otherwise the successor folds again what this slot has folded.
        """
        if self._committing is None or self._is_renewed:
            return
        failure = self._failure_by(deadline)
        if isinstance(failure, GroupChanged) and time.monotonic() < deadline:
            log.info("commit_renewed", partition=self._partition, error=str(failure))
            self._is_renewed = True
            self._submit(group_metadata(), deadline)

    def wait_for_success(self, deadline: float) -> bool:
        """Waits for the outcome until `deadline` (monotonic seconds): whether there is one, and it is no failure."""
        return self._committing is None or self._failure_by(deadline) is None

    def _failure_by(self, deadline: float) -> BaseException | None:
        assert self._committing is not None
        try:
            return self._committing.exception(max(0.0, deadline - time.monotonic()))
        except FutureTimeout as late:
            return late

    def give_up_overdue(self) -> bool:
        """Whether the client let the commit's deadline pass by far: its outcome is for a takeover to find out then."""
        committing, due_at = self._committing, self._due_at
        if committing is None or committing.done() or due_at is None or time.monotonic() < due_at:
            return False
        self.forget()
        return True

    @property
    def is_stuck(self) -> bool:
        """Whether no thread has begun the commit for so long that none will: the client hangs in all of them."""
        is_waiting = self._committing is not None and self._due_at is None
        return is_waiting and time.monotonic() - self._cut_at >= STUCK_SECONDS

    def forget(self) -> None:
        """Ignores the outcome: a takeover determines it, and its fence ends the work that the thread may still do."""
        self._committing = self._checkpoint = None
