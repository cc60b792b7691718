"""Whether the warehouse has what topics held at some moment: by what each stream's checkpoint notes as landed."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._metadata import ClusterMetadata
from pyspark.sql import SparkSession

from services.finalizer.warehouse.hadoop_files import hadoop_file
from services.rim.kafka.connection import client_config
from shared.settings import Settings

_ANSWER_SECONDS_MAX: Final = 10.0

#: The offset after the last one, by topic and partition.
Ends = Mapping[tuple[str, int], int]


def ends_of(settings: Settings, topics: Collection[str]) -> Ends:
    """Where topics end now, open transactions included; without partitions that are empty. Raises `KafkaException`."""
    admin = AdminClient(client_config(settings, "finalizer-deletions"))
    places: list[TopicPartition] = []
    for topic in topics:
        known = admin.list_topics(topic, timeout=_ANSWER_SECONDS_MAX)
        if is_topic(known, topic):
            places += [TopicPartition(topic, number) for number in known.topics[topic].partitions]
    first = _asked(admin, places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    last = _asked(admin, places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return {place: end for place, end in last.items() if end > first[place]}


def is_topic(known: ClusterMetadata, topic: str) -> bool:
    """Whether there is such a topic, by what the broker said of it. Raises `KafkaException`, also where it may not be seen."""
    error = known.topics[topic].error
    if error is None:
        return True
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return False
    raise KafkaException(error)


def _asked(admin: AdminClient, places: list[TopicPartition], what: OffsetSpec) -> dict[tuple[str, int], int]:
    if not places:
        return {}
    asked = admin.list_offsets(
        dict.fromkeys(places, what),
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=_ANSWER_SECONDS_MAX,
    )
    return {(place.topic, place.partition): answer.result().offset for place, answer in asked.items()}


def landed_to(spark: SparkSession, folder: str) -> Ends:
    """The offsets after the last batch that a stream has ended, of its checkpoint's folder; none before its first."""
    _, files, commits = hadoop_file(spark, f"{folder}/commits")
    if not files.exists(commits):
        return {}
    names = [status.getPath().getName() for status in files.listStatus(commits)]
    numbers = [int(name) for name in names if name.isdecimal()]
    if not numbers:
        return {}
    text = _text(spark, f"{folder}/offsets/{max(numbers)}")
    # A version, the batch's metadata, and one line for each source.
    offsets: dict[str, dict[str, int]] = json.loads(text.splitlines()[2])
    return {(topic, int(number)): end for topic, ends in offsets.items() for number, end in ends.items()}


def _text(spark: SparkSession, path: str) -> str:
    jvm, files, where = hadoop_file(spark, path)
    stream: Any = files.open(where)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def has(landed: Ends, wanted: Ends) -> bool:
    """Whether all that is wanted has landed."""
    return all(landed.get(place, 0) >= end for place, end in wanted.items())
