"""MediaReader: reads the values of ranges of records again, by their offsets, outside the group."""

import threading
import time
from collections.abc import Generator
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.processor.engine.application.media_requests import Run
from services.rim.kafka.connection import client_config, log_client_error
from shared.settings import Settings

#: A request whose reading makes no progress for so long is tried again later.
SILENT_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.2
_WATERMARK_SECONDS: Final = 10.0
#: Between runs so few records apart it reads on: going elsewhere costs a round trip to the broker.
READ_ON_RECORDS_MAX: Final = 2
#: What is fetched at once for requests up to this size, bytes, and for larger ones.
_SMALL_BYTES: Final = 64 * 1024
_LARGE_FETCH_BYTES: Final = 4 * 1024 * 1024


class Gone(RuntimeError):
    """Kafka does not have these records any more."""


class Unread(RuntimeError):
    """Kafka does not answer just now: try again later."""


class Stopped(RuntimeError):
    """The partition was released: the result is not needed any more."""


class MediaReader:
    """Two consumers of one thread: one that fetches little for small requests, and one that reads ahead."""

    def __init__(self, settings: Settings, application: str) -> None:
        self._settings = settings
        self._application = application
        self._consumers: dict[bool, Consumer] = {}

    def read(
        self, topic: str, partition: int, runs: tuple[Run, ...], size_bytes: int, stopped: threading.Event
    ) -> Generator[bytes, None, None]:
        """The values of these records, in order. Raises `Gone`, `Unread` or `Stopped`."""
        is_small = size_bytes <= _SMALL_BYTES
        consumer = self._consumers.get(is_small)
        if consumer is None:
            consumer = self._consumers[is_small] = self._consumer(is_small=is_small)
        try:
            next_offset = -1
            for first, count in runs:
                at = TopicPartition(topic, partition, first)
                if not 0 <= first - next_offset <= READ_ON_RECORDS_MAX or next_offset < 0:
                    consumer.assign([at])
                yield from self._run(consumer, at, count, stopped)
                next_offset = first + count
        except KafkaException as error:
            raise Unread(error.args[0].str()) from error
        finally:
            # No more is fetched until it is needed.
            consumer.unassign()

    def _run(
        self, consumer: Consumer, at: TopicPartition, count: int, stopped: threading.Event
    ) -> Generator[bytes, None, None]:
        deadline = time.monotonic() + SILENT_SECONDS_MAX
        wanted = at.offset
        while wanted < at.offset + count:
            if stopped.is_set():
                raise Stopped
            if time.monotonic() > deadline:
                raise Unread(f"nothing came of {at.topic}/{at.partition} for {SILENT_SECONDS_MAX:.0f} s")
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            value = self._value(consumer, at, message, wanted)
            if value is not None:
                wanted += 1
                deadline = time.monotonic() + SILENT_SECONDS_MAX
                yield value

    def _value(self, consumer: Consumer, at: TopicPartition, message: Message, wanted: int) -> bytes | None:
        """The value of the wanted record; None for one before it. Raises `Gone`.

        What lies between two runs need not come: it may be a transaction's marker, or records of one that was aborted.
        """
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._check_gone(consumer, at, wanted)
            raise KafkaException(error)
        offset = message.offset() or 0
        if offset > wanted:
            raise Gone(f"{at.topic}/{at.partition} goes from {wanted} to {offset}")
        return (message.value() or b"") if offset == wanted else None

    @staticmethod
    def _check_gone(consumer: Consumer, at: TopicPartition, wanted: int) -> None:
        """A verdict for good wants better evidence than one answer: a leader that has just changed may know less."""
        first, _ = consumer.get_watermark_offsets(at, timeout=_WATERMARK_SECONDS)
        if first > wanted:
            raise Gone(f"{at.topic}/{at.partition} begins at {first}, {wanted} was wanted")

    def _consumer(self, *, is_small: bool) -> Consumer:
        config: dict[str, Any] = {
            **client_config(self._settings, f"{self._application}.media"),
            "error_cb": log_client_error("media"),
            # Required by the client; nothing is ever committed under it.
            "group.id": f"{self._application}.media",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 5,
            "fetch.max.bytes": _LARGE_FETCH_BYTES,
            "max.partition.fetch.bytes": _SMALL_BYTES if is_small else _LARGE_FETCH_BYTES,
            "queued.max.messages.kbytes": 64 if is_small else 2 * _LARGE_FETCH_BYTES // 1024,
        }
        return Consumer(config)
