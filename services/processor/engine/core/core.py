"""Core: runs one application on one partition. Takes records and time, returns checkpoints; the runtime makes these durable.

A checkpoint is all that must become durable together. The core continues to fold while one checkpoint is in flight. If that
checkpoint fails, it and all later changes are dropped, and the caller must give the records again from `next_offset`.
"""

from collections.abc import Mapping, Sequence

from services.processor.engine.application.access import ask, look
from services.processor.engine.application.application import Application, Lookup
from services.processor.engine.application.media_requests import MediaOutcome, MediaRequest
from services.processor.engine.application.requests import Query
from services.processor.engine.application.tables import Tables, place_of
from services.processor.engine.core.attempts import Attempts
from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.folding import Folding
from services.processor.engine.core.handing_on import HandingOn
from services.processor.engine.core.position import Position
from services.processor.engine.core.quarantine import QUARANTINE, Quarantine, QuarantinedKey
from services.processor.engine.core.row_callbacks import RowCallbacks
from services.processor.engine.record import Record
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.failures import (
    ApplicationFailed,
    FireFailed,
)
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import LocalStore
from services.processor.engine.state.meta import Meta

CACHE_ROWS_MAX = 50_000
CACHE_BYTES_MAX = 32 * 1024 * 1024


class Core:
    """One application on one partition."""

    def __init__(
        self,
        application: Application,
        partition: int,
        local: LocalStore,
        *,
        partitions: int = 0,
        hands_on: bool = False,
        tables: Tables | None = None,
    ) -> None:
        """Begins at the position of `local`. Raises `NewerFormat` when a newer version of the application wrote it.

        `partitions` is their number; 0: not known here. With `hands_on`, records of keys of other partitions are produced to
        these: their number has grown, and not every producer may know. `tables` are the process's; without them they are empty.
        """
        stored = local.position()
        meta = stored.meta if stored is not None else None
        self._application = application
        self._partitions = partitions
        self._cache = Cache(rows_max=CACHE_ROWS_MAX, bytes_max=CACHE_BYTES_MAX)
        self._layers = Layers((*application.stores, QUARANTINE), local, self._cache)
        self._partition = partition
        self._tables = Tables(application.tables) if tables is None else tables
        self._context = CoreContext(application, partition, self._layers, self._tables)
        self._position = Position(meta or Meta(next_offsets={}, clock_ms=0, commit_number=0))
        #: The ids of inputs and changelog, by name: a checkpoint keeps them.
        self.topic_ids = dict(self.committed.topic_ids)
        #: The latest leader epochs of what was read, by input topic: a checkpoint keeps them.
        self.leader_epochs = dict(self.committed.leader_epochs)
        self._row_formats = application.row_formats(self.committed)
        processor = application.start(self._context)
        self._quarantine = Quarantine(application, processor, self._context, self._layers)
        self._attempts = Attempts(application, processor, self._context, self._layers, self._quarantine)
        self._row_callbacks = RowCallbacks(application, processor, self._context, self._layers, self._attempts)
        self._folding = Folding(
            application,
            processor,
            self._context,
            self._layers,
            self._position,
            quarantine=self._quarantine,
            attempts=self._attempts,
            row_callbacks=self._row_callbacks,
            handing_on=HandingOn(application, self._context, partitions) if hands_on else None,
        )
        self._begin()

    def _begin(self) -> None:
        meta, context = self.committed, self._context
        context.clock_ms = meta.clock_ms
        counts = self._layers.counts
        counts.update({store_id: meta.rows.get(store_id, 0) for store_id in counts})
        context.tallies = {name: meta.tallies.get(name, 0) for name in self._application.tallies}
        self._quarantine.begin(meta)
        context.pending_media.find()
        context.begin_checkpoint()

    @property
    def clock_ms(self) -> int:
        """The partition's clock, ms since 1970."""
        return self._context.clock_ms

    @property
    def committed(self) -> Meta:
        """The core's durable position."""
        return self._position.committed

    def next_offset(self, topic: str) -> int | None:
        """The next offset to fold; None before the first record of a new partition."""
        return self._position.next_offsets.get(topic)

    @property
    def is_dirty(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._context.draft.records or self._context.draft.outputs or self._layers.dirty_rows)

    @property
    def is_full(self) -> bool:
        """Whether this checkpoint must be cut before another record is taken: timers wait, or its bytes are many."""
        return self._context.clock_ms < self._position.target_ms or self._folding.is_at_limit

    @property
    def dirty_rows(self) -> int:
        """Rows changed since the last cut."""
        return self._layers.dirty_rows

    @property
    def dirty_bytes(self) -> int:
        """About the bytes of the next checkpoint."""
        return self._folding.dirty_bytes

    @property
    def rows(self) -> dict[str, int]:
        """Number of existing rows, by the name of their store."""
        return {spec.name: self._layers.counts[spec.id] for spec in self._application.stores}

    @property
    def tallies(self) -> dict[str, int]:
        """The numbers that the application keeps, as they are now."""
        return dict(self._context.tallies)

    @property
    def waiting_timers(self) -> int:
        """Timers that are due and wait for the next checkpoint."""
        return self._layers.waiting_timers(self._position.target_ms)

    def look(self, lookup: Lookup, key: bytes) -> bytes | None:
        """Answers a lookup from committed rows alone. Raises `LookFailed`, `StoreFailed` or `NewerFormat`."""
        return look(self._layers, lookup, key)

    def ask(self, query: Query, subject: bytes) -> bytes | None:
        """Answers a question from committed rows alone. Raises as `look` does."""
        return ask(self._layers, query, subject)

    @property
    def unflushed_bytes(self) -> int:
        """Committed bytes that the local store does not have yet."""
        return self._layers.committed_bytes

    def limit(self, *, cache_rows_max: int, cache_bytes_max: int, dirty_bytes_max: int) -> None:
        """From now on so many decoded rows are kept (see `state.cache`), and the core `is_full` at so many `dirty_bytes`."""
        self._cache.limit(rows_max=cache_rows_max, bytes_max=cache_bytes_max)
        self._folding.dirty_bytes_max = dirty_bytes_max

    def fold(self, records: Sequence[Record]) -> int:
        """Folds records in order and returns how many it took: all, or fewer when `is_full`. Raises as `Folding.fold` does."""
        return self._folding.fold(records)

    def advance_to(self, clock_ms: int) -> bool:
        """Advances the clock to `clock_ms`; False when more is due than this checkpoint may fire (`Folding.advance_to`)."""
        return self._folding.advance_to(clock_ms)

    @property
    def media_requests(self) -> Mapping[bytes, MediaRequest]:
        """What is to be stored, by key. It may not be committed yet: it may be stored in vain, and again."""
        return self._context.pending_media.requests

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome) -> None:
        """A request is done. One that is not pending any more (it was dropped with its checkpoint) is passed over.

        Raises `ApplicationFailed` and what `fold` raises from the local store.
        """
        if self.media_requests.get(key) == request:
            self._row_callbacks.media_done(key, request, outcome, self._position.total)

    def reject_of_tables(self) -> None:
        """Rejects records of global tables that are no entries: those that are this core's to reject, each once."""
        offsets = self._position.table_offsets
        for record, reason, detail in self._tables.wrong(self._partition, self._partitions or 1, offsets):
            self._context.reject(record, reason, detail)
            offsets[place_of(record)] = record.offset + 1

    # Failures of the application.

    def retry(self, failure: ApplicationFailed) -> None:
        """Aborts. When the records are given again, each is folded alone, and what failed is rejected."""
        at = self._position.total
        self.abort()
        self._attempts.begin(failure, at)
        if isinstance(failure, FireFailed):
            # Its timer was taken, and the row was not changed: the abort knows nothing of it.
            self._layers.rearm(failure.row_key)

    @property
    def quarantined(self) -> Mapping[bytes, QuarantinedKey]:
        """The quarantined keys."""
        return self._quarantine.keys

    def release(self, key: bytes) -> None:
        """Ends the quarantine of a key, with the next checkpoint. Raises KeyError when the key is not quarantined.

        Raises `ApplicationFailed` when its rows cannot be put back: the key stays quarantined.
        """
        if key not in self._quarantine.keys:
            raise KeyError(key)
        error = self._attempts.attempt(lambda: self._quarantine.release(key))
        if error is not None:
            raise ApplicationFailed(f"key {key!r} stays quarantined: {type(error).__name__}: {error}") from error

    def forget(self, key: bytes) -> None:
        """Deletes all rows of a record key, quarantined ones too, with the next checkpoint; what they counted for is undone."""
        self._quarantine.forget(key, self._attempts.attempt)

    # Checkpoints.

    def cut(self) -> Checkpoint:
        """Everything since the last cut, to be made durable; the core may fold on meanwhile. One in flight at a time.

        Raises `RowUnstorable` when a row cannot be stored.
        """
        position, context = self._position, self._context
        if position.in_flight is not None:
            raise RuntimeError("a checkpoint is in flight")
        meta = Meta(
            dict(position.next_offsets),
            position.cut_clock(context.clock_ms, self._layers.next_due_ms()),
            position.commit_number + 1,
            store_formats=self._row_formats,
            failing=self._quarantine.failing,
            rows=dict(self._layers.counts),
            tallies=dict(context.tallies),
            version=self._application.version,
            version_at=self._quarantine.version_at,
            topic_ids=dict(self.topic_ids),
            leader_epochs=dict(self.leader_epochs),
            partitions=self._partitions or self.committed.partitions,
            table_offsets=dict(position.table_offsets),
        )
        rows = self._layers.cut()
        draft = context.begin_checkpoint()
        position.begin_commit(meta)
        return Checkpoint(rows, draft.outputs, meta, draft.records, draft.rejected)

    def commit(self) -> None:
        """The checkpoint in flight is durable."""
        self._position.commit()
        self._layers.commit()

    def abort(self) -> None:
        """The checkpoint in flight failed: it and all since are dropped. Give the records again from `next_offset`."""
        self._layers.abort()
        self._position.rewind()
        self._begin()

    def begin_flush(self) -> tuple[dict[bytes, bytes | None], Meta]:
        """Freezes the rows that the local store lacks and the position it will have with them; call `end_flush` afterwards."""
        return self._layers.begin_flush(), self.committed

    def end_flush(self) -> None:
        """The local store has what `begin_flush` gave."""
        self._layers.end_flush()
