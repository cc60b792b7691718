"""Failures: the errors of an application, one class for each reaction of the runtime."""

from typing import Final

from services.processor.engine.record import Record
from services.processor.engine.state.local import StoreFailed
from services.processor.engine.state.rows import NewerFormat


class ApplicationFailed(RuntimeError):
    """The application failed on one record or row. Call `Core.retry` with it and give the records again."""


class FoldFailed(ApplicationFailed):
    """The application raised on a record."""

    def __init__(self, record: Record, error: Exception) -> None:
        super().__init__(f"{record.topic}/{record.partition}/{record.offset}: {type(error).__name__}: {error}")
        self.record = record


class FireFailed(ApplicationFailed):
    """The application raised on a row that was due, could not decode it, or left it due."""

    def __init__(self, store: str, row_key: bytes, error: Exception) -> None:
        super().__init__(f"store {store}, row {row_key[1:]!r}: {type(error).__name__}: {error}")
        self.row_key = row_key


class RowUnstorable(ApplicationFailed):
    """A changed row cannot be stored: it is too large, or it cannot be encoded."""

    def __init__(self, store: str, row_key: bytes, why: str) -> None:
        super().__init__(f"store {store}, row {row_key[1:]!r}: {why}")
        self.row_key = row_key


class ReleaseBroken(RuntimeError):
    """A new version of the application fails on many keys: stop, and correct it. Nothing since the last commit may be committed."""


#: What an application's code may raise without being at fault: nothing is rejected for it.
NOT_THE_APPLICATION: Final = (StoreFailed, NewerFormat, ReleaseBroken)
