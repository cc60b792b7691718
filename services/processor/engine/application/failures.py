"""What an application can do wrong, by what must follow: set one record or row aside, or stop before many are."""

from typing import Final

from services.processor.engine.record import Record
from services.processor.engine.state.local import StoreFailed
from services.processor.engine.state.rows import NewerFormat

#: Of the last so many offsets of a partition ...
FAILED_WINDOW_RECORDS: Final = 1_000
#: ... so many records or rows may be rejected because the application raised. More, and it is the application that is
#: broken: going on would drain the input into topic `rejected`.
FAILED_MAX: Final = 50


class ApplicationFailed(RuntimeError):
    """The application failed on one record or row. Call `Core.quarantine` with it and give the records again."""


class FoldFailed(ApplicationFailed):
    """The application raised on a record."""

    def __init__(self, record: Record, error: Exception) -> None:
        super().__init__(f"{record.topic}/{record.partition}/{record.offset}: {type(error).__name__}: {error}")
        self.record = record


class FireFailed(ApplicationFailed):
    """The application raised on a row that was due, could not decode it, or left it due."""

    def __init__(self, store: str, row_key: bytes, deadline_ms: int, error: Exception) -> None:
        super().__init__(f"store {store}, row {row_key[1:]!r}: {type(error).__name__}: {error}")
        self.row_key = row_key
        self.deadline_ms = deadline_ms


class RowRefused(ApplicationFailed):
    """A changed row cannot be stored: it is too large, or it cannot be encoded."""

    def __init__(self, store: str, row_key: bytes, why: str) -> None:
        super().__init__(f"store {store}, row {row_key[1:]!r}: {why}")
        self.row_key = row_key


class TooManyFailed(RuntimeError):
    """The application fails on more than a few records: stop, and mend it. Nothing since the last commit may be committed."""


#: What may come out of an application's code without the application being at fault: nothing is rejected for it.
NOT_THE_APPLICATION: Final = (StoreFailed, NewerFormat, TooManyFailed)
