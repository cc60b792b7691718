"""Growing: moves the state of an application whose topics have more partitions now. The slots are stopped meanwhile.

A partition's rows move in one transaction of its own producer id: the rows that leave are deleted in its changelog and written to
those of the new partitions, each with a position that says among how many partitions the state is divided now. So a crash at any
time leaves each partition as it was, or done, and the next run does the rest. Nothing else is noted anywhere.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import structlog
from confluent_kafka import KafkaError, Producer, TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.division import CannotGrow, divide, targets_of
from services.processor.engine.state.rows import META_KEY, Meta, decode_meta, encode_meta
from services.processor.runtime.kafka.clients import changelog_consumer, partition_producer
from services.processor.runtime.kafka.metas import last_meta
from services.processor.runtime.kafka.reading import ReadingFailed, ends
from services.processor.runtime.plan import first_partitions
from services.rim.process.crash_points import CrashPoints
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: Brokers allow 15 minutes by default. The slots' transactions are far shorter: theirs bounds how long readers wait.
TRANSACTION_MS_MAX: Final = 600_000
_INIT_SECONDS_MAX: Final = 30.0
_COMMIT_SECONDS_MAX: Final = 120.0
_BATCH_RECORDS_MAX: Final = 10_000
_NO_PROGRESS_SECONDS_MAX: Final = 30.0


class Moved(NamedTuple):
    """What was done with a partition: rows that moved, and rows that it had. Zeros where it was done already."""

    partition: int
    rows: int
    of_rows: int
    seconds: float


def sources(settings: Settings, application: Application, present: int, partitions: int) -> list[int]:
    """The partitions, of the `present` ones, whose state is still to be divided among `partitions`.

    Raises `CannotGrow`, `ReadingFailed`, `KafkaException`, `NewerFormat`.
    """
    if application.growth is None:
        raise CannotGrow(f"{application.name} has state that cannot be divided")
    first = first_partitions(settings, application)
    targets_of(0, first, partitions)
    found = []
    for partition in range(present):
        meta = last_meta(settings, application, partition)
        if meta is None:
            continue
        application.row_formats(meta)
        former = meta.partitions or first
        if former == partitions:
            continue
        if partition >= former:
            raise CannotGrow(f"partition {partition} has state of its own, though keys were divided among {former}")
        targets_of(partition, former, partitions)
        found.append(partition)
    return found


def move(
    settings: Settings, application: Application, partition: int, partitions: int, crash_points: CrashPoints
) -> Moved:
    """Divides the state of one partition among `partitions`, at once or not at all.

    Raises `CannotGrow`, `ReadingFailed`, `KafkaException`, `NewerFormat`.

    1. Fence the partition and its new ones: no slot commits to them, and no transaction is open. A crash: nothing was written.
    2. Read the changelog to its end. A crash: as before.
    3. Produce everything in one transaction. A crash leaves it open; the next run's fence aborts it.
    4. Commit. A crash after it: the position says that this partition is done.
    """
    began = time.monotonic()
    first = first_partitions(settings, application)
    producer = _fenced(settings, application, partition)
    rows, meta = read(settings, application, partition)
    if meta is None or (former := meta.partitions or first) == partitions:
        return Moved(partition, 0, 0, 0.0)
    for target in targets_of(partition, former, partitions):
        _fenced(settings, application, target)
        if last_meta(settings, application, target) is not None:
            raise CannotGrow(f"partition {target} has state of its own")
    divided = divide(application, rows, meta, partition=partition, former=former, partitions=partitions)
    producer.begin_transaction()
    for number, changes in divided.rows.items():
        _produce(producer, application, number, changes.items())
        crash_points.reach("grow_produced")
        # Last: what comes after a position is not in it.
        _produce(producer, application, number, [(META_KEY, encode_meta(divided.metas[number]))])
    producer.commit_transaction(_COMMIT_SECONDS_MAX)
    crash_points.reach("grow_moved")
    moved = sum(row is None for row in divided.rows[partition].values())
    done = Moved(partition, moved, len(rows), time.monotonic() - began)
    log.info("partition_divided", partition=partition, rows_moved=moved, rows=len(rows), seconds=round(done.seconds, 3))
    return done


def read(settings: Settings, application: Application, partition: int) -> tuple[dict[bytes, bytes], Meta | None]:
    """The committed rows of a partition and its position. No transaction may be open."""
    consumer = changelog_consumer(settings, application, partition, "read_committed")
    try:
        at = TopicPartition(application.changelog.name, partition)
        low, end = ends(consumer, at)
        at.offset = low
        consumer.assign([at])
        rows: dict[bytes, bytes] = {}
        newest: bytes | None = None
        position, deadline = low, time.monotonic() + _NO_PROGRESS_SECONDS_MAX
        while position < end:
            messages = consumer.consume(_BATCH_RECORDS_MAX, 0.05)
            if messages:
                deadline = time.monotonic() + _NO_PROGRESS_SECONDS_MAX
            elif time.monotonic() > deadline:
                raise ReadingFailed(f"no progress at offset {position} of {at.topic}/{partition}")
            for message in messages:
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise ReadingFailed(f"{at.topic}/{partition}: {error.str()}")
                position = (message.offset() or 0) + (error is None)
                if error is not None:
                    continue
                key, value = message.key(), message.value()
                if key == META_KEY:
                    newest = value
                elif key is not None and value is not None:
                    rows[key] = value
                elif key is not None:
                    rows.pop(key, None)
        return rows, None if newest is None else decode_meta(newest)
    finally:
        consumer.close()


def _fenced(settings: Settings, application: Application, partition: int) -> Producer:
    producer = partition_producer(settings, application, partition, transaction_ms_max=TRANSACTION_MS_MAX)
    producer.init_transactions(_INIT_SECONDS_MAX)
    return producer


def _produce(
    producer: Producer, application: Application, partition: int, rows: Iterable[tuple[bytes, bytes | None]]
) -> None:
    produce: Callable[..., None] = producer.produce
    topic = application.changelog.name
    for key, value in rows:
        while True:
            try:
                # A record that is not delivered fails the commit.
                produce(topic, value, key, partition)
            except BufferError:
                producer.poll(0.05)
            else:
                break
