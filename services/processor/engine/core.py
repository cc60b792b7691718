"""Core: one application at work on one partition. Records and time in, checkpoints out; making them durable is not its business.

A checkpoint is all that must become durable together. The core folds on while one is in flight; when that one fails, both
it and everything since are dropped, and the records are to be given again from `position`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from services.processor.engine.application import Application, EventTime, Lookup, Row, StoreSpec
from services.processor.engine.failures import (
    FAILED_MAX,
    FAILED_WINDOW_RECORDS,
    ApplicationFailed,
    FireFailed,
    FoldFailed,
    RowRefused,
    TooManyFailed,
)
from services.processor.engine.layers import Entry, Layers
from services.processor.engine.local import LocalStore, StoreFailed
from services.processor.engine.record import Output, Record
from services.processor.engine.rows import Meta, NewerFormat
from shared.codec import Undecodable
from shared.topics import RECORD_BYTES_MAX, REJECTED, Topic

#: Timers fired in one checkpoint at the most: an outage of ten minutes must not make one transaction of a million rows.
FIRED_MAX = 5_000
CACHE_ROWS_MAX = 50_000
DIRTY_BYTES_MAX = 32 * 1024 * 1024
_DETAIL_CHARACTERS_MAX = 1_000
#: What may come out of a fold without its record being at fault: nothing is set aside for it.
_NOT_THE_APPLICATION = (StoreFailed, NewerFormat, TooManyFailed)


class LookFailed(RuntimeError):
    """The application raised on a question."""


class Found(msgspec.Struct, frozen=True):
    """What a lookup found: JSON, or None. `is_committed` is false when a row it read, or missed, is not committed yet."""

    json: bytes | None
    is_committed: bool


class Checkpoint(msgspec.Struct, frozen=True):
    """All that must become durable together. `changes` maps row keys to rows; None is a tombstone."""

    changes: dict[bytes, bytes | None]
    outputs: list[Output]
    meta: Meta
    #: Records folded into it, and how many of these were set aside by reason.
    records: int
    rejected: dict[str, int]


class BoundStore:
    """The `Store` of one spec over a core's layers."""

    def __init__(self, spec: StoreSpec[Any], core: "Core", layers: Layers) -> None:
        self._prefix = bytes([spec.id])
        self._core = core
        self._layers = layers

    def get(self, key: bytes) -> Any:
        entry = self._layers.entry(self._prefix + key)
        return None if entry is None else entry.row

    def put(self, key: bytes, row: Any, deadline_ms: int = 0) -> None:
        # A deadline in the past fires with the next millisecond. So of what is committed none is due at its clock, and
        # a takeover need not look at timers before it.
        if 0 < deadline_ms <= self._core.clock_ms:
            deadline_ms = self._core.clock_ms + 1
        self._layers.put(self._prefix + key, row, deadline_ms)

    def deadline_ms(self, key: bytes) -> int:
        entry = self._layers.entry(self._prefix + key)
        return 0 if entry is None else entry.deadline_ms

    def delete(self, key: bytes) -> None:
        self._layers.delete(self._prefix + key)


