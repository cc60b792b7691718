"""The changelog: replayed into the local store when a partition is taken over."""

import threading
import time
from dataclasses import dataclass, field
from typing import Final

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.state.local import LocalMeta, LocalStore
from services.processor.engine.state.meta import META_KEY, decode_meta
from services.processor.runtime.kafka.clients import changelog_consumer
from services.processor.runtime.plan import Plan
from services.processor.runtime.store.stores import Stores
from services.rim.process.crash_points import CrashPoints
from services.rim.process.elastic import Moving
from services.rim.telemetry.metrics import counter
from shared.metrics import PROCESSOR_RESTORED_ROWS
from shared.schemas.slots import PartitionStatus

log = structlog.get_logger(__name__)

BATCH_RECORDS_MAX: Final = 5_000
#: A replay that gets nothing for this long has failed: it is reported, not waited for.
NO_PROGRESS_SECONDS_MAX: Final = 30.0
#: After so many rows a long replay stores its position, so that an interrupted replay continues from there.
POSITION_EVERY_ROWS: Final = 50_000
#: A long replay logs its progress this often.
REPORT_SECONDS: Final = 5.0


class ReplayFailed(RuntimeError):
    """The changelog could not be replayed to its end."""


class GivenUp(RuntimeError):
    """The partition was taken from this slot while it was being taken."""


@dataclass(frozen=True)
class Replayed:
    """What a replay did: rows written, and the store's new position."""

    rows: int
    position: LocalMeta | None


@dataclass
class RestoreProgress:
    """How far a replay is. Other threads read it."""

    moving: Moving = field(default_factory=Moving)
    rows: int = 0
    #: Changelog records, rows and markers, still to be read; None before the end is known.
    left_records: int | None = None
    #: For how long rows have been read.
    seconds: float = 0.0

    @property
    def rows_per_second(self) -> int | None:
        """How fast it is; None before the first row."""
        return round(self.rows / self.seconds) if self.rows and self.seconds else None

    def add_status(self, status: PartitionStatus) -> PartitionStatus:
        """`status` with the figures of the restore."""
        return msgspec.structs.replace(
            status,
            restored_rows=self.rows,
            restored_rows_per_second=self.rows_per_second,
            restore_left_records=self.left_records,
        )


def replay(
    plan: Plan,
    partition: int,
    stores: Stores,
    store: LocalStore,
    *,
    now_ms: int,
    given_up: threading.Event,
    progress: RestoreProgress,
) -> Replayed:
    """Brings the partition's open store to the changelog's end. Call it after `init_transactions`, when no transaction is open.

    The end is the read_uncommitted high watermark: the read_committed one would stop before a transaction whose commit marker is
    not written yet. Offsets have holes (commit markers), so the end is reached by position, not by record.

    `now_ms` is this machine's time, ms since 1970. Raises `StoreTooOld`, `StoreAhead`, `NewerFormat`, `ReplayFailed`, `GivenUp`.
    """
    settings, application = plan.settings, plan.application
    topic = application.changelog.name
    low, end = stores.changelog_ends.of(partition)
    before = store.position()
    if before is None:
        # First of all: rows without a position would be trusted however old they are.
        before = LocalMeta(None, low, now_ms)
        store.write({}, before)
    stores.check(partition, before, low, end, now_ms=now_ms)
    if before.changelog_offset == end:
        reached = msgspec.structs.replace(before, current_ms=now_ms)
        store.write({}, reached)
        return Replayed(0, reached)
    consumer = changelog_consumer(settings, application, partition, "read_committed")
    try:
        consumer.assign([TopicPartition(topic, partition, before.changelog_offset)])
        # True at the time of the end offset's query: nothing is known about later records.
        goal = LocalMeta(None, end, now_ms)
        return _Replay(
            consumer,
            store,
            before,
            goal,
            application=application,
            partition=partition,
            crash_points=plan.crash_points,
            progress=progress,
        ).run(given_up)
    finally:
        consumer.close()


class _Replay:
    """One reading of the changelog from `before` to `goal`."""

    def __init__(
        self,
        consumer: Consumer,
        store: LocalStore,
        before: LocalMeta,
        goal: LocalMeta,
        *,
        application: Application,
        partition: int,
        crash_points: CrashPoints,
        progress: RestoreProgress,
    ) -> None:
        self._consumer = consumer
        self._store = store
        self._goal = goal
        self._crash_points = crash_points
        self._stands = before
        self._meta = before.meta
        self._position = before.changelog_offset
        self._rows = 0
        self._rows_at_position = 0
        self._progress = progress
        # A replay that failed may have gone before: the count starts at 0.
        progress.rows = 0
        self._restored = counter(PROCESSOR_RESTORED_ROWS).labels(application.name, str(partition))
        self._partition = partition
        self._began_at = self._reported_at = time.monotonic()
        self._report()

    def run(self, given_up: threading.Event) -> Replayed:
        """Reads to the goal. Raises `ReplayFailed` when nothing comes for long, `GivenUp` once `given_up` is set."""
        deadline = time.monotonic() + NO_PROGRESS_SECONDS_MAX
        end = self._goal.changelog_offset
        while self._position < end:
            if given_up.is_set():
                raise GivenUp
            messages = self._consumer.consume(BATCH_RECORDS_MAX, 0.05)
            if messages:
                deadline = time.monotonic() + NO_PROGRESS_SECONDS_MAX
                self._progress.moving.moved()
                self._write_rows(messages)
            elif time.monotonic() > deadline:
                raise ReplayFailed(f"no progress for {NO_PROGRESS_SECONDS_MAX} s at offset {self._position} of {end}")
            self._report()
        reached = msgspec.structs.replace(self._goal, meta=self._meta)
        self._store.write({}, reached)
        return Replayed(self._rows, reached)

    def _report(self) -> None:
        now, progress = time.monotonic(), self._progress
        self._restored.inc(self._rows - progress.rows)
        progress.rows = self._rows
        progress.left_records = max(0, self._goal.changelog_offset - self._position)
        progress.seconds = now - self._began_at
        if now - self._reported_at >= REPORT_SECONDS:
            self._reported_at = now
            log.info(
                "restoring",
                partition=self._partition,
                rows=self._rows,
                left_records=progress.left_records,
                rows_per_second=progress.rows_per_second,
            )

    def _write_rows(self, messages: list[Message]) -> None:
        rows: dict[bytes, bytes | None] = {}
        for message in messages:
            self._position = _offset_after(message)
            if message.error() is not None:
                continue
            key, value = message.key(), message.value()
            if key == META_KEY:
                self._meta = decode_meta(value) if value is not None else self._meta
                if self._rows + len(rows) - self._rows_at_position >= POSITION_EVERY_ROWS:
                    self._note_position(rows)
                    rows = {}
            elif key is not None:
                rows[key] = value
        # Without the position: rows ahead of it do no harm, it ahead of them would.
        self._store.write(rows, None)
        self._rows += len(rows)
        self._crash_points.reach("replaying")

    def _note_position(self, rows: dict[bytes, bytes | None]) -> None:
        """The end of a commit: everything up to here can be relied on, though it is only as current as it was before."""
        position = LocalMeta(self._meta, self._position, self._stands.current_ms)
        self._store.write(rows, position)
        self._rows += len(rows)
        self._rows_at_position = self._rows
        self._crash_points.reach("position_noted")


def _offset_after(message: Message) -> int:
    error = message.error()
    offset: int = message.offset() or 0
    if error is None:
        return offset + 1
    if error.code() == KafkaError._PARTITION_EOF:
        return offset
    raise KafkaException(error)
