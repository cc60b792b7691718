"""Merges shapes. Order and grouping do not matter; for all but the counts, repetition does not matter either.

So a schema is the same however its calls were spread over time; counts are sums of what was merged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar, get_args

import msgspec

from shared.schemas.apis.shape import JsonType, Shape, Text

T = TypeVar("T")

#: Names of one object: of more the first in order are kept, and the object counts as a map.
FIELDS_MAX: Final = 500
#: Words of one enumeration; a text with more words is not an enumeration.
WORDS_MAX: Final = 12
#: A word is spelled out once it came so often: what is seldom may be somebody's.
SPELLED_COUNT_MIN: Final = 5

_ORDER: Final[Mapping[JsonType, int]] = {name: place for place, name in enumerate(get_args(JsonType))}


def merged(one: Shape, other: Shape) -> Shape:
    """What is known from both."""
    personal = _union(one.personal, other.personal)
    fields, optional = _fields(one, other)
    text = _optionally(one.text, other.text, _text)
    return Shape(
        count=one.count + other.count,
        first_ms=min(one.first_ms, other.first_ms),
        last_ms=max(one.last_ms, other.last_ms),
        types=one.types if one.types == other.types else sorted({*one.types, *other.types}, key=_ORDER.__getitem__),
        text=_freed(text) if text is not None and personal else text,
        low=None if personal else _optionally(one.low, other.low, min),
        high=None if personal else _optionally(one.high, other.high, max),
        items=_optionally(one.items, other.items, merged),
        fields=fields,
        optional=optional,
        values=_optionally(one.values, other.values, merged),
        is_map=one.is_map or other.is_map or len({*one.fields, *other.fields}) > FIELDS_MAX,
        personal=personal,
    )


def teaches(one: Shape, other: Shape) -> bool:
    """Whether a stored shape, which is `discreet`, would learn anything but counts from the other. It may say so in vain."""
    if one.personal or other.personal:
        # Sizes and words that are personal go with the merge.
        if not _is_within(other.personal, one.personal) or (one.text is not None and not one.text.is_free):
            return True
        if one.low is not None or one.high is not None:
            return True
    elif other.low is not None and not _is_in_range(one, other):
        return True
    if not _is_within(other.types, one.types) or (other.is_map and not one.is_map):
        return True
    if other.text is not None and _teaches_text(one.text, other.text):
        return True
    if "object" in other.types and _teaches_fields(one, other):
        return True
    for known, inner in ((one.items, other.items), (one.values, other.values)):
        if inner is not None and (known is None or teaches(known, inner)):
            return True
    return False


def counted(one: Shape, other: Shape) -> Shape:
    """The stored shape with the counts and times of the other, which `teaches` it nothing: as if merged, for much less."""
    fields, text = one.fields, one.text
    if other.fields:
        fields = dict(fields)
        for name, field in other.fields.items():
            fields[name] = counted(fields[name], field)
    if text is not None and other.text is not None and other.text.words and not text.is_free:
        words = dict(text.words)
        for key, count in other.text.words.items():
            words[key] += count
        text = msgspec.structs.replace(text, words=words)
    return Shape(
        one.count + other.count,
        min(one.first_ms, other.first_ms),
        max(one.last_ms, other.last_ms),
        one.types,
        text,
        one.low,
        one.high,
        one.items if one.items is None or other.items is None else counted(one.items, other.items),
        fields,
        one.optional,
        one.values if one.values is None or other.values is None else counted(one.values, other.values),
        one.is_map,
        one.personal,
    )


def merged_all(shapes: Iterable[Shape]) -> Shape | None:
    """What is known from all of them; None for none."""
    given = list(shapes)
    # In pairs: what many hold is looked at once a level, not once a shape.
    while len(given) > 1:
        pairs = [merged(one, other) for one, other in zip(given[::2], given[1::2], strict=False)]
        given = pairs if len(given) % 2 == 0 else [*pairs, given[-1]]
    return given[0] if given else None


def learned(shape: Shape) -> Shape:
    """The shape without its counts: of what is learned, merging something once more changes nothing."""
    text = shape.text
    return msgspec.structs.replace(
        shape,
        count=0,
        text=None if text is None else msgspec.structs.replace(text, words=dict.fromkeys(text.words, 0)),
        items=None if shape.items is None else learned(shape.items),
        values=None if shape.values is None else learned(shape.values),
        fields={name: learned(field) for name, field in shape.fields.items()},
    )


def discreet(shape: Shape) -> Shape:
    """The shape as it may be stored: without the spelling of words that came seldom."""
    text = shape.text
    if text is not None and text.spelled:
        often = {key: word for key, word in text.spelled.items() if text.words[key] >= SPELLED_COUNT_MIN}
        text = msgspec.structs.replace(text, spelled=often)
    return msgspec.structs.replace(
        shape,
        text=text,
        items=None if shape.items is None else discreet(shape.items),
        values=None if shape.values is None else discreet(shape.values),
        fields={name: discreet(field) for name, field in shape.fields.items()},
    )


def without_words(shape: Shape) -> Shape:
    """The shape without enumerations: its texts count as free text, also after a merge with any other shape."""
    return msgspec.structs.replace(
        shape,
        text=None if shape.text is None else _freed(shape.text),
        items=None if shape.items is None else without_words(shape.items),
        values=None if shape.values is None else without_words(shape.values),
        fields={name: without_words(field) for name, field in shape.fields.items()},
    )


def size_of(shape: Shape) -> int:
    """The number of places in the shape."""
    inner = [one for one in (shape.items, shape.values, *shape.fields.values()) if one is not None]
    return 1 + sum(size_of(one) for one in inner)


def _fields(one: Shape, other: Shape) -> tuple[dict[str, Shape], list[str]]:
    if not one.fields and not other.fields:
        return {}, []
    names = sorted({*one.fields, *other.fields})[:FIELDS_MAX]
    optional = {*one.optional, *other.optional}
    for lacking, having in ((one, other), (other, one)):
        if "object" in lacking.types:
            optional |= having.fields.keys() - lacking.fields.keys()
    fields = {}
    for name in names:
        field = _optionally(one.fields.get(name), other.fields.get(name), merged)
        assert field is not None
        fields[name] = field
    return fields, sorted(optional & fields.keys())


def _text(one: Text, other: Text) -> Text:
    counts = dict(one.words)
    for key, count in other.words.items():
        counts[key] = counts.get(key, 0) + count
    text = Text(
        min(one.length_min, other.length_min),
        max(one.length_max, other.length_max),
        _union(one.formats, other.formats),
        dict(sorted(counts.items())),
        dict(sorted({**one.spelled, **other.spelled}.items())),
        one.is_free or other.is_free,
    )
    return _freed(text) if text.is_free or len(counts) > WORDS_MAX else text


def _is_in_range(one: Shape, other: Shape) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.low and other.high <= one.high


def _teaches_fields(one: Shape, other: Shape) -> bool:
    for name, field in other.fields.items():
        known = one.fields.get(name)
        if known is None or teaches(known, field):
            return True
    if not _is_within(other.optional, one.optional):
        return True
    # All of its fields are known, so only with as many it lacks none.
    return len(other.fields) < len(one.fields) and not one.fields.keys() - other.fields.keys() <= set(one.optional)


def _teaches_text(one: Text | None, other: Text) -> bool:
    if one is None or other.length_min < one.length_min or other.length_max > one.length_max:
        return True
    if not _is_within(other.formats, one.formats) or (other.is_free and not one.is_free):
        return True
    return not one.is_free and any(
        key not in one.words
        # It came often enough to be spelled out now.
        or (key in other.spelled and key not in one.spelled and one.words[key] + count >= SPELLED_COUNT_MIN)
        for key, count in other.words.items()
    )


def _is_within(some: Sequence[str], known: Sequence[str]) -> bool:
    return some == known or all(one in known for one in some)


def _freed(text: Text) -> Text:
    return msgspec.structs.replace(text, words={}, spelled={}, is_free=True)


def _union(one: list[str], other: list[str]) -> list[str]:
    return one if one == other else sorted({*one, *other})


def _optionally(one: T | None, other: T | None, both: Callable[[T, T], T]) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return both(one, other)