class Reading:
    """The `Rows` of one lookup; remembers whether all that it read is committed."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self.is_committed = True

    def get(self, spec: StoreSpec[Row], key: bytes) -> Row | None:
        entry, is_committed = self._layers.look(bytes([spec.id]) + key)
        self.is_committed = self.is_committed and is_committed
        return None if entry is None else entry.row


class Core:
    """One application on one partition; also the `Context` of its processor."""

    def __init__(self, application: Application, partition: int, local: LocalStore) -> None:
        """Begins where `local` stands. Raises `NewerFormat` when a newer version of the application wrote it."""
        stored = local.position()
        meta = stored.meta if stored is not None else None
        self._application = application
        self._event_time = application.event_time
        self._partition = partition
        self._layers = Layers(application.stores, local, cache_rows_max=CACHE_ROWS_MAX)
        self._specs = {spec.id: spec for spec in application.stores}
        self._committed = meta or Meta(next_offsets={}, clock_ms=0, commit_number=0)
        self._store_formats = _store_formats(self._committed, application.stores)
        self._dirty_bytes_max = DIRTY_BYTES_MAX
        self._in_flight: Meta | None = None
        #: Records by topic and offset, rows by key and deadline that are set aside when their turn comes.
        self._quarantined: set[tuple[str, int]] = set()
        self._quarantined_rows: set[tuple[bytes, int]] = set()
        #: Rows that could not be stored: whatever changes one is looked at.
        self._suspects: set[bytes] = set()
        self._begin(self._committed)
        self._processor = application.start(self)

    def _begin(self, meta: Meta) -> None:
        self._next_offsets = dict(meta.next_offsets)
        self._clock_ms = meta.clock_ms
        self._layers.counts.update({spec_id: meta.rows.get(spec_id, 0) for spec_id in self._specs})
        #: Where the clock is to be; ahead of it only while more is due than one checkpoint may fire.
        self._target_ms = meta.clock_ms
        self._commit_number = meta.commit_number
        self._failed_at = list(meta.failed_at)
        self._open_anew()

    def _open_anew(self) -> None:
        self._outputs: list[Output] = []
        self._records = 0
        self._rejected: dict[str, int] = {}
        self._fired = 0
        self._is_late = False
        self._event_ms = 0
        self._refusal = ""
        #: Bytes of the records folded and of the outputs.
        self._taken_bytes = 0

    # What the processor sees.

    @property
    def partition(self) -> int:
        return self._partition

    @property
    def clock_ms(self) -> int:
        return self._clock_ms

    @property
    def is_late(self) -> bool:
        return self._is_late

    def store(self, spec: StoreSpec[Row]) -> BoundStore:
        if self._specs.get(spec.id) is not spec:
            raise ValueError(f"application {self._application.name} has not declared store {spec.name}")
        return BoundStore(spec, self, self._layers)

    def emit(self, topic: Topic, key: bytes, value: bytes, headers: tuple[tuple[str, bytes], ...] = ()) -> None:
        if len(value) > RECORD_BYTES_MAX:
            raise ValueError(
                f"an output to {topic.name} has {len(value)} bytes; at most {RECORD_BYTES_MAX} can be stored"
            )
        self._outputs.append(Output(topic.name, key, value, headers))
        self._taken_bytes += len(key) + len(value)

    # What the runtime drives.

    @property
    def committed(self) -> Meta:
        """Where the core stands durably."""
        return self._committed

    def next_offset(self, topic: str) -> int | None:
        """The next offset to fold; None before the first record of a new partition."""
        return self._next_offsets.get(topic)

    @property
    def is_dirty(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._records or self._outputs or self._layers.dirty_rows)

    @property
    def is_full(self) -> bool:
        """Whether this checkpoint must be cut before another record is taken: timers wait, or its bytes are many."""
        return self._clock_ms < self._target_ms or self.dirty_bytes >= self._dirty_bytes_max

    @property
    def dirty_rows(self) -> int:
        """Rows changed since the last cut."""
        return self._layers.dirty_rows

    @property
    def dirty_bytes(self) -> int:
        """About the bytes of the next checkpoint: its rows as last stored, the records they grew by, its outputs."""
        return self._layers.dirty_bytes + self._taken_bytes

    @property
    def rows(self) -> dict[str, int]:
        """Rows that stand, by the name of their store."""
        return {spec.name: self._layers.counts[spec.id] for spec in self._application.stores}

    @property
    def waiting_timers(self) -> int:
        """Timers that are due and wait for the next checkpoint."""
        return self._layers.waiting_timers(self._target_ms)

    def look(self, lookup: Lookup, key: bytes) -> Found:
        """Answers a question from the rows as they are now. Raises `LookFailed`, `StoreFailed` or `NewerFormat`."""
        rows = Reading(self._layers)
        try:
            return Found(lookup.answer(rows, key), rows.is_committed)
        except _NOT_THE_APPLICATION:
            raise
        except Exception as error:
            raise LookFailed(f"{lookup.path}: {key!r}: {type(error).__name__}: {error}") from error

    @property
    def unflushed_bytes(self) -> int:
        """Committed bytes that the local store does not have yet."""
        return self._layers.committed_bytes

    def limit(self, *, cache_rows_max: int, dirty_bytes_max: int) -> None:
        """From now on this many decoded rows are kept, and the core `is_full` at so many `dirty_bytes`."""
        self._layers.limit_cache(cache_rows_max)
        self._dirty_bytes_max = dirty_bytes_max

    def fold(self, records: Sequence[Record]) -> int:
        """Folds records in order and returns how many it took: all, or fewer when `is_full`.

        A record before the next offset was folded already and is passed over. Raises `ApplicationFailed`, `TooManyFailed`;
        `NewerFormat` on a row that a newer version wrote; and, from the local store, `StoreFailed`.
        """
        event_time = self._event_time
        fold = self._processor.fold if event_time is None else self._fold_in_event_time
        # What the last checkpoint had no room for comes first: no record may overtake a timer.
        if not self.advance_to(self._target_ms):
            return 0
        room_bytes = self._dirty_bytes_max - self.dirty_bytes
        folded = folded_bytes = 0
        try:
            for taken, record in enumerate(records):
                if record.offset < self._next_offsets.get(record.topic, 0):
                    continue
                if folded_bytes >= room_bytes:
                    return taken
                at_ms = record.timestamp_ms if event_time is None else self._time_of(record, event_time)
                if at_ms > self._target_ms and not self.advance_to(at_ms):
                    return taken
                try:
                    if self._quarantined and (record.topic, record.offset) in self._quarantined:
                        self._set_aside(record, "fold_failed", "the application raised on it")
                        self._note_failure()
                    else:
                        fold(record)
                        self._check_suspects()
                except Undecodable as error:
                    self._set_aside(record, "undecodable", str(error))
                except _NOT_THE_APPLICATION:
                    raise
                except Exception as error:
                    raise FoldFailed(record, error) from error
                self._next_offsets[record.topic] = record.offset + 1
                folded += 1
                folded_bytes += len(record.value or b"")
        finally:
            self._records += folded
            self._taken_bytes += folded_bytes
        return len(records)

    def _time_of(self, record: Record, event_time: EventTime) -> int:
        """The record's event time; the clock stays where it is for one that cannot be folded."""
        self._refusal = ""
        if (record.topic, record.offset) in self._quarantined:
            return self._target_ms
        try:
            self._event_ms = event_time.of(record)
        except Undecodable as error:
            self._refusal = str(error)
        except Exception as error:
            raise FoldFailed(record, error) from error
        else:
            ahead_ms = self._event_ms - record.timestamp_ms
            if ahead_ms <= event_time.ahead_ms_max:
                return self._event_ms
            self._refusal = f"its time is {ahead_ms} ms ahead of its append time"
        return self._target_ms

    def _fold_in_event_time(self, record: Record) -> None:
        if self._refusal:
            raise Undecodable(self._refusal)
        assert self._event_time is not None
        self._is_late = self._event_ms + self._event_time.grace_ms < self._clock_ms
        self._processor.fold(record)

    def advance_to(self, clock_ms: int) -> bool:
        """Lets the clock run to `clock_ms`; what is due on the way fires, each with the clock at its own deadline.

        So the result does not depend on the steps in which the clock is moved. False when more is due than this checkpoint
        may fire: the clock then lags; cut, and call again.
        """
        self._target_ms = max(self._target_ms, clock_ms)
        if self._layers.next_due_ms() <= self._target_ms:
            for key, entry in self._layers.due(self._target_ms, FIRED_MAX - self._fired):
                self._fired += 1
                self._clock_ms = max(self._clock_ms, entry.deadline_ms)
                self._fire(key, entry)
            if self._layers.next_due_ms() <= self._target_ms:
                return False
        self._clock_ms = self._target_ms
        return True

    def _fire(self, key: bytes, entry: Entry) -> None:
        deadline_ms = entry.deadline_ms
        spec = self._specs[key[0]]
        if (key, deadline_ms) in self._quarantined_rows:
            origin = f"{self._application.name}/{self._partition}/store {spec.name}"
            self._reject(key[1:], spec.encode(entry.row), "fire_failed", "the application raised on it", origin)
            self._layers.delete(key)
            self._note_failure()
            return
        try:
            self._processor.fire(spec, key[1:])
            self._check_suspects()
            now = self._layers.entry(key)
            if now is not None and now.deadline_ms == deadline_ms:
                raise RuntimeError(f"{self._application.name} left it due")
        except _NOT_THE_APPLICATION:
            raise
        except Exception as error:
            raise FireFailed(spec.name, key, deadline_ms, error) from error

    def _set_aside(self, record: Record, reason: str, detail: str) -> None:
        origin = f"{record.topic}/{record.partition}/{record.offset}"
        self._reject(record.key or b"", record.value or b"", reason, detail, origin)

    def _reject(self, key: bytes, value: bytes, reason: str, detail: str, origin: str) -> None:
        headers = (
            ("reason", reason.encode()),
            ("detail", detail[:_DETAIL_CHARACTERS_MAX].encode()),
            ("service", self._application.name.encode()),
            ("origin", origin.encode()),
        )
        self._outputs.append(Output(REJECTED.name, key, value, headers))
        self._rejected[reason] = self._rejected.get(reason, 0) + 1

    def _check_suspects(self) -> None:
        for key in self._suspects:
            self._layers.check(key)

    def _note_failure(self) -> None:
        at = sum(self._next_offsets.values())
        self._failed_at = [earlier for earlier in self._failed_at if earlier > at - FAILED_WINDOW_RECORDS] + [at]
        if len(self._failed_at) > FAILED_MAX:
            raise TooManyFailed(
                f"{self._application.name} failed on {len(self._failed_at)} of the last {FAILED_WINDOW_RECORDS} records of"
                f" partition {self._partition}; more than {FAILED_MAX} are not set aside: mend it or roll it back"
            )

    def quarantine(self, failure: ApplicationFailed) -> None:
        """Aborts; what failed is from now on set aside, with its bytes and the reason, when its turn comes."""
        self.abort()
        if isinstance(failure, FoldFailed):
            self._quarantined.add((failure.record.topic, failure.record.offset))
        elif isinstance(failure, FireFailed):
            self._quarantined_rows.add((failure.row_key, failure.deadline_ms))
            # Its timer was taken, and the row was not changed: the abort knows nothing of it.
            self._layers.rearm(failure.row_key)
        elif isinstance(failure, RowRefused):
            # Which record made it so is found out when they are given again.
            self._suspects.add(failure.row_key)

    def cut(self) -> Checkpoint:
        """Everything since the last cut, to be made durable; the core may fold on meanwhile. One in flight at a time.

        Raises `RowRefused` when a row cannot be stored.
        """
        if self._in_flight is not None:
            raise RuntimeError("a checkpoint is in flight")
        # Of timers with one deadline, some may have fired and some not: a takeover begins before those that did not.
        clock_ms = min(self._clock_ms, self._layers.next_due_ms() - 1)
        number = self._commit_number + 1
        rows = dict(self._layers.counts)
        meta = Meta(
            dict(self._next_offsets),
            clock_ms,
            number,
            store_formats=self._store_formats,
            failed_at=self._failed_at,
            rows=rows,
        )
        checkpoint = Checkpoint(self._layers.cut(), self._outputs, meta, self._records, self._rejected)
        self._in_flight = meta
        self._commit_number = number
        self._open_anew()
        return checkpoint

    def commit(self) -> None:
        """The checkpoint in flight is durable."""
        if self._in_flight is None:
            raise RuntimeError("no checkpoint is in flight")
        self._layers.commit()
        self._committed, self._in_flight = self._in_flight, None

    def abort(self) -> None:
        """The checkpoint in flight failed: it and all since are dropped. Give the records again from `next_offset`."""
        self._layers.abort()
        self._in_flight = None
        self._begin(self._committed)

    def begin_flush(self) -> tuple[dict[bytes, bytes | None], Meta]:
        """Freezes what the local store lacks and where it will stand with it; follow it by `end_flush`."""
        return self._layers.begin_flush(), self._committed

    def end_flush(self) -> None:
        """The local store has what `begin_flush` gave."""
        self._layers.end_flush()


def _store_formats(meta: Meta, stores: Sequence[StoreSpec[Any]]) -> dict[int, int]:
    """The formats that rows may have from now on, by store; raises `NewerFormat` for one that cannot be read here."""
    specs = {spec.id: spec for spec in stores}
    for store_id, row_format in meta.store_formats.items():
        if store_id not in specs:
            raise NewerFormat(f"the state has a store {store_id} that this version does not know: upgrade it")
        if not specs[store_id].reads(row_format):
            raise NewerFormat(specs[store_id].refusal(row_format))
    return {spec.id: max(spec.format, meta.store_formats.get(spec.id, 0)) for spec in stores}
