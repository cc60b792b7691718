"""Has the processor delete its state of some keys: by a record of each key in its input, behind all that was sent before."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from services.rim.kafka.connection import client_config, log_client_error
from shared.forgetting import headers_of
from shared.partitioning import partition_of, recording_key
from shared.settings import Settings
from shared.topics import BEACONS, RECORDINGS, Topic

_SECONDS_MAX: Final = 30.0
#: Application by the topic that it reads: the name of its group.
_READERS: Final[Mapping[str, str]] = {BEACONS.name: "video_views", RECORDINGS.name: "recordings"}


class OpenState:
    """One a process. What was produced is remembered; after a restart it is produced again, which deletes nothing else."""

    def __init__(self, settings: Settings, *, has_recordings: bool) -> None:
        self._settings = settings
        self._has_recordings = has_recordings
        self._produced: dict[str, tuple[dict[str, int], dict[tuple[str, int], int]]] = {}

    def delete(
        self, request_id: str, customer_id: str, keys: Iterable[bytes], sessions: Iterable[str]
    ) -> Mapping[str, int] | None:
        """How many keys, by topic, once the processor has committed beyond all of their records; None: it has not yet.

        An application that never ran holds nothing. Raises `KafkaException`.
        """
        if request_id not in self._produced:
            of_recordings = [recording_key(customer_id, one) for one in sessions] if self._has_recordings else []
            records = chain(((BEACONS, key) for key in keys), ((RECORDINGS, key) for key in of_recordings))
            self._produced[request_id] = self._produce(request_id, records)
        counts, ends = self._produced[request_id]
        if not self._are_folded(ends):
            return None
        del self._produced[request_id]
        return counts

    def _produce(
        self, request_id: str, records: Iterable[tuple[Topic, bytes]]
    ) -> tuple[dict[str, int], dict[tuple[str, int], int]]:
        counts = {BEACONS.name: 0}
        ends: dict[tuple[str, int], int] = {}
        failed: list[KafkaException] = []

        def delivered(error: object, message: object) -> None:
            if error is not None:
                failed.append(KafkaException(error))
                return
            place = message.topic(), message.partition()  # type: ignore[attr-defined]
            ends[place] = max(ends.get(place, 0), message.offset() + 1)  # type: ignore[attr-defined]

        config = client_config(self._settings, "finalizer-deletions")
        producer = Producer(
            {**config, "error_cb": log_client_error("deletions"), "acks": "all", "enable.idempotence": True}
        )
        for topic, key in records:
            partition = partition_of(key, topic.partitions(self._settings.profile))
            while True:
                try:
                    producer.produce(
                        topic.name, None, key, partition, headers=headers_of(request_id), on_delivery=delivered
                    )
                    break
                except BufferError:
                    producer.poll(1.0)
            counts[topic.name] = counts.get(topic.name, 0) + 1
            producer.poll(0)
        if producer.flush(_SECONDS_MAX):
            raise KafkaException("records were not delivered in time")
        if failed:
            raise failed[0]
        return counts, ends

    def _are_folded(self, ends: Mapping[tuple[str, int], int]) -> bool:
        for name, group in _READERS.items():
            of_topic = {partition: end for (topic, partition), end in ends.items() if topic == name}
            if not of_topic:
                continue
            consumer = Consumer(
                {**client_config(self._settings, "finalizer-deletions"), "group.id": group, "enable.auto.commit": False}
            )
            try:
                # Of all: an application that has never committed anything never ran.
                places = [TopicPartition(name, number) for number in range(_count(name, self._settings))]
                committed = {at.partition: at.offset for at in consumer.committed(places, timeout=_SECONDS_MAX)}
            finally:
                consumer.close()
            if max(committed.values()) < 0:
                continue
            if any(committed[partition] < end for partition, end in of_topic.items()):
                return False
        return True


def _count(topic: str, settings: Settings) -> int:
    return next(one for one in (BEACONS, RECORDINGS) if one.name == topic).partitions(settings.profile)
