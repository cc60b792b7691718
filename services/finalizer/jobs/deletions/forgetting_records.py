"""Records without a value, which have the processor delete what it holds of their keys, behind all that was sent before."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from services.finalizer.warehouse.landed import is_topic
from services.rim.kafka.connection import client_config, log_client_error
from shared.forgetting import headers_of
from shared.partitioning import partition_of
from shared.settings import Settings
from shared.topics import ALERT_RULES, API_CALLS, BEACONS, RECORDINGS, Topic

_SECONDS_MAX: Final = 30.0
#: By topic the applications that read it: the id of each is the name of its group.
_READERS: Final[Mapping[str, Sequence[str]]] = {
    BEACONS.name: ("video_views",),
    RECORDINGS.name: ("recordings",),
    API_CALLS.name: ("api_schemas", "api_baselines"),
    ALERT_RULES.name: ("alerts",),
}
#: The offset after the last record, by topic and partition.
Ends = Mapping[tuple[str, int], int]


def produce(
    settings: Settings, request_id: str, records: Iterable[tuple[Topic, bytes]]
) -> tuple[dict[str, int], dict[tuple[str, int], int]]:
    """Produces one for each key; how many by topic, and where they end. Raises `KafkaException`.

    Of a topic that this installation does not have there is nothing to delete.
    """
    counts: dict[str, int] = {}
    ends: dict[tuple[str, int], int] = {}
    failed: list[KafkaException] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(KafkaException(error))
            return
        place = message.topic(), message.partition()  # type: ignore[attr-defined]
        ends[place] = max(ends.get(place, 0), message.offset() + 1)  # type: ignore[attr-defined]

    config = client_config(settings, "finalizer-deletions")
    producer = Producer(
        {**config, "error_cb": log_client_error("deletions"), "acks": "all", "enable.idempotence": True}
    )
    known: dict[str, bool] = {}
    for topic, key in records:
        if topic.name not in known:
            known[topic.name] = is_topic(producer.list_topics(topic.name, timeout=_SECONDS_MAX), topic.name)
        if not known[topic.name]:
            continue
        partition = partition_of(key, topic.partitions(settings.profile))
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


def are_folded(settings: Settings, ends: Ends) -> bool:
    """Whether the applications have committed beyond these records. Raises `KafkaException`."""
    return all(
        is_beyond(settings, settings.application_id(name), {at: end for at, end in ends.items() if at[0] == topic})
        for topic, names in _READERS.items()
        for name in names
    )


def is_beyond(settings: Settings, group: str, ends: Ends) -> bool:
    """Whether a group has committed so far, of one topic; one that has never committed anything never ran.

    Raises `KafkaException`.
    """
    if not ends:
        return True
    (name,) = {topic for topic, _ in ends}
    consumer = Consumer(
        {**client_config(settings, "finalizer-deletions"), "group.id": group, "enable.auto.commit": False}
    )
    try:
        # Of all partitions: it may have been given others first.
        known = consumer.list_topics(name, timeout=_SECONDS_MAX).topics[name].partitions
        places = [TopicPartition(name, number) for number in known]
        committed = {at.partition: at.offset for at in consumer.committed(places, timeout=_SECONDS_MAX)}
    finally:
        consumer.close()
    if max(committed.values()) < 0:
        return True
    return all(committed[partition] >= end for (_, partition), end in ends.items())
