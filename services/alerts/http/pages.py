"""Pages of lists that go by time and id, the newest first. Of equal times none is lost between two pages."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from services.accounts.core import pages
from services.accounts.core.pages import CursorWrong
from services.rim.http.problems import Refused
from shared.http.problems import Fault, Problem

#: The time and the id of a row, after which a page begins.
Place = tuple[datetime, str]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: As Postgres keeps times.
_UNIT: Final = timedelta(microseconds=1)
_DIGITS_MAX: Final = 16

T = TypeVar("T")


def place_of(cursor: str) -> Place | None:
    """The place that a cursor names; None without one. Raises `Refused`."""
    if not cursor:
        return None
    try:
        time, _, row_id = pages.key_of(cursor).partition(" ")
        if not (time.isascii() and time.isdigit() and len(time) <= _DIGITS_MAX):
            raise CursorWrong
    except CursorWrong:
        fault = Fault("`next` of the page before", parameter="cursor")
        raise Refused(Problem(400, "A parameter is wrong", "parameter", errors=[fault])) from None
    return _EPOCH + int(time) * _UNIT, row_id


def cut(rows: Sequence[T], rows_max: int, place: Callable[[T], Place]) -> tuple[list[T], str | None]:
    """The rows of a page, of at least one more than it has where there are more; and the next page's cursor."""

    def key(row: T) -> str:
        at, row_id = place(row)
        return f"{(at - _EPOCH) // _UNIT} {row_id}"

    return pages.cut(rows, rows_max, key)
