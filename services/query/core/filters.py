"""Filters: and, or and not over dimensions and numbers of views, as JSON in a parameter, and as SQL with placeholders."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from services.query.core import limits
from services.query.core.dimensions import CUSTOMER, VIEWER_ID, Dimension, dimension, value_of
from services.query.core.fields import NUMBERS
from services.query.core.problems import Wrong, wrong
from shared.codec import NO_JSON
from shared.http.problems import Fault
from shared.measures import MEMBER_CHARACTERS_MAX

PARAMETER: Final = "filter"


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition on a view: exactly one of `and`, `or`, `not`, `dimension` or `number`.

    A dimension has `in`, where null is an unknown value, or `contains`, a part of the text in small or capital letters. A number is
    a field of a view, with `at_least`, `below` or both; a view without it does not match.
    """

    all_of: tuple["Filter", ...] | None = msgspec.field(name="and", default=None)
    any_of: tuple["Filter", ...] | None = msgspec.field(name="or", default=None)
    none_of: "Filter | None" = msgspec.field(name="not", default=None)
    dimension: str | None = None
    values: tuple[str | None, ...] | None = msgspec.field(name="in", default=None)
    contains: str | None = None
    number: str | None = None
    at_least: float | None = None
    below: float | None = None


#: A whole number as a statement writes it.
_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DECODER: Final = msgspec.json.Decoder(Filter)

#: How a statement names a dimension's value.
Expression = Callable[[Dimension], str]


class Codes(Protocol):
    """Texts as numbers: of field `cdn`, `code_cdn` is the number, and table `values_cdn` says which text it is."""

    def place(self, field: str, value: str) -> int | None:
        """The number of a value; None where no view has it."""

    def count(self, field: str) -> int:
        """How many values there are."""


def parsed(text: str) -> Filter:
    """The filter that a parameter holds; raises `Wrong`."""
    if len(text.encode(errors="replace")) > limits.FILTER_BYTES_MAX:
        raise wrong(PARAMETER, f"a filter has at most {limits.FILTER_BYTES_MAX} bytes")
    # Before it is decoded: the decoder itself goes as deep as its input.
    if _depth(text) > 2 * limits.FILTER_DEPTH_MAX:
        raise wrong(PARAMETER, f"a filter is at most {limits.FILTER_DEPTH_MAX} deep")
    try:
        found = _DECODER.decode(text)
    except (*NO_JSON, UnicodeError) as error:
        raise wrong(PARAMETER, f"a filter is JSON of and, or, not, or dimension with in: {error}") from None
    check(found)
    return found


def check(one: Filter) -> None:
    """Raises `Wrong` for a filter that is too large or means nothing."""
    nodes = list(_walk(one, "#", 1))
    if len(nodes) > limits.FILTER_NODES_MAX:
        raise wrong(PARAMETER, f"a filter has at most {limits.FILTER_NODES_MAX} parts")
    values = sum(len(node.values or ()) for node, _, _ in nodes)
    if values > limits.FILTER_VALUES_MAX:
        raise wrong(PARAMETER, f"a filter has at most {limits.FILTER_VALUES_MAX} values")
    faults = [fault for node, pointer, depth in nodes if (fault := _fault(node, pointer, depth))]
    if faults:
        raise Wrong(*faults[:10])
    if len(named_of(one, VIEWER_ID)) > limits.VIEWERS_MAX:
        raise wrong(PARAMETER, f"a filter names at most {limits.VIEWERS_MAX} viewers")


def dimensions_of(one: Filter) -> tuple[Dimension, ...]:
    """The dimensions that a checked filter names, each once."""
    names = dict.fromkeys(node.dimension for node, _, _ in _walk(one, "#", 1) if node.dimension is not None)
    return tuple(found for name in names if (found := dimension(name)) is not None)


def numbers_of(one: Filter) -> tuple[str, ...]:
    """The fields of views that a checked filter bounds, each once."""
    return tuple(dict.fromkeys(node.number for node, _, _ in _walk(one, "#", 1) if node.number is not None))


def sql_of(one: Filter, expression: Expression, codes: Codes | None = None) -> tuple[str, list[Any]]:
    """A checked filter as a condition that is true or false of every view, and its parameters in their order.

    With `codes`, stored texts are numbers.
    """
    return _sql(one, expression, codes, is_negated=False)


def holds(one: Filter, row: Mapping[str, Any]) -> bool:
    """Whether a view's row is within a checked filter: as `sql_of` says it of stored rows."""
    if one.none_of is not None:
        return not holds(one.none_of, row)
    if one.number is not None:
        number = row.get(one.number)
        return (
            number is not None
            and (one.at_least is None or number >= one.at_least)
            and (one.below is None or number < one.below)
        )
    if one.dimension is not None:
        named = dimension(one.dimension)
        assert named is not None
        value = value_of(named, row)
        if one.contains is not None:
            return value is not None and one.contains.lower() in value.lower()
        return value in [None if wanted is None else stored(named, wanted) for wanted in one.values or ()]
    if one.all_of is not None:
        return all(holds(part, row) for part in one.all_of)
    return any(holds(part, row) for part in one.any_of or ())


def _sql(one: Filter, expression: Expression, codes: Codes | None, *, is_negated: bool) -> tuple[str, list[Any]]:
    if one.none_of is not None:
        condition, parameters = _sql(one.none_of, expression, codes, is_negated=True)
        return f"(NOT {condition})", parameters
    if one.number is not None:
        return _sql_of_number(one)
    if one.contains is not None:
        assert one.dimension is not None
        named = dimension(one.dimension)
        assert named is not None
        return f"coalesce(contains(lower({expression(named)}), lower(?)), false)", [one.contains]
    if one.dimension is not None:
        return _sql_of_values(one, expression, codes, is_negated=is_negated)
    parts = [_sql(part, expression, codes, is_negated=is_negated) for part in one.all_of or one.any_of or ()]
    word = " AND " if one.all_of is not None else " OR "
    return f"({word.join(condition for condition, _ in parts)})", [value for _, values in parts for value in values]


