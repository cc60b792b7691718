"""Pages of lists of alerts. Of those that go by time and id, none of equal times is lost between two pages."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from aiohttp import web

from services.accounts.core import pages
from services.accounts.core.pages import Asked, Page
from services.alerts.http.requests import rows_of

#: The time and the id of a row, after which a page begins.
Place = tuple[datetime, str]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: As Postgres keeps times.
_UNIT: Final = timedelta(microseconds=1)

T = TypeVar("T")


def page_of(request: web.Request, asked: Asked) -> Page:
    """The page that is asked for, of the list that the path names. Raises `CursorWrong` and `Refused`."""
    rows_of(asked.limit)
    return Page(request.path, asked)


def place_of(page: Page) -> Place | None:
    """Time and id of the row after which the page begins; None for the first page. Raises `CursorWrong`."""
    return None if page.place is None else _time_of(page.place)


def rule_place_of(page: Page) -> tuple[str, datetime, str] | None:
    """The same in a list by customer, time and id. Raises `CursorWrong`."""
    if not page.after:
        return None
    customer_id, _, timed = page.after.partition(" ")
    return customer_id, *_time_of(pages.place_in(timed))


def receiver_place_of(page: Page) -> tuple[str, str] | None:
    """Name and id of the row after which a page of a list by these begins; None for the first page. Raises `CursorWrong`."""
    if not page.after:
        return None
    row_id, _, name = page.after.partition(" ")
    return name, row_id


def key(at: datetime, row_id: str) -> str:
    """The key of a row by its time and id."""
    return pages.timed_key((at - _EPOCH) // _UNIT, row_id)


def cut(page: Page, rows: Sequence[T], place: Callable[[T], Place]) -> tuple[list[T], str | None]:
    """The rows of the page, of those that were read; and the next page's cursor."""
    return page.cut(rows, lambda row: key(*place(row)))


def _time_of(place: tuple[int, str]) -> Place:
    return _EPOCH + place[0] * _UNIT, place[1]
