"""Folding: gives records to the application and advances the clock, up to the limits of one checkpoint."""

from collections.abc import Sequence
from typing import Final

from services.processor.engine.application.application import Application, Processor
from services.processor.engine.core.attempts import Attempts
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.event_time import EventTimes
from services.processor.engine.core.handing_on import HandingOn
from services.processor.engine.core.position import Position
from services.processor.engine.core.quarantine import Quarantine
from services.processor.engine.core.row_callbacks import RowCallbacks
from services.processor.engine.record import Record
from services.processor.engine.state.failures import NOT_THE_APPLICATION, FoldFailed
from services.processor.engine.state.layers import Layers
from shared.codec import Undecodable

#: At most this many timers fire in one checkpoint: an outage of ten minutes must not make one transaction of a million rows. While
#: they fire, nothing else is done.
FIRED_MAX: Final = 1_000
DIRTY_BYTES_MAX: Final = 32 * 1024 * 1024
#: Changed rows after which no further timer fires in this checkpoint: an owner that ends deletes all its entries.
FIRED_ROWS_MAX: Final = 20_000


class Folding:
    """The work of one core between two cuts."""

    def __init__(
        self,
        application: Application,
        processor: Processor,
        context: CoreContext,
        layers: Layers,
        position: Position,
        *,
        quarantine: Quarantine,
        attempts: Attempts,
        row_callbacks: RowCallbacks,
        handing_on: HandingOn | None = None,
    ) -> None:
        self._event_times = None if application.event_time is None else EventTimes(application.event_time)
        self._processor = processor
        self._handing_on = handing_on
        self._context = context
        self._layers = layers
        self._position = position
        self._quarantine = quarantine
        self._attempts = attempts
        self._row_callbacks = row_callbacks
        #: What each record is given to: with as few calls as it takes.
        self._fold_own = processor.fold if self._event_times is None else self._fold_in_event_time
        self._fold = self._fold_own if handing_on is None else self._fold_or_hand_on
        #: At so many `dirty_bytes` the checkpoint must be cut.
        self.dirty_bytes_max = DIRTY_BYTES_MAX
        #: Timers that fire in one checkpoint.
        self.fired_max = FIRED_MAX

    @property
    def dirty_bytes(self) -> int:
        """About the bytes of the next checkpoint: its rows as last stored, the records they grew by, its outputs."""
        return self._layers.dirty_bytes + self._context.draft.bytes

    @property
    def is_at_limit(self) -> bool:
        """Whether the checkpoint has so many bytes that it must be cut."""
        return self.dirty_bytes >= self.dirty_bytes_max

    def fold(self, records: Sequence[Record]) -> int:
        """Folds records in order and returns how many it took: all, or fewer when `is_full`.

        A record before the next offset was folded already and is passed over. Raises `ApplicationFailed`, `ReleaseBroken`;
        `NewerFormat` on a row that a newer version wrote; and, from the local store, `StoreFailed`.
        """
        position, event_times, draft = self._position, self._event_times, self._context.draft
        # What the last checkpoint had no room for comes first: no record may overtake a timer.
        if not self.advance_to(position.target_ms):
            return 0
        if self._attempts.is_on(position.total):
            return self._fold_carefully(records)
        fold = self._fold
        next_offsets, quarantined = position.next_offsets, self._quarantine.keys
        room_bytes = self.dirty_bytes_max - self.dirty_bytes
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
                is_quarantined = quarantined and record.key in quarantined
                at_ms = record.timestamp_ms if event_times is None else self._time_of(record, bool(is_quarantined))
                if at_ms > position.target_ms and not self.advance_to(at_ms):
                    return taken
                try:
                    if is_quarantined:
                        self._reject_quarantined(record)
                    else:
                        fold(record)
                except Undecodable as error:
                    self._attempts.take_undecodable(record, error)
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

    def _fold_carefully(self, records: Sequence[Record]) -> int:
        """As `fold`, but each record alone: one on which the application raises is rejected at once."""
        position, event_times, draft = self._position, self._event_times, self._context.draft
        fold = self._fold
        for taken, record in enumerate(records):
            if record.offset < position.next_offsets.get(record.topic, 0):
                continue
            if self.dirty_bytes >= self.dirty_bytes_max and draft.records:
                return taken
            is_quarantined, failed = record.key in self._quarantine.keys, None
            try:
                at_ms = record.timestamp_ms if event_times is None else self._time_of(record, is_quarantined)
            except FoldFailed as error:
                at_ms, failed = position.target_ms, error
            if at_ms > position.target_ms and not self.advance_to(at_ms):
                return taken
            # A row that fired may have been quarantined with its key.
            if record.key in self._quarantine.keys:
                self._reject_quarantined(record)
            elif failed is not None:
                self._attempts.reject(record, failed, position.total)
            else:
                self._attempts.fold(record, fold, position.total)
            position.next_offsets[record.topic] = record.offset + 1
            draft.records += 1
            draft.bytes += len(record.value or b"")
        return len(records)

    def _reject_quarantined(self, record: Record) -> None:
        if self._quarantine.forgets(record):
            self._quarantine.forget(record.key or b"", self._attempts.attempt)
        else:
            self._quarantine.reject(record)

    def _time_of(self, record: Record, is_quarantined: bool) -> int:
        assert self._event_times is not None
        target_ms = self._position.target_ms
        return target_ms if is_quarantined else self._event_times.of(record, target_ms)

    def _fold_in_event_time(self, record: Record) -> None:
        assert self._event_times is not None
        self._context.is_late = self._event_times.is_late(self._context.clock_ms)
        self._processor.fold(record)

    def _fold_or_hand_on(self, record: Record) -> None:
        assert self._handing_on is not None
        if not self._handing_on.takes(record):
            self._fold_own(record)

    def advance_to(self, clock_ms: int) -> bool:
        """Advances the clock to `clock_ms`. Rows that become due fire, each with the clock at its own deadline.

        So the result does not depend on the steps in which the clock is moved. False when more is due than this checkpoint
        may fire, by number or by bytes: the clock then lags; cut, and call again.
        """
        position, context, layers = self._position, self._context, self._layers
        position.target_ms = max(position.target_ms, clock_ms)
        if layers.next_due_ms() <= position.target_ms:
            at = position.total
            for key, deadline_ms in layers.due(position.target_ms, self.fired_max - context.draft.fired):
                context.draft.fired += 1
                context.clock_ms = max(context.clock_ms, deadline_ms)
                self._row_callbacks.fire(key, deadline_ms, at)
                if self.dirty_bytes >= self.dirty_bytes_max or layers.dirty_rows >= FIRED_ROWS_MAX:
                    break
            if layers.next_due_ms() <= position.target_ms:
                position.is_behind = True
                return False
        context.clock_ms = position.target_ms
        position.is_behind = False
        return True
