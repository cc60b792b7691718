"""The shape of one value: the only part of a payload that is kept. Values do not leave this module.

If a value is probably not personal, the size of a number is kept, for ranges, and a word that may be one of an enumeration
(`shared.api.formats.WORD`). The field's name or the value's format shows whether it is probably personal.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from services.collector.intake.post import InvalidInput
from shared.api.formats import WORD, format_of, segment_of
from shared.api.shapes import FIELDS_MAX, merged_all
from shared.schemas.apis.shape import Shape, Text

DEPTH_MAX: Final = 12
ITEMS_MAX: Final = 100
#: Places of the shapes of one body; each takes some ten microseconds.
BODY_PLACES_MAX: Final = 25_000
#: Places of one call from which on its lists are cut short.
CALL_PLACES_MAX: Final = 2_000
NAME_CHARS_MAX: Final = 100
#: An API's names come back with every call: a cache makes that free.
NAMES_REMEMBERED_MAX: Final = 8_192

#: Kinds of personal data by what their fields are called; a name is looked at as words: `firstName`, `first_name`.
_BY_NAME: Final = (
    ("email", re.compile(r"\be ?mail\b|\bmail address\b")),
    ("phone", re.compile(r"\b(phone|mobile|telephone|fax|msisdn)\b|\bcell number\b")),
    ("name", re.compile(r"\b(first|last|full|given|family|middle|maiden|user|nick|display) ?name\b|\bsurname\b")),
    (
        "address",
        re.compile(r"\b(street|postal|zip ?code|post ?code|zip|home address|billing address|shipping address)\b"),
    ),
    ("birth date", re.compile(r"\b(birth ?day|birth ?date|dob|date of birth)\b")),
    ("ip address", re.compile(r"\b(ip|ip ?address|client ip|remote addr)\b")),
    ("payment card", re.compile(r"\b(card number|credit ?card|cvv|cvc|pan|iban)\b")),
    ("national id", re.compile(r"\b(ssn|social security|passport|national id|tax id|vat id)\b")),
    ("location", re.compile(r"\b(latitude|longitude|lat|lng|lon|geo ?location)\b")),
    ("secret", re.compile(r"\b(password|passwd|secret|token|api key|authorization|cookie|session id)\b")),
    ("gender", re.compile(r"\b(gender|sex)\b")),
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_PHONE: Final = re.compile(r"\+[1-9][\d ().-]{6,20}\d")
_CARD: Final = re.compile(r"\d(?:[ -]?\d){12,18}")


class Places:
    """How many places the shapes of one body may have in all, and those of one call before its lists are cut short."""

    def __init__(self, body_max: int = BODY_PLACES_MAX) -> None:
        self._body_left = body_max
        self._call_left = CALL_PLACES_MAX

    def begin_call(self) -> None:
        """What follows is of another call."""
        self._call_left = CALL_PLACES_MAX

    def add(self, count: int) -> None:
        """Counts places. Raises `InvalidInput` when the body has too many."""
        self._call_left -= count
        self._body_left -= count
        if self._body_left < 0:
            raise InvalidInput(
                "too_large", "the calls of this body hold too many values together; send fewer at a time"
            )

    @property
    def may_sample(self) -> bool:
        """Whether another item of a list may be looked at: lists are samples, their items are alike."""
        return self._call_left > 0


def shape_of(value: Any, at_ms: int, places: Places, name: str = "", depth: int = 0) -> Shape:
    """The shape of a JSON value under `name` at the time `at_ms`. Raises `InvalidInput` beyond `places`."""
    places.add(1)
    found = format_of(value) if isinstance(value, str) else ""
    personal = _personal(name, value, found)
    shape: dict[str, Any] = {"count": 1, "first_ms": at_ms, "last_ms": at_ms, "personal": personal}
    match value:
        case None:
            return Shape(types=["null"], **shape)
        case bool():
            return Shape(types=["boolean"], **shape)
        case int() | float():
            size = None if personal else _size(value)
            return Shape(types=["integer" if isinstance(value, int) else "number"], low=size, high=size, **shape)
        case str():
            return Shape(types=["string"], text=_text(value, found, is_personal=bool(personal)), **shape)
        case list():
            items = merged_all(_items(value, at_ms, places, name, depth)) if depth < DEPTH_MAX else None
            return Shape(types=["array"], items=items, **shape)
    if depth >= DEPTH_MAX:
        return Shape(types=["object"], **shape)
    return _object(value, at_ms, places, depth, shape)


def names_of(values: Mapping[str, Any], at_ms: int, places: Places) -> Shape:
    """The shape of headers: their names, and that they are texts. Raises `InvalidInput` beyond `places`."""
    places.add(min(len(values), FIELDS_MAX))
    fields = {
        name: Shape(1, at_ms, at_ms, ["string"], personal=_personal(name, None, ""))
        for name in list(values)[:FIELDS_MAX]
        if len(name) <= NAME_CHARS_MAX
    }
    return Shape(1, at_ms, at_ms, ["object"], fields=fields)


def word_hash(word: str) -> str:
    """What a word is counted under."""
    return hashlib.blake2b(word.encode(), digest_size=6).hexdigest()


def _size(value: float) -> float | None:
    """A number's size for ranges; None where a double does not hold it: `1e999`, or a whole number of 400 digits."""
    try:
        size = float(value)
    except OverflowError:
        return None
    return size if math.isfinite(size) else None


