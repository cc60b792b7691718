"""Reads the newest records of topics `beacons` and `rejected` when somebody looks, and nothing in between.

One reading at a time, of a bounded time and number of records: a thousand people who look cost no more than one after another.
"""

import threading
import time
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
ANSWER_SECONDS_MAX: Final = 2.0
READ_SECONDS_MAX: Final = 5.0
_RECORDS_PER_POLL_MAX: Final = 2_000


class ArrivalsAway(Exception):
    """Kafka does not answer in time."""


class Newest(NamedTuple):
    """What was read; `is_cut` says that older records of the time were left out."""

    beacons: list[Read]
    rejected: list[Read]
    is_cut: bool


class ArrivalReader:
    """Its calls block: they belong on a thread."""

    def __init__(self, settings: Settings, *, records_max: int = RECORDS_MAX) -> None:
        self._config = client_config(settings, "dashboard-arrivals") | _consumer_config()
        self._topics = {topic.name: topic.partitions(settings.profile) for topic in (BEACONS, REJECTED)}
        self._records_max = records_max
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
        found: dict[str, list[Read]] = {BEACONS.name: [], REJECTED.name: []}
        waiting = {(one.topic, one.partition) for one in begins}
        consumer.assign(begins)
        deadline = time.monotonic() + READ_SECONDS_MAX
        while waiting and time.monotonic() < deadline:
            for message in consumer.consume(_RECORDS_PER_POLL_MAX, timeout=ANSWER_SECONDS_MAX / 2):
                error = message.error()
                if error is None:
                    found[str(message.topic())].append(_read_of(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard((message.topic(), message.partition()))
                else:
                    raise KafkaException(error)
        return Newest(found[BEACONS.name], found[REJECTED.name], is_cut or bool(waiting))

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
        "error_cb": log_client_error("dashboard-arrivals"),
    }