def _sql_of_values(
    one: Filter, expression: Expression, codes: Codes | None, *, is_negated: bool
) -> tuple[str, list[Any]]:
    assert one.dimension is not None
    assert one.values is not None
    named = dimension(one.dimension)
    assert named is not None
    known: list[Any] = [stored(named, value) for value in one.values if value is not None]
    has_unknown = len(known) < len(one.values)
    if codes is not None and named.column:
        found = f"code_{named.column}"
        known = [place for value in known if (place := codes.place(named.column, value)) is not None]
        if not known and not has_unknown:
            return "false", []
    elif codes is not None and named.kind == "number":
        # A text costs a hundred times as much as a number.
        found = named.fields[0]
        known = [number for value in known if (number := whole_number(value)) is not None]
        if not known and not has_unknown:
            return "false", []
    else:
        found = named.column if named.column and all(map(_is_plain, known)) else expression(named)
    conditions = [f"{found} IS NULL"] if has_unknown else []
    if known:
        listed = f"{found} IN ({', '.join('?' * len(known))})"
        # Under a `not` an unknown value must be false, not null. Elsewhere null is as good, and files can be skipped by it.
        conditions.append(f"coalesce({listed}, false)" if is_negated else listed)
    return f"({' OR '.join(conditions)})", known


def whole_number(value: str) -> int | None:
    """The number of 64 bits that a statement writes as this text; None where there is none."""
    number = int(value) if _NUMBER.fullmatch(value) else None
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


def _sql_of_number(one: Filter) -> tuple[str, list[Any]]:
    bounds = [(sign, bound) for sign, bound in ((">=", one.at_least), ("<", one.below)) if bound is not None]
    condition = " AND ".join(f"{one.number} {sign} ?" for sign, _ in bounds)
    return f"coalesce({condition}, false)", [bound for _, bound in bounds]


def stored(named: Dimension, value: str) -> str:
    """A value as the dimension has it: of a longer one, as a view has it, what is left of it. A customer is never cut."""
    return value if named.name == CUSTOMER else value[:MEMBER_CHARACTERS_MAX]


def _is_plain(value: str) -> bool:
    """Whether no other stored text is the same once it is cut: then the stored text itself may be compared."""
    return len(value) < MEMBER_CHARACTERS_MAX and "\ufffd" not in value and "\0" not in value


def _walk(one: Filter, pointer: str, depth: int) -> Iterator[tuple[Filter, str, int]]:
    yield one, pointer, depth
    for name, parts in (("and", one.all_of), ("or", one.any_of)):
        for number, part in enumerate(parts or ()):
            yield from _walk(part, f"{pointer}/{name}/{number}", depth + 1)
    if one.none_of is not None:
        yield from _walk(one.none_of, f"{pointer}/not", depth + 1)


def _fault(node: Filter, pointer: str, depth: int) -> Fault | None:
    def fault(detail: str) -> Fault:
        return Fault(detail[: limits.DETAIL_CHARACTERS_MAX], parameter=PARAMETER, pointer=pointer)

    forms = sum(part is not None for part in (node.all_of, node.any_of, node.none_of, node.dimension, node.number))
    tests = (node.values is not None) + (node.contains is not None)
    bounds = (node.at_least is not None) + (node.below is not None)
    if forms != 1 or tests != (node.dimension is not None) or bool(bounds) != (node.number is not None):
        return fault("one of and, or, not, dimension with in or contains, or number with at_least or below")
    if depth > limits.FILTER_DEPTH_MAX:
        return fault(f"a filter is at most {limits.FILTER_DEPTH_MAX} deep")
    if () in (node.all_of, node.any_of, node.values):
        return fault("an empty list")
    if node.dimension is not None and dimension(node.dimension) is None:
        return fault(f"no dimension is named {node.dimension[:100]!r}")
    if node.number is not None and node.number not in NUMBERS:
        return fault(f"no number of a view is named {node.number[:100]!r}")
    if node.contains is not None and not 0 < len(node.contains) <= limits.VALUE_CHARACTERS_MAX:
        return fault(f"contains has 1 to {limits.VALUE_CHARACTERS_MAX} characters")
    if any(len(value) > limits.VALUE_CHARACTERS_MAX for value in node.values or () if value is not None):
        return fault(f"a value has at most {limits.VALUE_CHARACTERS_MAX} characters")
    return None


def _depth(text: str) -> int:
    """How deep brackets are nested, at least: those in texts count too, which only a hostile filter has many of."""
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def both(filters: Sequence[Filter]) -> Filter | None:
    """All of these; None without any."""
    return None if not filters else filters[0] if len(filters) == 1 else Filter(all_of=tuple(filters))


def named_of(one: Filter, name: str) -> tuple[str, ...]:
    """What a checked filter names of a dimension, each once: values as the dimension has them, and parts as `contains: …`."""
    named = dimension(name)
    assert named is not None
    found: list[str] = []
    for node, _, _ in _walk(one, "#", 1):
        if node.dimension == name:
            found += [stored(named, value) for value in node.values or () if value is not None]
            found += [] if node.contains is None else [f"contains: {node.contains}"]
    return tuple(dict.fromkeys(found))
