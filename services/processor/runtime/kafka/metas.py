"""The last `meta` row of a changelog's partition: its position, without its rows."""

from typing import Final

from confluent_kafka import TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.state.meta import META_KEY, Meta, decode_meta
from services.processor.runtime.kafka.clients import changelog_consumer
from services.processor.runtime.kafka.reading import ends, to_the_end
from shared.settings import Settings

#: It is looked for among so many records from the end at first, then among ten times as many, and so on.
TAIL_RECORDS: Final = 1_000


def last_meta(settings: Settings, application: Application, partition: int) -> Meta | None:
    """The position of the last commit; None before the first. Raises `ReadingFailed`, `KafkaException`, `NewerFormat`."""
    consumer = changelog_consumer(settings, application, partition, "read_committed")
    try:
        at = TopicPartition(application.changelog.name, partition)
        low, end = ends(consumer, at)
        records = TAIL_RECORDS
        while True:
            at.offset = max(low, end - records)
            rows = [message.value() for message in to_the_end(consumer, at) if message.key() == META_KEY]
            last = next((row for row in reversed(rows) if row is not None), None)
            if last is not None or at.offset <= low:
                return None if last is None else decode_meta(last)
            records *= 10
    finally:
        consumer.close()
