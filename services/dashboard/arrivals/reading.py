"""Reads the newest records of topics `beacons` and `rejected` on request, and nothing in between.

There is one reading at a time, with a bounded time, number of records and bytes. A thousand people who look cost no more than one
after another. No customer's records, however large, take the memory that all share.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import structlog
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.dashboard.arrivals.picture import Read
from services.rim.kafka.connection import client_config, log_client_error
from shared.settings import Settings
from shared.topics import BEACONS, REJECTED

log = structlog.get_logger(__name__)

#: How far back is looked, and how many records of a topic are read: the newest ones.
BACK_SECONDS: Final = 600
RECORDS_MAX: Final = 20_000
#: Of a topic, the same way: a beacon may take 256 KiB, a rejected body 1 MB, and a customer may send 10 MB a second.
BYTES_MAX: Final = 32 * 1024 * 1024
#: What a record takes in memory beside its bytes, about.
_OVERHEAD_BYTES: Final = 500
ANSWER_SECONDS_MAX: Final = 2.0
READ_SECONDS_MAX: Final = 5.0
_RECORDS_PER_POLL_MAX: Final = 100


class ArrivalsAway(Exception):
    """Kafka does not answer in time."""


class Newest(NamedTuple):
    """What was read; `is_cut` says that older records of the time were left out."""

    beacons: list[Read]
    rejected: list[Read]
    is_cut: bool


class Kept:
    """The newest records of each partition, of at most so many bytes: nobody's records push out those of another partition.

    `bytes_max` is by topic, of each of its partitions.
    """

    def __init__(self, bytes_max: Mapping[str, int]) -> None:
        self._bytes_max = bytes_max
        self._found: dict[tuple[str, int], deque[tuple[Read, int]]] = {}
        self._bytes: dict[tuple[str, int], int] = {}
        #: Whether a record was let out for want of room.
        self.is_cut = False

    def add(self, topic: str, partition: int, record: Read) -> None:
        """The next record of the partition. The oldest ones make room for it; one alone may be larger than the room."""
        place, size = (topic, partition), _size_of(record)
        found = self._found.setdefault(place, deque())
        found.append((record, size))
        self._bytes[place] = self._bytes.get(place, 0) + size
        while self._bytes[place] > self._bytes_max[topic] and len(found) > 1:
            self._bytes[place] -= found.popleft()[1]
            self.is_cut = True

    def of(self, topic: str) -> list[Read]:
        """The records of all partitions of a topic, those of each in their order."""
        return [record for (name, _), found in self._found.items() if name == topic for record, _ in found]


def _size_of(record: Read) -> int:
    headers = sum(len(name) + len(value) for name, value in record.headers.items())
    return len(record.key or b"") + len(record.value) + headers + _OVERHEAD_BYTES


class ArrivalReader:
    """Its calls block: they belong on a thread."""

    def __init__(self, settings: Settings, *, records_max: int = RECORDS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._config = client_config(settings, "dashboard-arrivals") | _consumer_config()
        self._topics = {topic.name: topic.partitions(settings.profile) for topic in (BEACONS, REJECTED)}
        self._records_max = records_max
        self.bytes_max: Final = {name: bytes_max // partitions for name, partitions in self._topics.items()}
        self._one_at_a_time = threading.Lock()

    def newest(self, now_ms: int) -> Newest:
        """The records of the last `BACK_SECONDS`. Raises `ArrivalsAway`."""
        with self._one_at_a_time:
            consumer = Consumer(self._config)
            try:
                return self._read(consumer, now_ms - BACK_SECONDS * 1_000)
            except KafkaException as error:
                log.warning("arrivals_away", problem=str(error))
                raise ArrivalsAway(str(error)) from error
            finally:
                consumer.close()

    def _read(self, consumer: Consumer, since_ms: int) -> Newest:
        begins, is_cut = self._begins(consumer, since_ms)
        kept = Kept(self.bytes_max)
        waiting = {(one.topic, one.partition) for one in begins}
        consumer.assign(begins)
        deadline = time.monotonic() + READ_SECONDS_MAX
        while waiting and time.monotonic() < deadline:
            for message in consumer.consume(_RECORDS_PER_POLL_MAX, timeout=ANSWER_SECONDS_MAX / 2):
                error = message.error()
                if error is None:
                    kept.add(str(message.topic()), message.partition() or 0, _read_of(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard((message.topic(), message.partition()))
                else:
                    raise KafkaException(error)
        return Newest(kept.of(BEACONS.name), kept.of(REJECTED.name), is_cut or kept.is_cut or bool(waiting))

    def _begins(self, consumer: Consumer, since_ms: int) -> tuple[list[TopicPartition], bool]:
        """Where each partition that has records of the time is read from, and whether that is later than the time."""
        wanted = [TopicPartition(name, one, since_ms) for name, count in self._topics.items() for one in range(count)]
        begins, is_cut = [], False
        for place in consumer.offsets_for_times(wanted, timeout=ANSWER_SECONDS_MAX):
            if place.error is not None:
                raise KafkaException(place.error)
            if place.offset == OFFSET_END:
                continue
            _, end = consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS_MAX)
            first = max(place.offset, end - self._records_max // self._topics[place.topic])
            is_cut = is_cut or first > place.offset
            begins.append(TopicPartition(place.topic, place.partition, first))
        return begins, is_cut


def _read_of(message: Message) -> Read:
    headers = dict(message.headers() or [])
    named = {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value or ""
        for name, value in headers.items()
    }
    return Read(message.timestamp()[1], message.key(), message.value() or b"", named)


def _consumer_config() -> dict[str, Any]:
    return {
        # Required by the client, never used: nothing is subscribed or committed.
        "group.id": "dashboard-arrivals",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "latest",
        "fetch.wait.max.ms": 50,
        # What waits in the client counts as well: its own default is 64 MB.
        "queued.max.messages.kbytes": 8_192,
        "fetch.max.bytes": 8 * 1024 * 1024,
        "error_cb": log_client_error("dashboard-arrivals"),
    }
