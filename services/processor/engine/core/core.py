"""Core: one application at work on one partition. Records and time in, checkpoints out; making them durable is not its business.

A checkpoint is all that must become durable together. The core folds on while one is in flight; when that one fails, both
it and everything since are dropped, and the records are to be given again from `next_offset`.
"""

from collections.abc import Mapping, Sequence

from services.processor.engine.application.access import Found, ask, look
from services.processor.engine.application.application import Application, Lookup
from services.processor.engine.application.failures import (
    NOT_THE_APPLICATION,
    ApplicationFailed,
    FireFailed,
    FoldFailed,
)
from services.processor.engine.application.media_requests import MediaOutcome, MediaRequest
from services.processor.engine.application.requests import Query
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.event_time import EventTimes
from services.processor.engine.core.quarantine import Quarantine
from services.processor.engine.core.row_callbacks import RowCallbacks
from services.processor.engine.record import Record
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import LocalStore
from services.processor.engine.state.rows import Meta
from shared.codec import Undecodable

#: Timers fired in one checkpoint, and so at once, at the most: an outage of ten minutes must not make one transaction of a
#: million rows, and nothing else is done meanwhile.
FIRED_MAX = 1_000
CACHE_ROWS_MAX = 50_000
CACHE_BYTES_MAX = 32 * 1024 * 1024
DIRTY_BYTES_MAX = 32 * 1024 * 1024