def _items(value: list[Any], at_ms: int, places: Places, name: str, depth: int) -> list[Shape]:
    items: list[Shape] = []
    for one in value[:ITEMS_MAX]:
        if items and not places.may_sample:
            break
        items.append(shape_of(one, at_ms, places, name, depth + 1))
    return items


def _object(value: Mapping[str, Any], at_ms: int, places: Places, depth: int, shape: dict[str, Any]) -> Shape:
    fields: dict[str, Shape] = {}
    values: list[Shape] = []
    for name, one in islice(value.items(), FIELDS_MAX):
        if _is_data(name):
            values.append(shape_of(one, at_ms, places, "", depth + 1))
        else:
            fields[name] = shape_of(one, at_ms, places, name, depth + 1)
    return Shape(types=["object"], fields=fields, values=merged_all(values), is_map=bool(values), **shape)


def _is_data(name: str) -> bool:
    """Whether an object's key is a value itself: an id, an address, or too long for a name."""
    return not name or len(name) > NAME_CHARS_MAX or _looks_like_data(name)


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def _looks_like_data(name: str) -> bool:
    return segment_of(name) != name


def _text(value: str, found: str, *, is_personal: bool) -> Text:
    if is_personal or found or WORD.fullmatch(value) is None:
        return Text(len(value), len(value), [found], is_free=True)
    key = word_hash(value)
    return Text(len(value), len(value), [""], {key: 1}, {key: value})


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def _personal_by_name(name: str) -> frozenset[str]:
    words = _CAMEL.sub(" ", name).lower()
    return frozenset(kind for kind, pattern in _BY_NAME if pattern.search(words))


def _personal(name: str, value: Any, shown: str) -> list[str]:
    """Kinds of personal data that a value probably is, by its field's name and by the format that a text shows."""
    found = set(_personal_by_name(name))
    if isinstance(value, str):
        if shown == "email":
            found.add("email")
        elif shown in ("ipv4", "ipv6"):
            found.add("ip address")
        elif _PHONE.fullmatch(value):
            found.add("phone")
        elif len(value) <= 23 and _CARD.fullmatch(value) and _is_card(value):
            found.add("payment card")
    return sorted(found)


def _is_card(value: str) -> bool:
    """Whether the digits have the check digit of payment cards (ISO/IEC 7812, by Luhn)."""
    digits = [int(one) for one in value if one.isdigit()]
    doubled = [sum(divmod(2 * one, 10)) for one in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
