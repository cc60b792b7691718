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

T = TypeVar("T")


def place_of(cursor: str) -> Place | None:
    """The place that a cursor names; None without one. Raises `Refused`."""
    try:
        place = pages.place_of(cursor)
    except CursorWrong:
        fault = Fault("`next` of the page before", parameter="cursor")
        raise Refused(Problem(400, "A parameter is wrong", "parameter", errors=[fault])) from None
    return None if place is None else (_EPOCH + place[0] * _UNIT, place[1])


def cut(rows: Sequence[T], rows_max: int, place: Callable[[T], Place]) -> tuple[list[T], str | None]:
    """The rows of a page, of at least one more than it has where there are more; and the next page's cursor."""

    def key(row: T) -> str:
        at, row_id = place(row)
        return pages.timed_key((at - _EPOCH) // _UNIT, row_id)

    return pages.cut(rows, rows_max, key)
