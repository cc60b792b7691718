"""Attempts: processes one record or row at a time, so that a failing one is undone and rejected alone.

This mode costs several times as much, so the core enters it only after a failure. It then drops the checkpoint, folds the same
records again in this mode, and stays in it for a while.
"""

from collections.abc import Callable
from typing import Any, Final

from services.processor.engine.application.application import Application, Processor, ReleasingRows
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.quarantine import ROWS_PER_KEY_FOUND_MAX, Quarantine
from services.processor.engine.record import Record
from services.processor.engine.state.failures import (
    NOT_THE_APPLICATION,
    ApplicationFailed,
    FireFailed,
    RowUnstorable,
)
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.rows import unpack
from services.processor.engine.state.store_spec import StoreSpec
from shared.codec import Undecodable

#: For so many records after a failure every one is folded alone: a client whose records fail has more of them.
CAREFUL_RECORDS: Final = 1_000


class Attempts:
    """The careful way of working of one core."""

    def __init__(
        self,
        application: Application,
        processor: Processor,
        context: CoreContext,
        layers: Layers,
        quarantine: Quarantine,
    ) -> None:
        self._application = application
        self._processor = processor
        self._context = context
        self._layers = layers
        self._quarantine = quarantine
        #: The core works so until its next offsets add up to this.
        self._until = 0
        #: Keys of rows that are worked so whenever their turn comes.
        self.rows: set[bytes] = set()

    def is_on(self, at: int) -> bool:
        """Whether the core works so where its next offsets add up to `at`."""
        return at < self._until

    def begin(self, failure: ApplicationFailed, at: int) -> None:
        """The application failed before the core's next offsets added up to `at`: from now on the core works so."""
        self._until = max(self._until, at + CAREFUL_RECORDS)
        if isinstance(failure, FireFailed | RowUnstorable):
            self.rows.add(failure.row_key[1:])

    def attempt(self, work: Callable[[], None]) -> Exception | None:
        """Calls `work`; if it fails, drops what it changed and returns what it raised. Raises what is not the application's."""
        layers, context = self._layers, self._context
        layers.seal()
        context.mark()
        try:
            work()
            layers.seal()
        except NOT_THE_APPLICATION:
            raise
        except Exception as error:  # noqa: BLE001  (for any error of the application its record or row is rejected for it)
            layers.undo()
            context.undo()
            return error
        return None

    def fold(self, record: Record, fold: Callable[[Record], None], at: int) -> None:
        """Folds a record, or rejects it."""
        error = self.attempt(lambda: fold(record))
        if isinstance(error, Undecodable):
            self.take_undecodable(record, error)
        elif error is not None:
            self.reject(record, error, at)

    def take_undecodable(self, record: Record, error: Undecodable) -> None:
        """Rejects a record that the application cannot read, unless it deletes what is held of its key."""
        if self._quarantine.forgets(record):
            self._quarantine.forget(record.key or b"", self.attempt)
        else:
            self._context.reject(record, "undecodable", str(error))

    def reject(self, record: Record, error: Exception, at: int) -> None:
        """Rejects a record on which the application raised `error`."""
        self._until = max(self._until, at + CAREFUL_RECORDS)
        self._context.reject(record, "fold_failed", f"{type(error).__name__}: {error}")
        self._quarantine.note(record.key or b"", at, error, self.attempt)

    def call(self, spec: StoreSpec[Any], row_key: bytes, call: Callable[[], None], at: int) -> None:
        """Makes a callback about a row, or rejects the row."""
        self.rows.discard(row_key[1:])
        error = self.attempt(call)
        if error is None:
            return
        self._until = max(self._until, at + CAREFUL_RECORDS)
        self._reject_row(spec, row_key, error)
        self._quarantine.note(spec.record_key_of(row_key[1:]), at, error, self.attempt)

    def _reject_row(self, spec: StoreSpec[Any], row_key: bytes, error: Exception) -> None:
        """The row, and with it what belongs to it."""
        processor = self._processor
        if isinstance(processor, ReleasingRows):
            # Where this fails too, it is done without.
            self.attempt(lambda: processor.release(spec, row_key[1:]))
        for other in self._application.stores:
            if spec.name not in {other.name, other.goes_with}:
                continue
            for of_other in self._rows_with(other, row_key[1:]):
                payload = unpack(self._layers.discard(of_other))[2]
                if other is self._application.media:
                    self._context.pending_media.forget(row_key[1:])
                detail = f"{type(error).__name__}: {error}"
                self._context.reject_row(other, of_other[1:], payload, "fire_failed", detail)

    def _rows_with(self, spec: StoreSpec[Any], key: bytes) -> list[bytes]:
        """The keys of the row of `key` in a store, if there is one; of a map, of all entries of that owner."""
        if isinstance(spec, MapSpec):
            return self._layers.keys(spec.row_key(key, b""), ROWS_PER_KEY_FOUND_MAX)
        row_key = bytes([spec.id]) + key
        return [row_key] if self._layers.stands(row_key) else []
