"""Growing: moves the state of an application to more partitions. Slots work while it is copied, and are stopped for the rest.

The future rows of new partitions are copied to their changelogs as the slots commit them. Without a position these copies mean
nothing to anyone. Once the slots are stopped, one transaction of the partition's own producer id moves the rest. It writes the
later changes and deletes the rows that have left. It gives each partition a position that says among how many the state is
divided now. So a crash at any time leaves each partition as it was, or done, and the next run does the rest. There is no other
record of the progress.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.division import CannotGrow, Division, targets_of
from services.processor.engine.state.meta import META_KEY, Meta, decode_meta, encode_meta
from services.processor.runtime.kafka.changelog_ends import ChangelogEnds
from services.processor.runtime.kafka.clients import changelog_consumer, partition_producer
from services.processor.runtime.kafka.metas import last_meta
from services.processor.runtime.kafka.reading import ReadingFailed, ends, to_the_end
from services.processor.runtime.plan import first_partitions
from services.rim.process.crash_points import CrashPoints
from shared.settings import Settings

#: Brokers allow 15 minutes by default. The slots' transactions are far shorter: theirs bounds how long readers wait.
TRANSACTION_MS_MAX: Final = 600_000
_INIT_SECONDS_MAX: Final = 30.0
_COMMIT_SECONDS_MAX: Final = 120.0
_DECIDED_SECONDS_MAX: Final = 30.0
_RETRY_SECONDS: Final = 0.2
_BATCH_RECORDS_MAX: Final = 10_000
_POLL_SECONDS: Final = 0.05
_NO_PROGRESS_SECONDS_MAX: Final = 30.0

#: By new partition, the rows that changed; None: deleted.
Changes = dict[int, dict[bytes, bytes | None]]


class Moved(NamedTuple):
    """What was done with a partition: rows that have left it, and those written once the slots were stopped, in these seconds."""

    partition: int
    rows: int
    late_rows: int
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


class Source:
    """A partition whose state is to be divided. `copy` once, `follow` while slots work, `move` once they are stopped.

    All raise `CannotGrow`, `ReadingFailed`, `KafkaException`, `NewerFormat`. Two runs at the same time do no harm. The producer
    id of the first new partition writes the copies, and the later run takes it from the former one. `move` makes sure that it
    still has that id before it commits.
    """

    def __init__(
        self, settings: Settings, application: Application, partition: int, partitions: int, crash_points: CrashPoints
    ) -> None:
        self._settings = settings
        self._application = application
        self.partition = partition
        self._crash_points = crash_points
        meta = last_meta(settings, application, partition)
        former = first_partitions(settings, application) if meta is None else meta.partitions
        self._division = Division(
            application,
            partition=partition,
            former=former or first_partitions(settings, application),
            partitions=partitions,
        )
        self._meta: Meta | None = None
        self._consumer = changelog_consumer(settings, application, partition, "read_committed")
        self._at = TopicPartition(application.changelog.name, partition)
        self._position = 0
        self._copier: Producer | None = None

    # While slots work.

    def copy(self, *, is_silent: bool) -> int:
        """Copies what moves, as it is committed now; the rows. `is_silent`: no slot works, so none is fenced by mistake.

        1. Fence an earlier run. A crash: nothing was written.
        2. Delete what it copied: keys may have gone since. First all its transactions end, and none has moved the state.
        3. Copy. A crash leaves copies without a position; the next run deletes them.
        """
        if is_silent:
            self._fenced(self.partition)
        first, *others = self._division.targets
        self._copier = self._fenced(first)
        for other in others:
            self._fenced(other)
        for target in self._division.targets:
            self._empty(target)
        self._position, _ = ends(self._consumer, self._at)
        self._consumer.assign([TopicPartition(self._at.topic, self.partition, self._position)])
        return self._to_the_end(self._send)

    def follow(self) -> int:
        """Copies what was committed since."""
        return self._send(self._read_changes())

    def forget(self) -> None:
        """Deletes the copies: the partitions do not grow after all."""
        for target in self._division.targets:
            self._empty(target)

    def _empty(self, target: int) -> None:
        """Deletes copies of an earlier run. Never a state: a partition with a position has one."""
        consumer = changelog_consumer(self._settings, self._application, target, "read_committed")
        try:
            self._await_decided(consumer, target)
            found: set[bytes] = set()
            for message in to_the_end(consumer, TopicPartition(self._at.topic, target)):
                key = message.key() or b""
                if key == META_KEY:
                    raise CannotGrow(f"partition {target} has state of its own")
                if message.value() is None:
                    found.discard(key)
                else:
                    found.add(key)
        finally:
            consumer.close()
        self._send({target: dict.fromkeys(found)})

    def _await_decided(self, consumer: Consumer, target: int) -> None:
        """Returns once no transaction is open that has begun before: a position that it wrote is found then."""
        _, end = ChangelogEnds(self._settings, self._application).of(target)
        deadline = time.monotonic() + _DECIDED_SECONDS_MAX
        while ends(consumer, TopicPartition(self._at.topic, target))[1] < end:
            if time.monotonic() >= deadline:
                raise CannotGrow(f"a transaction is open in partition {target}")
            time.sleep(_RETRY_SECONDS)

    def _to_the_end(self, use: Callable[[Changes], int]) -> int:
        """Gives all up to the changelog's present end to `use`; the sum of its answers."""
        total = 0
        _, end = ends(self._consumer, self._at)
        deadline = time.monotonic() + _NO_PROGRESS_SECONDS_MAX
        while self._position < end:
            before = self._position
            total += use(self._read_changes())
            if self._position > before:
                deadline = time.monotonic() + _NO_PROGRESS_SECONDS_MAX
            elif time.monotonic() > deadline:
                raise ReadingFailed(f"no progress at offset {self._position} of {self._at.topic}/{self.partition}")
        return total

    def _read_changes(self) -> Changes:
        """Reads what the changelog has, for a moment."""
        changes: Changes = {target: {} for target in self._division.targets}
        for message in self._consumer.consume(_BATCH_RECORDS_MAX, _POLL_SECONDS):
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise ReadingFailed(f"{self._at.topic}/{self.partition}: {error.str()}")
            self._position = (message.offset() or 0) + (error is None)
            if error is not None:
                continue
            key, row = message.key() or b"", message.value()
            if key == META_KEY:
                self._meta = None if row is None else decode_meta(row)
                continue
            target = self._division.take_row(key, row)
            if target is not None:
                changes[target][key] = row
        return changes

    def _send(self, changes: Changes) -> int:
        sent = sum(map(len, changes.values()))
        if sent and self._copier is not None:
            self._copier.begin_transaction()
            for target, rows in changes.items():
                self._produce(self._copier, target, rows.items())
            self._crash_points.reach("grow_copying")
            self._copier.commit_transaction(_COMMIT_SECONDS_MAX)
        return sent

    # Once they are stopped.

    def move(self) -> Moved:
        """Divides the state, at once or not at all.

        1. Fence the partition: no slot commits to it any more, and no transaction is open. A crash: as after `copy`.
        2. Read the changelog to its end. A crash: as before.
        3. Produce everything in one transaction. A crash leaves it open; the next run's fence aborts it.
        4. Make sure that no other run has begun: one that begins later waits for this transaction to end.
        5. Commit. A crash after it: the position says that this partition is done.
        """
        began = time.monotonic()
        producer = self._fenced(self.partition)
        late: Changes = {target: {} for target in self._division.targets}

        def keep(changes: Changes) -> int:
            for target, rows in changes.items():
                late[target].update(rows)
            return sum(map(len, changes.values()))

        late_rows = self._to_the_end(keep)
        if self._meta is None or self._copier is None:
            raise CannotGrow(f"partition {self.partition} has no position any more")
        divided = self._division.divided(self._meta)
        producer.begin_transaction()
        leaving = divided.rows[self.partition]
        self._produce(producer, self.partition, leaving.items())
        for target in self._division.targets:
            sums = {key: row for key, row in divided.rows[target].items() if self._division.is_sum(key)}
            self._produce(producer, target, (late[target] | sums).items())
            self._crash_points.reach("grow_produced")
        if producer.flush(_COMMIT_SECONDS_MAX):
            raise ReadingFailed(f"rows of partition {self.partition} were not acknowledged in time")
        self._claim(self._copier)
        # Last: what comes after a position is not in it.
        for number, meta in divided.metas.items():
            self._produce(producer, number, [(META_KEY, encode_meta(meta))])
        producer.commit_transaction(_COMMIT_SECONDS_MAX)
        self._crash_points.reach("grow_moved")
        rows = sum(row is None for row in leaving.values())
        return Moved(self.partition, rows, late_rows, round(time.monotonic() - began, 3))

    def _claim(self, copier: Producer) -> None:
        """Commits with the copier's producer id; it fails when another run has taken that.

        What it writes, no store has: a deletion of the empty key.
        """
        nothing = bytes([self._application.stores[0].id])
        copier.begin_transaction()
        self._produce(copier, self._division.targets[0], [(nothing, None)])
        copier.commit_transaction(_COMMIT_SECONDS_MAX)

    def _fenced(self, partition: int) -> Producer:
        producer = partition_producer(
            self._settings, self._application, partition, transaction_ms_max=TRANSACTION_MS_MAX
        )
        producer.init_transactions(_INIT_SECONDS_MAX)
        return producer

    def _produce(self, producer: Producer, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        produce: Callable[..., None] = producer.produce
        topic = self._application.changelog.name
        for key, value in rows:
            while True:
                try:
                    # A record that is not delivered fails the commit.
                    produce(topic, value, key, partition)
                except BufferError:
                    producer.poll(0.05)
                else:
                    break
