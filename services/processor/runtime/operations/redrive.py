"""Redrive: produces records of topic `rejected` to the application's input again, each once.

A transaction holds the records and a marker in topic `redriven` that names them by their offsets in `rejected`. A run reads the
markers first, so a second run does not produce a record again. A killed run leaves neither record nor marker. Its transactional
id is the application's own, so of two concurrent runs the later one fences the earlier.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import structlog
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from services.processor.engine.application.application import Application
from services.processor.runtime.kafka.clients import TRANSACTION_MS_MAX
from services.processor.runtime.kafka.reading import (
    NO_PROGRESS_SECONDS_MAX,
    QUERY_SECONDS_MAX,
    ReadingFailed,
    ends,
    to_the_end,
)
from services.rim.kafka.connection import client_config, log_client_error
from shared.settings import Settings
from shared.topics import RECORD_BYTES_MAX, REDRIVEN, REJECTED

log = structlog.get_logger(__name__)

#: Of one transaction.
BATCH_RECORDS_MAX: Final = 500
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
COMMIT_SECONDS_MAX: Final = 30.0


class Marker(msgspec.Struct, frozen=True):
    """The value of topic `redriven`: offsets of one partition of `rejected` whose records were produced again."""

    application: str
    partition: int
    offsets: list[int]


_markers: Final = msgspec.json.Decoder(Marker)


@dataclass(frozen=True)
class Wanted:
    """Which records are to be redriven. Times in ms since 1970, of their rejection."""

    reasons: frozenset[str]
    from_ms: int | None = None
    until_ms: int | None = None


class Outcome(msgspec.Struct):
    """The result of a run, as numbers of selected records of topic `rejected`."""

    produced: int = 0
    #: Produced by an earlier run.
    before: int = 0
    #: Rows of a store: they are no records of an input.
    rows: int = 0
    #: Their bytes were never in `rejected`, and the input does not have them any more.
    gone: int = 0


class _Again(NamedTuple):
    """One record to be produced."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    #: Of the rejected record.
    offset: int


def redrive(settings: Settings, application: Application, wanted: Wanted) -> Outcome:
    """Produces the selected records again. Raises `ReadingFailed`, `KafkaException`: what was produced is marked, run it again."""
    producer = _producer(settings, application)
    producer.init_transactions(QUERY_SECONDS_MAX)
    done = _redriven(settings, application)
    outcome = Outcome()
    origins = _Origins(settings, application)
    try:
        for partition in range(REJECTED.partitions(settings.profile)):
            batch: list[_Again] = []
            batch_bytes = 0
            for message in _rejected(settings, application, partition, wanted):
                again = _again(message, application, origins, done, outcome)
                if again is None:
                    continue
                batch.append(again)
                batch_bytes += len(again.value or b"")
                if len(batch) >= BATCH_RECORDS_MAX or batch_bytes >= BATCH_BYTES_MAX:
                    _commit(producer, application, partition, batch, outcome)
                    batch, batch_bytes = [], 0
            if batch:
                _commit(producer, application, partition, batch, outcome)
    finally:
        origins.close()
    return outcome


def _commit(
    producer: Producer, application: Application, partition: int, batch: list[_Again], outcome: Outcome
) -> None:
    producer.begin_transaction()
    for one in batch:
        producer.produce(one.topic, one.value, one.key, one.partition, headers=one.headers)
    marker = Marker(application.name, partition, [one.offset for one in batch])
    producer.produce(REDRIVEN.name, msgspec.json.encode(marker), application.name.encode(), 0)
    producer.commit_transaction(COMMIT_SECONDS_MAX)
    outcome.produced += len(batch)
    log.info("redriven", partition=partition, records=len(batch))


