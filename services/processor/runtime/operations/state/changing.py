"""Changing: one transaction over all partitions of an application that no slot works. So an act is done or not, never half.

It fences every partition first: a slot that was paused cannot commit afterwards. The transaction is that of the first partition's
producer id. After a crash, the next run or the next takeover of that partition aborts an open one.
"""

import time
from collections.abc import Iterable
from typing import Final, cast

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from services.processor.engine.application.application import Application
from services.processor.engine.record import Output
from services.processor.engine.state.meta import META_KEY, Meta, encode_meta
from services.processor.runtime.kafka.clients import partition_producer
from services.processor.runtime.kafka.ownership import Group, owner_of
from services.processor.runtime.kafka.reading import NO_PROGRESS_SECONDS_MAX, QUERY_SECONDS_MAX, ReadingFailed
from services.rim.kafka.connection import client_config
from services.rim.process.crash_points import CrashPoints
from shared.partitioning import partition_of
from shared.settings import Settings

FENCE_SECONDS_MAX: Final = 30.0
COMMIT_SECONDS_MAX: Final = 60.0
#: A million rows take some ten seconds. Brokers allow 15 minutes by default (`transaction.max.timeout.ms`).
TRANSACTION_MS_MAX: Final = 900_000


class Unsafe(RuntimeError):
    """The act would lose or double something as things are; the text says what to do."""


def refuse_while_slots_work(settings: Settings, application: Application) -> None:
    """Raises `Unsafe` while the application's group has members; `KafkaException` when it does not answer."""
    admin = AdminClient(client_config(settings, f"{application.name}.state"))
    groups = cast(list[Group], admin.list_groups(application.id, timeout=QUERY_SECONDS_MAX))
    slots = sorted({owner_of(member.client_id).slot for group in groups for member in group.members})
    if slots:
        raise Unsafe(f"slots of {application.id} are at work: {', '.join(slots)}. Stop them, standbys first")


class Change:
    """One transaction. Nothing is changed unless `commit` returns."""

    def __init__(self, settings: Settings, application: Application, crash_points: CrashPoints) -> None:
        """Fences all partitions. Raises `Unsafe`, `KafkaException`."""
        self._settings = settings
        self._application = application
        self._crash_points = crash_points
        self._partitions = application.partitions(settings.profile)
        refuse_while_slots_work(settings, application)
        self._producer = self._fence()
        crash_points.reach("fenced")
        self._offsets: dict[tuple[str, int], int] = {}
        self._failed: list[str] = []
        self._began = False

    def _fence(self) -> Producer:
        for partition in range(1, self._partitions):
            partition_producer(self._settings, self._application, partition).init_transactions(FENCE_SECONDS_MAX)
        first = partition_producer(self._settings, self._application, 0, transaction_ms_max=TRANSACTION_MS_MAX)
        first.init_transactions(FENCE_SECONDS_MAX)
        return first

    def rows(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Produces rows (None deletes) to the partition's changelog; returns how many. Raises `ReadingFailed`."""
        count = 0
        for key, row in rows:
            self._produce(self._application.changelog.name, row, key, partition)
            count += 1
        return count

    def outputs(self, partition: int, outputs: Iterable[Output]) -> None:
        """Produces what a core has put out."""
        counts = {topic.name: topic.partitions(self._settings.profile) for topic in self._application.outputs}
        for one in outputs:
            count = counts[one.topic]
            to = partition_of(one.key, count) if one.by_key else partition % count
            self._produce(one.topic, one.value, one.key, to, list(one.headers))

    def meta(self, partition: int, meta: Meta) -> None:
        """Produces the partition's next position: the last row of it. The same transaction commits its offsets for the group."""
        self._offsets |= {(topic, partition): offset for topic, offset in meta.next_offsets.items()}
        self._produce(self._application.changelog.name, encode_meta(meta), META_KEY, partition)
        self._crash_points.reach("produced")

    def commit(self) -> None:
        """Commits. Raises `Unsafe` where a slot has begun to work meanwhile, `ReadingFailed`, `KafkaException`."""
        self._begin()
        if self._producer.flush(COMMIT_SECONDS_MAX):
            raise ReadingFailed("records were not acknowledged in time: nothing was changed")
        if self._failed:
            raise ReadingFailed(f"a record was refused: {self._failed[0]}: nothing was changed")
        refuse_while_slots_work(self._settings, self._application)
        self._send_offsets()
        self._producer.commit_transaction(COMMIT_SECONDS_MAX)
        self._crash_points.reach("committed")

    def _send_offsets(self) -> None:
        """As a slot's commits do: others read there how far the application is."""
        if not self._offsets:
            return
        group = {"group.id": self._application.id, "enable.auto.commit": False}
        consumer = Consumer({**client_config(self._settings, f"{self._application.id}.state"), **group})
        try:
            offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in self._offsets.items()]
            self._producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), COMMIT_SECONDS_MAX)
        finally:
            consumer.close()

    def _begin(self) -> None:
        if not self._began:
            self._producer.begin_transaction()
            self._began = True
            self._crash_points.reach("begun")

    def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes,
        partition: int,
        headers: list[tuple[str, str | bytes | None]] | None = None,
    ) -> None:
        self._begin()
        deadline = time.monotonic() + NO_PROGRESS_SECONDS_MAX
        while True:
            try:
                self._producer.produce(topic, value, key, partition, headers=headers or [], on_delivery=self._note)
            except BufferError as error:
                if time.monotonic() > deadline:
                    raise ReadingFailed(f"no room for a record of {topic}/{partition}") from error
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _note(self, error: object, _message: object) -> None:
        if error is not None and len(self._failed) < 1:
            self._failed.append(str(error))
