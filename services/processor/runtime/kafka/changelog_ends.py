"""Where partitions of a changelog begin and end, transactions whose markers are not written yet included."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.processor.engine.application.application import Application
from services.processor.runtime.kafka.clients import changelog_consumer
from shared.settings import Settings

QUERY_SECONDS_MAX: Final = 5.0


class _Client:
    """A client, and how many use it."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.users = 0


class ChangelogEnds:
    """May be asked from any thread.

    Those who ask at a time share a client. A slot takes many partitions over at a time, and each client connects to the brokers
    by itself.
    """

    def __init__(self, settings: Settings, application: Application) -> None:
        self._settings = settings
        self._application = application
        self._lock = threading.Lock()
        self._client: _Client | None = None

    def of(self, partition: int) -> tuple[int, int]:
        """Where a partition begins and ends. Raises `KafkaException`."""
        with self._shared() as consumer:
            return ends_of(consumer, TopicPartition(self._application.changelog.name, partition))

    @contextmanager
    def _shared(self) -> Iterator[Consumer]:
        with self._lock:
            if self._client is None:
                consumer = changelog_consumer(self._settings, self._application, "ends", "read_uncommitted")
                self._client = _Client(consumer)
            client = self._client
            client.users += 1
        try:
            yield client.consumer
        except KafkaException:
            # It may have lost its way to a broker. Who asks from now on gets another.
            self._drop(client)
            raise
        finally:
            with self._lock:
                client.users -= 1
                is_unused = client.users == 0
                if is_unused and self._client is client:
                    self._client = None
            if is_unused:
                client.consumer.close()

    def _drop(self, client: _Client) -> None:
        with self._lock:
            if self._client is client:
                self._client = None


def ends_of(consumer: Consumer, at: TopicPartition) -> tuple[int, int]:
    """Where a partition begins and ends, as this consumer may read it. Raises `KafkaException`."""
    marks = consumer.get_watermark_offsets(at, timeout=QUERY_SECONDS_MAX)
    if marks is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no watermarks of {at.topic}/{at.partition}"))
    return marks
