"""Partition: one partition of this slot, from its takeover to its release. Its state is one of three types.

    Restoring  a thread fences, opens and replays (`takeover`); the input is paused
    Working    records are folded, checkpoints committed
    Released   the slot does not have the partition any more

    Restoring -> Working    the takeover is over
    Working   -> Restoring  the outcome of a commit is unknown, or the local store is corrupt: core and producer are discarded
    any       -> Released   the group has given the partition to another slot

Everything here is called by the slot's one folding thread; commits, flushes and takeovers run on the pool.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import structlog

from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.pools import Pools
from services.processor.runtime.partition.restoring import Restoring
from services.processor.runtime.partition.working import Rewind, TakeOverAgain, Working
from services.processor.runtime.plan import Limits, Plan
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.runtime.telemetry.counts import Counts
from shared.schemas.slots import PartitionStatus

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Released:
    """The slot does not have the partition any more."""


State = Restoring | Working | Released


class Partition:
    """One partition of this slot, of all inputs. `rewind` is called to read an input again (`Positions.rewind`)."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        stores: Stores,
        pools: Pools,
        rewind: Rewind,
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
        self._state: State = self._restoring(warm=warm)

    @property
    def working(self) -> Working | None:
        """The core at work and its parts; None in any other state."""
        return self._state if isinstance(self._state, Working) else None

    @property
    def is_at_rest(self) -> bool:
        """Whether it works, and a turn would do nothing before something comes (`Working.is_at_rest`)."""
        return isinstance(self._state, Working) and self._state.is_at_rest

    def status(self, ends: Mapping[str, End]) -> PartitionStatus:
        """Its status for operators."""
        counts, state = self._counts, self._state
        status = PartitionStatus(
            partition=self.partition,
            owner=self._plan.slot,
            state="taking",
            dropped_commits=dict(counts.dropped),
            rejected=dict(counts.rejected),
            late=counts.late,
        )
        if isinstance(state, Working):
            return state.add_status(status, ends)
        return state.progress.add_status(status) if isinstance(state, Restoring) else status

    def limit(self, limits: Limits) -> None:
        """From now on these are the partition's share of the slot's memory."""
        self._limits = limits
        if isinstance(self._state, Working):
            self._state.limit(limits)

    def turn(self, ends: Mapping[str, End], group_metadata: Callable[[], Any], until: float) -> None:
        """One turn: begins to work when the takeover is over, and works (`Working.turn`).

        `ends` are the inputs' confirmed ends, as far as they are known. It folds until then (monotonic seconds), plus the rest of
        the present slice, and not at all if that time has passed. Raises what the takeover raised, or the turn.
        """
        if isinstance(self._state, Restoring) and self._state.is_over:
            self._state = self._started(self._state)
        if isinstance(self._state, Working):
            try:
                self._state.turn(ends, group_metadata, until)
            except TakeOverAgain as again:
                self._state = self._restoring(
                    leave=self._state.leave, wait_seconds=again.wait_seconds, discard=again.discard
                )

    def renew(self, group_metadata: Callable[[], Any], deadline: float) -> None:
        """While it is being taken from this slot: commits once more what a change of the group has aborted."""
        if isinstance(self._state, Working):
            self._state.renew(group_metadata, deadline)

    def begin_close(self, group_metadata: Callable[[], Any], deadline: float) -> None:
        """The partition is being taken from this slot: commits what is folded, by `deadline` (monotonic seconds)."""
        self._given_up.set()
        if isinstance(self._state, Working):
            self._state.begin_close(group_metadata, deadline)

    def end_close(self, deadline: float) -> bool:
        """Releases the partition. False when something folded could not be committed: the successor folds it again."""
        is_clean = not isinstance(self._state, Working) or self._state.wait_closed(deadline)
        self.release()
        return is_clean

    def release(self) -> None:
        """The slot does not have the partition any more. What is not committed is dropped."""
        self._given_up.set()
        state, self._state = self._state, Released()
        if isinstance(state, Working):
            # It may wait for a flush: neither the group nor the other partitions do. The next to open the files waits for them.
            self._pools.takeovers.submit(state.leave).add_done_callback(self._log_failure)
        elif isinstance(state, Restoring):
            state.abandon()

    def _restoring(self, **how: Any) -> Restoring:
        return Restoring.begin(
            self._plan, self.partition, self._stores, self._pools.takeovers, given_up=self._given_up, **how
        )

    def _started(self, restoring: Restoring) -> Working:
        # What this raises ends the slot: the release that follows closes the store.
        working = Working(
            self._plan,
            self.partition,
            restoring.takeover.result(),
            self._pools.commits,
            restored=restoring.progress,
            counts=self._counts,
            media=self._pools.media,
            rewind=self._rewind,
        )
        working.limit(self._limits)
        return working

    def _log_failure(self, leaving: Future[None]) -> None:
        if not leaving.cancelled() and (error := leaving.exception()) is not None:
            log.error("leaving_failed", partition=self.partition, error=str(error), exc_info=error)
