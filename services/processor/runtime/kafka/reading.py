"""Reading of a partition from an offset to its present end, for commands."""

import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.rim.kafka.watermarks import watermarks

BATCH_RECORDS_MAX: Final = 500
QUERY_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.1
#: Without a record for so long, reading has failed.
NO_PROGRESS_SECONDS_MAX: Final = 30.0


class ReadingFailed(RuntimeError):
    """Kafka did not answer in time."""


def to_the_end(consumer: Consumer, at: TopicPartition) -> Iterator[Message]:
    """The committed records of a partition from `at` (its beginning where that has no offset) to its end as it is now.

    Raises `ReadingFailed`, `KafkaException`. The consumer reports ends of partitions (`enable.partition.eof`).
    """
    low, end = ends(consumer, at)
    position = max(low, at.offset)
    consumer.assign([TopicPartition(at.topic, at.partition, position)])
    deadline = time.monotonic() + NO_PROGRESS_SECONDS_MAX
    while position < end:
        # It waits for as many as are asked for: not for long.
        messages = consumer.consume(BATCH_RECORDS_MAX, POLL_SECONDS)
        if messages:
            deadline = time.monotonic() + NO_PROGRESS_SECONDS_MAX
        elif time.monotonic() > deadline:
            raise ReadingFailed(f"no progress at offset {position} of {at.topic}/{at.partition}")
        for message in messages:
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            position = (message.offset() or 0) + (error is None)
            if error is None and position <= end:
                yield message


def ends(consumer: Consumer, at: TopicPartition) -> tuple[int, int]:
    """Where a partition begins and ends. Raises `ReadingFailed`, `KafkaException`."""
    try:
        return watermarks(consumer, at, QUERY_SECONDS_MAX)
    except KafkaException as failure:
        if failure.args[0].code() != KafkaError._TIMED_OUT:
            raise
        raise ReadingFailed(f"no answer for the ends of {at.topic}/{at.partition}") from failure
