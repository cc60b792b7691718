"""Client values made safe to keep: whole numbers from what clients write for them, attributes within their limits."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from services.collector.intake.post import InvalidInput, Rules

#: The largest whole number that every reader (JSON in JavaScript, Spark's long) holds exactly.
WHOLE_MAX: Final = 2**53

_NUMBER_CHARS_MAX: Final = 40


def whole_characters(text: str) -> str:
    """`text` with "?" for lone surrogates, which represent bytes that are not UTF-8: they cannot be stored."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def whole(value: object) -> int | None:
    """`value` as a whole number: an int, a finite float (rounded), or either one's text; None when it is no such thing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if len(value) > _NUMBER_CHARS_MAX:
            return None
        try:
            value = float(value) if any(c in value for c in ".eE") else int(value)
        except ValueError:
            return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = round(value)
    if not isinstance(value, int) or not -WHOLE_MAX <= value <= WHOLE_MAX:
        return None
    return value


def promoted_whole(attrs: dict[str, Any], name: str) -> int | None:
    """Removes `name` from `attrs` and returns it as an integer; any other value stays in `attrs` as the client sent it."""
    value = attrs.get(name)
    if value.__class__ is not int or not -WHOLE_MAX <= value <= WHOLE_MAX:
        value = whole(value)
        if value is None:
            return None
    del attrs[name]
    return value


def checked_sequence(value: object, name: str) -> int | None:
    """A sequence number, None where the client sent none; raises `InvalidInput` when it is no whole number from 0."""
    if value is None:
        return None
    number = value if value.__class__ is int else whole(value)
    if not isinstance(number, int) or not 0 <= number <= WHOLE_MAX:
        raise InvalidInput("invalid", f"{name} is not a whole number from 0 to 2^53")
    return number


def check_not_sampled(share: object, name: str) -> None:
    """Raises `InvalidInput` when a client samples its views: every view counts once."""
    if share is None or share == 1:
        return
    try:
        is_whole = float(share) == 1  # type: ignore[arg-type]  # what is no number is refused, too
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise InvalidInput(
            "sampled", f"{name} is {str(share)[:40]}: views are counted, not estimated; send all of them"
        )


def checked_time_ms(value: object, name: str) -> int:
    """A client's time, ms since 1970; raises `InvalidInput` when it is missing or before 1970."""
    number = value if value.__class__ is int else whole(value)
    if not isinstance(number, int) or not 0 <= number <= WHOLE_MAX:
        raise InvalidInput("invalid", f"{name} is no time in ms since 1970")
    return number


def check_attrs(attrs: Mapping[str, Any], rules: Rules, *, values: bool) -> None:
    """Raises `InvalidInput` when `attrs` are too many or, with `values`, one is too deep, too long or too large.

    The values within values, all together, may be as many as the fields. Lists are counted before they are looked into.
    """
    if len(attrs) > rules.attrs_max:
        raise InvalidInput("too_large", f"{len(attrs)} fields; {rules.attrs_max} are the most")
    if values:
        _check_values(attrs.values(), rules, rules.attrs_depth_max, rules.attrs_max)


def _check_values(values: Iterable[object], rules: Rules, depth_left: int, inner_left: int) -> int:
    """How many values within values may still follow."""
    for value in values:
        if isinstance(value, str):
            if len(value) > rules.attrs_string_chars_max:
                raise InvalidInput(
                    "too_large", f"a string of {len(value)} characters; {rules.attrs_string_chars_max} are the most"
                )
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise InvalidInput("invalid", "a whole number of more than 64 bits")
        elif isinstance(value, dict | list):
            if depth_left == 0:
                raise InvalidInput("invalid", f"values nested deeper than {rules.attrs_depth_max}")
            inner_left -= len(value)
            if inner_left < 0:
                raise InvalidInput("too_large", f"more than {rules.attrs_max} values within values")
            inner = value.values() if isinstance(value, dict) else value
            inner_left = _check_values(inner, rules, depth_left - 1, inner_left)
    return inner_left
