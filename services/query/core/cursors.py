"""Cursors of lists: what the next page begins after, within the range of the first one. Pure."""

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Any

import msgspec

from services.accounts.core import pages
from services.accounts.core.pages import MEANT, CursorWrong
from services.query.core import limits
from services.query.core.calendar import Range
from services.query.core.problems import wrong


def name_of(asked: msgspec.Struct, **left_out: Any) -> str:
    """A name for the list that these parameters ask for: see `pages.name_of`."""
    return pages.name_of(type(asked).__name__, asked, **left_out)


def closed(name: str, within: Range, place: Sequence[Any]) -> str:
    """The cursor of the page behind `place`."""
    return pages.cursor_of(name, msgspec.json.encode([within.from_ms, within.to_ms, *place]).decode())


def opened(cursor: str, name: str, place: tuple[Any, ...]) -> tuple[Mapping[str, str], list[Any]]:
    """The parameters `from_` and `to` of the first page, and the place that the page begins after, of these types.

    Raises `Wrong` where it is no cursor of the list of this name.
    """
    try:
        found: Sequence[Any] = msgspec.json.decode(
            pages.key_of(name, cursor), type=GenericAlias(tuple, (int, int, *place))
        )
    except (CursorWrong, msgspec.DecodeError):
        raise wrong("cursor", MEANT) from None
    from_ms, to_ms, *after = found
    if not all(limits.FIRST_MS <= bound <= limits.LAST_MS for bound in (from_ms, to_ms)) or not all(
        abs(one) <= limits.LAST_MS for one in after if isinstance(one, int)
    ):
        raise wrong("cursor", MEANT)
    return {"from_": str(from_ms), "to": str(to_ms)}, after
