"""Worker: the slot's loop. It polls, gives each partition its records, and gives each its turn.

It is the only thread that touches the consumer and the cores. The fence of each partition's producer, not the group, decides which
process may commit.
"""

import time
from typing import Final

from services.processor.runtime.kafka.clients import group_consumer
from services.processor.runtime.kafka.end_offsets import Ends
from services.processor.runtime.kafka.positions import Positions, SeekFailed
from services.processor.runtime.kafka.reader import Reader
from services.processor.runtime.kafka.refusals import InputGone, WorkerFailed
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.fold_scheduler import FoldScheduler
from services.processor.runtime.slot.membership import Membership
from services.processor.runtime.slot.partitions import Partitions
from services.processor.runtime.slot.queries import SlotQueries
from services.processor.runtime.slot.topic_checks import TopicChecks
from services.processor.runtime.slot.unowned import Unowned
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.runtime.telemetry import gauges
from services.processor.runtime.telemetry.status import Usage
from services.rim.admin.admin import Check

POLL_SECONDS: Final = 0.02
#: A partition at rest has its next turn with the next answer of its input's leaders, and after so long without one.
REST_SECONDS: Final = 0.5
GAUGE_SECONDS: Final = 1.0


class Worker:
    """Works one slot's partitions, a turn at a time. `warm` are copies that a standby kept, by partition."""

    def __init__(self, plan: Plan, stores: Stores, warm: dict[int, RocksStore] | None = None) -> None:
        settings = plan.settings
        self._topics = [topic.name for topic in plan.application.inputs]
        self._poll_seconds_max = settings.poll_interval_ms_max / 1000
        self._ends = Ends(settings)
        self._topic_ids = stores.topic_ids
        self._tables = stores.tables
        consumer = group_consumer(
            settings,
            plan.application,
            slot=plan.slot,
            lookup_url=plan.lookup_url,
            session_ms=settings.session_ms,
            poll_interval_ms_max=settings.poll_interval_ms_max,
            fetch_kbytes_max=settings.fetch_kbytes_max,
        )
        self._group_metadata = consumer.consumer_group_metadata
        self._reader = Reader(
            consumer,
            self._topics,
            records_max=settings.poll_records_max,
            refused_seconds_max=settings.refused_ms_max / 1000,
            by_headers=plan.application.by_headers,
            record_traces=plan.record_traces,
        )
        self._positions = Positions(consumer, self._topics)
        self._partitions = Partitions(plan, stores, self._positions, warm or {})
        self._topic_checks = TopicChecks(stores.topic_ids, stores.tables, self._partitions)
        self.membership = Membership(
            plan, consumer, self._reader, self._positions, self._partitions, on_change=self._on_change
        )
        self._unowned = Unowned(plan)
        self._usage = Usage()
        self.queries = SlotQueries(
            plan.slot,
            self._topics,
            self._partitions,
            self._ends,
            self._usage,
            member_id=lambda: self.membership.member_id,
        )
        self._scheduler = FoldScheduler()
        self._looped_at = time.monotonic()
        self._gauged_at = 0.0
        #: When all partitions had a turn at the latest, and after how many answers of the leaders.
        self._all_turned = (0.0, 0)
        #: Partitions that rest since their last turn.
        self._resting: set[int] = set()

    # Health.

    def is_alive(self) -> Check:
        """Whether the loop turns."""
        age = time.monotonic() - self._looped_at
        return Check(age < self._poll_seconds_max, f"last turn of the loop {age:.1f} s ago")

    def is_ready(self) -> Check:
        """Whether the slot is in the group and works every partition it has."""
        if self.membership.is_stopping:
            return Check(ok=False, why="stopping")
        if not self.membership.has_joined:
            return Check(ok=False, why="not in the group yet")
        numbers = self._partitions.numbers
        taking = [number for number in numbers if self._partitions.working_one(number) is None]
        return Check(not taking, f"taking partitions {taking}" if taking else f"working {len(numbers)} partitions")

    @property
    def partitions(self) -> frozenset[int]:
        """The numbers of the slot's partitions."""
        return frozenset(self._partitions.numbers)

    # The loop.

    def start(self) -> None:
        """Joins the group."""
        self._ends.start()
        self._topic_ids.start()
        self.membership.join()
        self._unowned.start()

    def turn(self) -> None:
        """Polls once, and lets each partition take its turn. Raises `WorkerFailed` when the slot cannot continue."""
        self._looped_at = time.monotonic()
        self._topic_checks.turn()
        self._tables.turn()
        # What waits in memory does not wait for what may come.
        busy = [
            self._partitions.working_one(number) for number in self._partitions.numbers if number not in self._resting
        ]
        has_more = any(working is not None and working.has_more for working in busy)
        self._read(0.0 if has_more else POLL_SECONDS)
        if self._unowned.is_ours.is_set():
            self._unowned.is_ours.clear()
            self.membership.rejoin()
        self.membership.turn()
        due = self._due()
        for number, until in self._scheduler.shares(due):
            ends = self._ends.of(self._topics, number)
            self._partitions[number].turn(ends, self._group_metadata, until)
        try:
            self._positions.carry_out_rewinds()
        except SeekFailed as error:
            raise WorkerFailed(str(error)) from error
        for number in due:
            partition = self._partitions[number]
            if partition.working is not None:
                self._positions.hold_back(number, partition.working.is_overfull)
            if partition.is_at_rest:
                self._resting.add(number)
        if self.queries.turn():
            self._resting.clear()
        if self._looped_at - self._gauged_at >= GAUGE_SECONDS:
            self._gauged_at = self._looped_at
            self._usage.measure()
            gauges.show(self.queries.status())
        self._partitions.sweep_stores()

    def _due(self) -> list[int]:
        """The partitions that have a turn now: those at rest only when there is news of their ends, or after a while.

        A turn of each fifty times a second would be most of what a slot without beacons costs.
        """
        turned_at, answers = self._all_turned
        if self._ends.answers != answers or self._looped_at - turned_at >= REST_SECONDS:
            self._all_turned = (self._looped_at, self._ends.answers)
            self._resting.clear()
        return [number for number in self._partitions.numbers if number not in self._resting]

    def _read(self, seconds: float) -> None:
        """Gives each partition its records."""
        try:
            batches, messages = self._reader.read(seconds)
        except InputGone:
            self._topic_checks.explain_gone_input()
            raise
        self._usage.read(messages)
        for at, batch in batches.items():
            topic, number = at
            working = self._partitions.working_one(number)
            # A partition with a rewind to come gets these records again.
            if working is not None and not self._positions.is_rewinding(at):
                working.accept(topic, batch.records, batch.position, batch.leader_epoch)
                self._resting.discard(number)

    def _on_change(self) -> None:
        """The slot's partitions have changed: their ends are asked for."""
        self._reader.restart()
        self._resting.clear()
        self._ends.watch([(topic, number) for topic in self._topics for number in self._partitions.numbers])

    def close(self) -> None:
        """Closes clients and threads. Follows a method of `membership` that ends it, or a failure."""
        self._unowned.stop()
        self._ends.stop()
        self._topic_ids.stop()
        self.membership.close()
        self._partitions.close_pools()