def _again(
    message: Message,
    application: Application,
    origins: "_Origins",
    done: set[tuple[int, int]],
    outcome: Outcome,
) -> _Again | None:
    partition, offset = message.partition() or 0, message.offset() or 0
    if (partition, offset) in done:
        outcome.before += 1
        return None
    origin = _origin_of(message, application)
    if origin is None:
        outcome.rows += 1
        return None
    key, value = message.key(), message.value()
    headers: list[tuple[str, str | bytes | None]] = []
    if application.by_headers:
        source = origins.read(origin)
        if source is None:
            outcome.gone += 1
            return None
        key, value, headers = source.key(), source.value(), list(dict(source.headers() or []).items())
    return _Again(origin.topic, origin.partition, key, value, headers, offset)


def _origin_of(message: Message, application: Application) -> TopicPartition | None:
    """Where in an input the record was; None for a row of a store."""
    parts = _header(message, "origin").rsplit("/", 2)
    is_record = len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit()
    if not is_record or parts[0] not in {topic.name for topic in application.inputs}:
        return None
    return TopicPartition(parts[0], int(parts[1]), int(parts[2]))


def _rejected(settings: Settings, application: Application, partition: int, wanted: Wanted) -> Iterator[Message]:
    consumer = _consumer(settings, application)
    try:
        at = TopicPartition(REJECTED.name, partition)
        if wanted.from_ms is not None:
            (found,) = consumer.offsets_for_times(
                [TopicPartition(REJECTED.name, partition, wanted.from_ms)], timeout=QUERY_SECONDS_MAX
            )
            if found.offset < 0:
                return
            at.offset = found.offset
        for message in to_the_end(consumer, at):
            at_ms = message.timestamp()[1]
            if wanted.until_ms is not None and at_ms >= wanted.until_ms:
                return
            is_ours = _header(message, "service") == application.name
            if is_ours and _header(message, "reason") in wanted.reasons and at_ms >= (wanted.from_ms or 0):
                yield message
    finally:
        consumer.close()


def _redriven(settings: Settings, application: Application) -> set[tuple[int, int]]:
    """Partition and offset in `rejected` of what earlier runs have produced."""
    consumer = _consumer(settings, application)
    try:
        messages = list(to_the_end(consumer, TopicPartition(REDRIVEN.name, 0)))
        markers = [_markers.decode(message.value() or b"") for message in messages]
    finally:
        consumer.close()
    return {
        (marker.partition, offset)
        for marker in markers
        if marker.application == application.name
        for offset in marker.offsets
    }


class _Origins:
    """Reads records of inputs by their offsets: of an application that takes its records by headers, `rejected` has no bytes."""

    def __init__(self, settings: Settings, application: Application) -> None:
        self._consumer = _consumer(settings, application)

    def read(self, origin: TopicPartition) -> Message | None:
        """The record at `origin`; None if it is deleted."""
        low, end = ends(self._consumer, origin)
        if not low <= origin.offset < end:
            return None
        self._consumer.assign([origin])
        message = self._consumer.poll(NO_PROGRESS_SECONDS_MAX)
        if message is None:
            raise ReadingFailed(f"no record at offset {origin.offset} of {origin.topic}/{origin.partition}")
        return message if message.error() is None and message.offset() == origin.offset else None

    def close(self) -> None:
        """Closes its client."""
        self._consumer.close()


def _header(message: Message, name: str) -> str:
    value = dict(message.headers() or []).get(name)
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _consumer(settings: Settings, application: Application) -> Consumer:
    return Consumer(
        {
            **client_config(settings, f"{application.name}.redrive"),
            "error_cb": log_client_error("redrive"),
            # Required by the client; nothing is ever committed under it.
            "group.id": f"{application.name}.redrive",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            # An end behind the marker of a transaction has no record: the client reports that it was reached.
            "enable.partition.eof": True,
        }
    )


def _producer(settings: Settings, application: Application) -> Producer:
    return Producer(
        {
            **client_config(settings, f"{application.name}.redrive"),
            "error_cb": log_client_error("redrive"),
            "transactional.id": f"{application.name}.redrive",
            # An open transaction holds back every later record of the input.
            "transaction.timeout.ms": TRANSACTION_MS_MAX,
            "compression.codec": "lz4",
            "message.max.bytes": RECORD_BYTES_MAX + 100_000,
        }
    )
