"""Worker: the slot's loop. It polls, gives each partition its records, and gives each its turn.

It is the only thread that touches the consumer and the cores. The group decides which partitions the slot has. The fence of each
partition's producer, not the group, decides which process may commit.
"""

import time
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.runtime.kafka.clients import group_consumer
from services.processor.runtime.kafka.end_offsets import Ends
from services.processor.runtime.kafka.positions import Positions, SeekFailed
from services.processor.runtime.kafka.reader import Reader
from services.processor.runtime.kafka.refusals import WorkerFailed
from services.processor.runtime.partition.partition import Partition
from services.processor.runtime.partition.pools import Pools
from services.processor.runtime.plan import Plan
from services.processor.runtime.questions import Looked, Questions, Unanswered
from services.processor.runtime.slot.turns import Turns
from services.processor.runtime.slot.watches import Watches
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.runtime.telemetry import gauges
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus, SlotStatus, Usage, rss_bytes
from services.rim.admin.admin import Check

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 0.02
GAUGE_SECONDS: Final = 1.0


class Worker:
    """Works one slot's partitions, a turn at a time. `warm` are copies that a standby kept, by partition."""

    def __init__(self, plan: Plan, stores: Stores, warm: dict[int, RocksStore] | None = None) -> None:
        self._plan = plan
        self._topics = [topic.name for topic in plan.application.inputs]
        self._stores = stores
        self._warm = dict(warm or {})
        self._pools = Pools.start(plan)
        self._ends = Ends(plan.settings)
        self._consumer: Consumer = group_consumer(
            plan.settings,
            plan.application,
            slot=plan.slot,
            lookup_url=plan.lookup_url,
            session_ms=plan.settings.session_ms,
            poll_interval_ms_max=plan.settings.poll_interval_ms_max,
            fetch_kbytes_max=plan.settings.fetch_kbytes_max,
        )
        self._reader = Reader(
            self._consumer,
            self._topics,
            records_max=plan.settings.poll_records_max,
            refused_seconds_max=plan.settings.refused_ms_max / 1000,
            by_headers=plan.application.by_headers,
            record_traces=plan.record_traces,
        )
        self._positions = Positions(self._consumer, self._topics)
        #: What other threads ask of the cores.
        self.questions = Questions()
        self._watches = Watches()
        self._usage = Usage()
        self._turns = Turns()
        self._partitions: dict[int, Partition] = {}
        self._is_clean = True
        self._has_joined = False
        self._looped_at = time.monotonic()
        self._gauged_at = 0.0
        self._is_stopping = False

    # Health.

    def is_alive(self) -> Check:
        """Whether the loop turns."""
        age = time.monotonic() - self._looped_at
        return Check(age < self._plan.settings.poll_interval_ms_max / 1000, f"last turn of the loop {age:.1f} s ago")

    def is_ready(self) -> Check:
        """Whether the slot is in the group and works every partition it has."""
        if self._is_stopping:
            return Check(ok=False, why="stopping")
        if not self._has_joined:
            return Check(ok=False, why="not in the group yet")
        taking = sorted(number for number, partition in self._partitions.items() if not partition.is_working)
        return Check(
            not taking, f"taking partitions {taking}" if taking else f"working {len(self._partitions)} partitions"
        )

    @property
    def partitions(self) -> frozenset[int]:
        """What the slot has."""
        return frozenset(self._partitions)

    @property
    def is_clean(self) -> bool:
        """Whether everything folded was committed before it was given up."""
        return self._is_clean

    # Questions, asked through `questions`.

    def look(self, lookup: Lookup, key: bytes, number: int) -> tuple[Looked, str]:
        """Answers a lookup, and under which member id of the group. Raises `Unanswered` or `LookFailed`."""
        partition, member_id = self._partition(number)
        return partition.look(lookup, key, self._ends.of(self._topics, number)), member_id

    def ask(self, query: Query, subject: bytes, number: int) -> tuple[bytes | None, str]:
        """Answers a question from committed rows, and under which member id. Raises `Unanswered` or `LookFailed`."""
        partition, member_id = self._partition(number)
        return partition.ask(query, subject), member_id

    def watch(self, query: Query, subject: bytes, number: int, until: float) -> Future[tuple[bytes | None, str]]:
        """Answers the question as soon as there is an answer; raises as `ask` does, the future too.

        Nobody waits for it after `until` (monotonic seconds).
        """
        return self._watches.add(number, partial(self.ask, query, subject, number), until)

    def _partition(self, number: int) -> tuple[Partition, str]:
        partition = self._partitions.get(number)
        if partition is None:
            raise Unanswered("the partition is another slot's")
        # The id first: rows read after it was looked at are rows of this membership or of none.
        return partition, self._consumer.memberid() or ""

    def status(self) -> SlotStatus:
        """What operators see of the slot."""
        per_record = self._usage.cpu_seconds_per_record
        return SlotStatus(
            slot=self._plan.slot,
            partitions=[
                partition.status(self._ends.of(self._topics, number))
                for number, partition in sorted(self._partitions.items())
            ],
            rss_bytes=rss_bytes(),
            cpu_us_per_record=None if per_record is None else round(per_record * 1_000_000, 2),
        )

    def quarantined(self, release: bytes | None) -> list[QuarantinedKeyStatus]:
        """The quarantined keys; with `release` those that are released now: that key, or every one where it is empty."""
        return [one for _, partition in sorted(self._partitions.items()) for one in partition.quarantined(release)]

    # The loop.

    def start(self) -> None:
        """Joins the group.

        The group shares out the first input alone. The others' partitions follow it by number (`_on_assign`): no assignor
        promises to keep the partitions of several topics together while they move.
        """
        self._ends.start()
        self._consumer.subscribe(
            self._topics[:1], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def turn(self) -> None:
        """Polls once, and lets each partition take its turn. Raises `WorkerFailed` when the slot cannot go on."""
        self._looped_at = time.monotonic()
        # What waits in memory does not wait for what may come.
        self._read(0.0 if any(partition.has_more for partition in self._partitions.values()) else POLL_SECONDS)
        for number, until in self._turns.shares(self._partitions):
            ends = self._ends.of(self._topics, number)
            self._partitions[number].step(ends, self._consumer.consumer_group_metadata, until)
        try:
            self._positions.carry_out_rewinds()
        except SeekFailed as error:
            raise WorkerFailed(str(error)) from error
        for number, partition in self._partitions.items():
            self._positions.hold_back(number, partition.is_overfull, is_working=partition.is_working)
        self.questions.answer()
        self._watches.turn({number: partition.commit_number for number, partition in self._partitions.items()})
        if self._looped_at - self._gauged_at >= GAUGE_SECONDS:
            self._gauged_at = self._looped_at
            self._usage.measure()
            gauges.show(self.status())

    def _read(self, seconds: float) -> None:
        """Gives each partition its records."""
        dealt, messages = self._reader.read(seconds)
        self._usage.read(messages)
        for at, batch in dealt.items():
            topic, number = at
            # A partition with a rewind to come gets these records again.
            if number in self._partitions and not self._positions.is_rewinding(at):
                self._partitions[number].accept(topic, batch.records, batch.position)

    # Partitions come and go.

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._has_joined = True
        numbers = sorted(at.partition for at in partitions)
        log.info("assigned", partitions=numbers)
        consumer.incremental_assign(self._positions.all_inputs(numbers, OFFSET_BEGINNING))
        self._positions.start(numbers)
        for number in numbers:
            self._partitions[number] = Partition(
                self._plan, number, self._stores, self._pools, self._positions.rewind, warm=self._warm.pop(number, None)
            )
        self._watch()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = sorted(at.partition for at in partitions)
        self._give_up(numbers, consumer.consumer_group_metadata())
        consumer.incremental_unassign(self._positions.all_inputs(numbers))

    def _give_up(self, numbers: list[int], metadata: Any) -> None:
        """Commits what is folded of these partitions, all at once and under one deadline, and closes them."""
        deadline = time.monotonic() + self._plan.settings.revoke_ms_max / 1000
        leaving = [self._remove(number) for number in numbers if number in self._partitions]
        for partition in leaving:
            partition.begin_close(metadata, deadline)
        clean = [partition.end_close(deadline) for partition in leaving]
        for number in numbers:
            # An abort on the way out has asked for one: there is nothing to read any more.
            self._positions.forget(number)
        if self._is_stopping:
            # Only what is left behind at the end: an earlier hand-over's successor has long folded it again.
            self._is_clean = self._is_clean and all(clean)
        log.info("revoked", partitions=numbers, committed=all(clean))
        self._watch()

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = sorted(at.partition for at in partitions)
        log.warning("lost", partitions=numbers)
        self._is_clean = self._is_clean and not self._is_stopping
        for number in numbers:
            if number in self._partitions:
                self._remove(number).drop_lost()
        consumer.incremental_unassign(self._positions.all_inputs(numbers))
        self._watch()

    def _remove(self, number: int) -> Partition:
        self._positions.forget(number)
        gauges.forget(self._plan.application, number)
        return self._partitions.pop(number)

    def _watch(self) -> None:
        """The partitions are others than before: their ends are asked for, and the slot's memory is divided again."""
        self._reader.start_anew()
        self._ends.watch([(topic, number) for topic in self._topics for number in self._partitions])
        limits = self._plan.limits(len(self._partitions))
        for partition in self._partitions.values():
            partition.limit(limits)

    def leave(self) -> None:
        """Commits and leaves the group at once: a static member that only closes leaves when its session times out."""
        self._is_stopping = True
        self._consumer.unsubscribe()
        deadline = time.monotonic() + self._plan.settings.revoke_ms_max / 1000 + self._plan.settings.session_ms / 1000
        while self._partitions and time.monotonic() < deadline:
            self._reader.consume(0.1)
        if self._partitions:
            self._is_clean = False
            log.error("left_behind", partitions=sorted(self._partitions))

    def release(self) -> None:
        """Commits and closes every partition, but stays a member: who joins under the slot's id has them at once."""
        self._is_stopping = True
        self._give_up(sorted(self._partitions), self._consumer.consumer_group_metadata())

    def abandon(self) -> None:
        """Another process has the slot: drops everything uncommitted. No row is lost: the new owner continues from the last
        commit."""
        self._is_stopping = True
        for number in sorted(self._partitions):
            self._remove(number).drop_lost()

    def close(self) -> None:
        """Gives clients and threads up. Follows `leave`, `release`, `abandon` or a failure."""
        self._ends.stop()
        try:
            self._consumer.close()
        except (KafkaException, SystemError) as error:
            # After a fatal error the client may raise another one (an error inside a callback appears as SystemError). The member
            # then has no process, and a replica remains a standby.
            log.warning("consumer_close_failed", error=str(error))
        self._pools.close()
        for store in self._warm.values():
            store.close()