class Core:
    """One application on one partition."""

    def __init__(self, application: Application, partition: int, local: LocalStore) -> None:
        """Begins where `local` stands. Raises `NewerFormat` when a newer version of the application wrote it."""
        stored = local.position()
        meta = stored.meta if stored is not None else None
        self._application = application
        self._event_times = None if application.event_time is None else EventTimes(application.event_time)
        self._cache = Cache(rows_max=CACHE_ROWS_MAX, bytes_max=CACHE_BYTES_MAX)
        self._layers = Layers(application.stores, local, self._cache)
        self._context = CoreContext(application, partition, self._layers)
        self._specs = {spec.id: spec for spec in application.stores}
        self._committed = meta or Meta(next_offsets={}, clock_ms=0, commit_number=0)
        self._row_formats = application.row_formats(self._committed)
        self._dirty_bytes_max = DIRTY_BYTES_MAX
        self._in_flight: Meta | None = None
        self._quarantine = Quarantine(application.name, partition)
        self._begin(self._committed)
        self._processor = application.start(self._context)
        self._row_callbacks = RowCallbacks(
            application,
            self._processor,
            self._context,
            self._layers,
            quarantine=self._quarantine,
            note_failure=self._note_failure,
        )

    def _begin(self, meta: Meta) -> None:
        self._next_offsets = dict(meta.next_offsets)
        self._context.clock_ms = meta.clock_ms
        self._layers.counts.update({spec_id: meta.rows.get(spec_id, 0) for spec_id in self._specs})
        #: Where the clock is to be; ahead of it only while more is due than one checkpoint may fire.
        self._target_ms = meta.clock_ms
        self._is_behind = False
        #: The clock as it was last cut.
        self._cut_clock_ms = meta.clock_ms
        self._commit_number = meta.commit_number
        self._context.tallies = {name: meta.tallies.get(name, 0) for name in self._application.tallies}
        self._quarantine.begin(meta.failed_at)
        self._context.pending_media.find()
        self._context.open_anew()

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970."""
        return self._context.clock_ms

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
        return bool(self._context.draft.records or self._context.draft.outputs or self._layers.dirty_rows)

    @property
    def is_full(self) -> bool:
        """Whether this checkpoint must be cut before another record is taken: timers wait, or its bytes are many."""
        return self._context.clock_ms < self._target_ms or self.dirty_bytes >= self._dirty_bytes_max

    @property
    def dirty_rows(self) -> int:
        """Rows changed since the last cut."""
        return self._layers.dirty_rows

    @property
    def dirty_bytes(self) -> int:
        """About the bytes of the next checkpoint: its rows as last stored, the records they grew by, its outputs."""
        return self._layers.dirty_bytes + self._context.draft.bytes

    @property
    def rows(self) -> dict[str, int]:
        """Rows that stand, by the name of their store."""
        return {spec.name: self._layers.counts[spec.id] for spec in self._application.stores}

    @property
    def tallies(self) -> dict[str, int]:
        """The numbers that the application keeps, as they are now."""
        return dict(self._context.tallies)

    @property
    def waiting_timers(self) -> int:
        """Timers that are due and wait for the next checkpoint."""
        return self._layers.waiting_timers(self._target_ms)

    def look(self, lookup: Lookup, key: bytes) -> Found:
        """Answers a question from the rows as they are now. Raises `LookFailed`, `StoreFailed` or `NewerFormat`."""
        return look(self._layers, lookup, key)

    def ask(self, query: Query, subject: bytes) -> bytes | None:
        """Answers a question from committed rows alone. Raises as `look` does."""
        return ask(self._layers, query, subject)

    @property
    def unflushed_bytes(self) -> int:
        """Committed bytes that the local store does not have yet."""
        return self._layers.committed_bytes

    def limit(self, *, cache_rows_max: int, cache_bytes_max: int, dirty_bytes_max: int) -> None:
        """From now on so many decoded rows are kept (see `engine.cache`), and the core `is_full` at so many `dirty_bytes`."""
        self._cache.limit(rows_max=cache_rows_max, bytes_max=cache_bytes_max)
        self._dirty_bytes_max = dirty_bytes_max

    def fold(self, records: Sequence[Record]) -> int:
        """Folds records in order and returns how many it took: all, or fewer when `is_full`.

        A record before the next offset was folded already and is passed over. Raises `ApplicationFailed`, `TooManyFailed`;
        `NewerFormat` on a row that a newer version wrote; and, from the local store, `StoreFailed`.
        """
        event_times, draft, next_offsets = self._event_times, self._context.draft, self._next_offsets
        fold = self._processor.fold if event_times is None else self._fold_in_event_time
        quarantined, suspects = self._quarantine.records, self._quarantine.suspects
        # What the last checkpoint had no room for comes first: no record may overtake a timer.
        if not self.advance_to(self._target_ms):
            return 0
        room_bytes = self._dirty_bytes_max - self.dirty_bytes
        taken = folded = folded_bytes = 0
        # What every record costs is paid here: the loop does nothing that can be done once for all of them.
        try:
            for record in records:
                offset, topic = record.offset, record.topic
                if offset < next_offsets.get(topic, 0):
                    taken += 1
                    continue
                if folded_bytes >= room_bytes:
                    return taken
                is_quarantined = quarantined and (topic, offset) in quarantined
                at_ms = record.timestamp_ms if event_times is None else self._time_of(record, bool(is_quarantined))
                if at_ms > self._target_ms and not self.advance_to(at_ms):
                    return taken
                try:
                    if is_quarantined:
                        self._reject(record, "fold_failed", "the application raised on it")
                        self._note_failure()
                    else:
                        fold(record)
                        if suspects:
                            self._layers.check(suspects)
                except Undecodable as error:
                    self._reject(record, "undecodable", str(error))
                except NOT_THE_APPLICATION:
                    raise
                except Exception as error:
                    raise FoldFailed(record, error) from error
                next_offsets[topic] = offset + 1
                taken += 1
                folded += 1
                folded_bytes += len(record.value or b"")
        finally:
            draft.records += folded
            draft.bytes += folded_bytes
        return taken

    def _time_of(self, record: Record, is_quarantined: bool) -> int:
        assert self._event_times is not None
        return self._target_ms if is_quarantined else self._event_times.of(record, self._target_ms)

    def _fold_in_event_time(self, record: Record) -> None:
        assert self._event_times is not None
        self._context.is_late = self._event_times.is_late(self._context.clock_ms)
        self._processor.fold(record)

    def advance_to(self, clock_ms: int) -> bool:
        """Lets the clock run to `clock_ms`; what is due on the way fires, each with the clock at its own deadline.

        So the result does not depend on the steps in which the clock is moved. False when more is due than this checkpoint
        may fire: the clock then lags; cut, and call again.
        """
        self._target_ms = max(self._target_ms, clock_ms)
        if self._layers.next_due_ms() <= self._target_ms:
            limit = FIRED_MAX - self._context.draft.fired
            for key, deadline_ms in self._layers.due(self._target_ms, limit, self._quarantine.rows):
                self._context.draft.fired += 1
                self._context.clock_ms = max(self._context.clock_ms, deadline_ms)
                self._row_callbacks.fire(key, deadline_ms)
            if self._layers.next_due_ms() <= self._target_ms:
                self._is_behind = True
                return False
        self._context.clock_ms = self._target_ms
        self._is_behind = False
        return True

    @property
    def media_requests(self) -> Mapping[bytes, MediaRequest]:
        """What is to be stored, by key. It may not be committed yet: who works it may do so in vain, and again."""
        return self._context.pending_media.requests

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome) -> None:
        """A request was worked. One that does not stand any more (it was dropped with its checkpoint) is passed over.

        Raises `ApplicationFailed` and what `fold` raises from the local store.
        """
        if self.media_requests.get(key) == request:
            self._row_callbacks.media_done(key, request, outcome)

    def _reject(self, record: Record, reason: str, detail: str) -> None:
        origin = f"{record.topic}/{record.partition}/{record.offset}"
        self._context.draft.reject(record.key or b"", record.value or b"", reason, detail, origin)

    def _note_failure(self) -> None:
        self._quarantine.note(sum(self._next_offsets.values()))

    def quarantine(self, failure: ApplicationFailed) -> None:
        """Aborts; what failed is from now on rejected, with its bytes and the reason, when its turn comes."""
        self.abort()
        self._quarantine.add(failure)
        if isinstance(failure, FireFailed):
            # Its timer was taken, and the row was not changed: the abort knows nothing of it.
            self._layers.rearm(failure.row_key)

    def cut(self) -> Checkpoint:
        """Everything since the last cut, to be made durable; the core may fold on meanwhile. One in flight at a time.

        Raises `RowRefused` when a row cannot be stored.
        """
        if self._in_flight is not None:
            raise RuntimeError("a checkpoint is in flight")
        clock_ms = self._context.clock_ms
        if self._is_behind:
            # Of timers with one deadline, some may have fired and some not: a takeover begins before those that did not.
            # Never before the last cut: a flush that ended late brings back index entries that have fired since.
            clock_ms = max(self._cut_clock_ms, min(clock_ms, self._layers.next_due_ms() - 1))
        self._cut_clock_ms = clock_ms
        number, context = self._commit_number + 1, self._context
        meta = Meta(
            dict(self._next_offsets),
            clock_ms,
            number,
            store_formats=self._row_formats,
            failed_at=self._quarantine.failed_at,
            rows=dict(self._layers.counts),
            tallies=dict(context.tallies),
        )
        rows = self._layers.cut()
        draft = context.open_anew()
        self._in_flight = meta
        self._commit_number = number
        return Checkpoint(rows, draft.outputs, meta, draft.records, draft.rejected)

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
