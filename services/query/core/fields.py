"""Fields of a view that hold one value, by kind: what rows are shown, sorted and filtered by. Pure data."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, get_args, get_type_hints

import msgspec

from shared.schemas.view import View

#: Where a row is, which version of it, and how it was written: of no meaning to who reads it.
_OF_STORAGE: Final = frozenset({"schema_version", "generation", "revision", "view_epoch", "deleted"})


@cache
def kind_of(field: str) -> type | None:
    """`str`, `int`, `float` or `bool` of a field with one value; `list` or `dict` of others; None where there is no such field."""
    hint = _hints().get(field)
    if hint is None:
        return None
    (first, *_) = [one for one in get_args(hint) if one is not type(None)] or [hint]
    kind = getattr(hint, "__origin__", None) or getattr(first, "__origin__", first)
    if kind in {list, dict}:
        return kind  # type: ignore[no-any-return]
    return first if first in {str, int, float, bool} else str


@cache
def _hints() -> Mapping[str, object]:
    return MappingProxyType(get_type_hints(View))


def _of(*kinds: type) -> tuple[str, ...]:
    names = (field.name for field in msgspec.structs.fields(View))
    return tuple(name for name in names if name not in _OF_STORAGE and kind_of(name) in kinds)


#: Every field with one value.
SINGLE: Final = _of(str, int, float, bool)
#: Those that are numbers: filters have bounds of them, and rows are sorted by them.
NUMBERS: Final = _of(int, float)
