"""Pages of lists: where one ended, as a text that callers give back unread. Pure."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 500
_CURSOR_CHARS_MAX: Final = 500
#: Of µs since 1970, for the next three centuries.
_TIME_DIGITS_MAX: Final = 16

T = TypeVar("T")


class CursorWrong(ValueError):
    """The text is no cursor of this list."""


def cursor_of(key: str) -> str:
    """The cursor of a page whose last row has this key."""
    return base64.urlsafe_b64encode(key.encode()).rstrip(b"=").decode()


def key_of(cursor: str) -> str:
    """The key of the row after which a page begins; empty for the first page. Raises `CursorWrong`."""
    if len(cursor) > _CURSOR_CHARS_MAX or not cursor.isascii():
        raise CursorWrong("cursor is the `next` of the page before")
    try:
        key = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CursorWrong("cursor is the `next` of the page before") from None
    if "\0" in key:
        raise CursorWrong("cursor is the `next` of the page before")
    return key


def timed_key(time: int, row_id: str) -> str:
    """The key of a row in a list by time and id. Of equal times none is lost between two pages."""
    return f"{time} {row_id}"


def place_of(cursor: str) -> tuple[int, str] | None:
    """Time and id of the row after which a page of such a list begins; None for the first page. Raises `CursorWrong`."""
    if not cursor:
        return None
    time, _, row_id = key_of(cursor).partition(" ")
    if not (time.isascii() and time.isdigit() and len(time) <= _TIME_DIGITS_MAX):
        raise CursorWrong("cursor is the `next` of the page before")
    return int(time), row_id


def cut(rows: Sequence[T], rows_max: int, key: Callable[[T], str]) -> tuple[list[T], str | None]:
    """The rows of a page, of at least one more than it has where there are more; and the next page's cursor."""
    page = list(rows[:rows_max])
    return page, cursor_of(key(page[-1])) if len(rows) > rows_max else None
