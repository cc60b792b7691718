"""Cursors of lists: what the next page begins after, within the range of the first one. Pure."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Any, Final

import msgspec

from services.query.core import limits
from services.query.core.calendar import Range
from services.query.core.problems import wrong

_CHARACTERS_MAX: Final = 4_000


def name_of(asked: msgspec.Struct, **left_out: Any) -> str:
    """A name for a list: it follows from all that decides which rows there are, and in which order.

    `left_out` gives the parameters that do not the same value in each.
    """
    same = msgspec.structs.replace(asked, cursor="", **left_out)
    return hashlib.sha256(msgspec.json.encode(same)).hexdigest()[:16]


def closed(name: str, within: Range, place: Sequence[Any]) -> str:
    """The cursor of the page behind `place`."""
    content = msgspec.json.encode([name, within.from_ms, within.to_ms, *place])
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def opened(cursor: str, name: str, place: tuple[Any, ...]) -> tuple[Mapping[str, str], list[Any]]:
    """The parameters `from_` and `to` of the first page, and the place that the page begins after, of these types.

    Raises `Wrong` where it is no cursor of the list of this name.
    """
    try:
        text = base64.b64decode(cursor[:_CHARACTERS_MAX] + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found: Sequence[Any] = msgspec.json.decode(text, type=GenericAlias(tuple, (str, int, int, *place)))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise wrong("cursor", "`next` of another page") from None
    of, from_ms, to_ms, *after = found
    if of != name:
        raise wrong("cursor", "`next` of a page of the same list")
    if not all(limits.FIRST_MS <= bound <= limits.LAST_MS for bound in (from_ms, to_ms)) or not all(
        abs(one) <= limits.LAST_MS for one in after if isinstance(one, int)
    ):
        raise wrong("cursor", "`next` of another page")
    return {"from_": str(from_ms), "to": str(to_ms)}, after
