"""Cursors of lists: what the next page begins after, within the range of the first one. Pure."""

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Any, Protocol

import msgspec

from services.accounts.core import pages
from services.accounts.core.pages import MEANT, CursorWrong
from services.query.core import limits
from services.query.core.calendar import Range
from services.query.core.problems import wrong
from services.query.core.question import moment_of, zone_of


class Asked(Protocol):
    """The parameters of a list, a msgspec struct. The range may be left out beside a cursor, which has it."""

    @property
    def from_(self) -> str:
        """The first moment, as a parameter."""
        ...

    @property
    def to(self) -> str:
        """The moment after the last, as a parameter."""
        ...

    @property
    def tz(self) -> str:
        """The time zone of these."""
        ...

    @property
    def cursor(self) -> str:
        """The cursor; not empty where it is opened."""
        ...


def name_of(asked: Asked, **left_out: Any) -> str:
    """A name for the list that these parameters ask for, whatever its range: see `pages.name_of`."""
    return pages.name_of(type(asked).__name__, asked, from_="", to="", **left_out)


def closed(name: str, within: Range, place: Sequence[Any]) -> str:
    """The cursor of the page behind `place`."""
    return pages.cursor_of(name, msgspec.json.encode([within.from_ms, within.to_ms, *place]).decode())


def opened(asked: Asked, name: str, place: tuple[Any, ...]) -> tuple[Mapping[str, str], list[Any]]:
    """The parameters `from_` and `to` of the first page, and the place that the page begins after, of these types.

    Raises `Wrong` where it is no cursor of the list of this name, or of another range than the one that is given.
    """
    try:
        found: Sequence[Any] = msgspec.json.decode(
            pages.key_of(name, asked.cursor), type=GenericAlias(tuple, (int, int, *place))
        )
    except (CursorWrong, msgspec.DecodeError):
        raise wrong("cursor", MEANT) from None
    from_ms, to_ms, *after = found
    # What a list is ordered by may be a sum, such as bits over time; all else is a time, a day or a count.
    if not all(limits.FIRST_MS <= bound <= limits.LAST_MS for bound in (from_ms, to_ms)) or not all(
        abs(one) <= (limits.LAST_MS if kind is int else pages.NUMBER_MAX)
        for one, kind in zip(after, place, strict=True)
        if isinstance(one, int | float)
    ):
        raise wrong("cursor", MEANT)
    for parameter, given, is_ms in (("from", asked.from_, from_ms), ("to", asked.to, to_ms)):
        if given and moment_of(parameter, given, zone_of(asked.tz)) != is_ms:
            raise wrong("cursor", MEANT)
    return {"from_": str(from_ms), "to": str(to_ms)}, after
