"""Pages of lists: where one ended, as a text that callers give back unread. It is of its list and its question. Pure."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 500
CURSOR_CHARS_MAX: Final = 4_000
#: What a refused cursor should have been.
MEANT: Final = "`next` of a page of this list, for the same question"
#: Of µs since 1970, for the next three centuries.
_TIME_DIGITS_MAX: Final = 16
#: As Postgres, DuckDB and files count.
NUMBER_MAX: Final = 2**63 - 1

T = TypeVar("T")


class CursorWrong(ValueError):
    """The text is no cursor of this list, or of another question."""

    def __init__(self) -> None:
        super().__init__(f"cursor is the {MEANT}")


class Asked(Protocol):
    """The parameters of a list, a msgspec struct."""

    @property
    def limit(self) -> int:
        """How many rows a page has."""
        ...

    @property
    def cursor(self) -> str:
        """The cursor of the page; empty for the first one."""
        ...


def name_of(of: str, asked: Any, **left_out: Any) -> str:
    """A name for a list: it follows from all that decides which rows there are, and in which order.

    `left_out` sets parameters that do not change the list, such as `limit`, to the same value in each.
    """
    same = msgspec.structs.replace(asked, cursor="", **left_out)
    return hashlib.sha256(of.encode() + b"\0" + msgspec.json.encode(same)).hexdigest()[:16]


def cursor_of(name: str, key: str) -> str:
    """The cursor of a page of the list of this name whose last row has this key."""
    return base64.urlsafe_b64encode(f"{name} {key}".encode()).rstrip(b"=").decode()


def key_of(name: str, cursor: str) -> str:
    """The key of the row after which a page of the list of this name begins. Raises `CursorWrong`."""
    if len(cursor) > CURSOR_CHARS_MAX or not cursor.isascii():
        raise CursorWrong
    try:
        held = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CursorWrong from None
    of, _, key = held.partition(" ")
    if of != name or not key or "\0" in key:
        raise CursorWrong
    return key


def timed_key(time: int, row_id: str) -> str:
    """The key of a row in a list by time and id. Of equal times none is lost between two pages."""
    return f"{time} {row_id}"


class Page:
    """The page that is asked for. `of` names the list. Raises `CursorWrong`."""

    def __init__(self, of: str, asked: Asked) -> None:
        self._name = name_of(of, asked, limit=1)
        self._limit = asked.limit
        #: The key of the row after which the page begins; empty for the first page.
        self.after: Final = key_of(self._name, asked.cursor) if asked.cursor else ""

    @property
    def rows_max(self) -> int:
        """How many rows to read: one more than the page has says whether another follows."""
        return self._limit + 1

    @property
    def place(self) -> tuple[int, str] | None:
        """Of a list by time and id, these of the row after which the page begins; None for the first page. Raises `CursorWrong`."""
        return place_in(self.after) if self.after else None

    @property
    def number(self) -> int | None:
        """Of a list by number, that of the row after which the page begins; None for the first page. Raises `CursorWrong`."""
        return number_of(self.after) if self.after else None

    def cut(self, rows: Sequence[T], key: Callable[[T], str], *, has_more: bool = False) -> tuple[list[T], str | None]:
        """The rows of the page, of those that were read; and the next page's cursor. `has_more`: not all were read."""
        page = list(rows[: self._limit])
        return page, cursor_of(self._name, key(page[-1])) if page and (has_more or len(rows) > self._limit) else None


def place_in(key: str) -> tuple[int, str]:
    """Time and id of a key of `timed_key`. Raises `CursorWrong`."""
    time, _, row_id = key.partition(" ")
    if not (time.isascii() and time.isdigit() and len(time) <= _TIME_DIGITS_MAX):
        raise CursorWrong
    return int(time), row_id


def number_of(text: str) -> int:
    """A number in a cursor. Raises `CursorWrong`."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise CursorWrong
    return min(int(text), NUMBER_MAX)
