"""Values of clients, converted to values of the row: whole numbers, rates, texts and flags within bounds, never an error."""

import math
from collections.abc import Mapping
from typing import Any

from services.processor.applications.video_views.bounds import BITRATE_BPS_MAX, CHARS_MAX, TEXT_CHARS_MAX
from shared.schemas.view import NUMBER_MAX


def whole(value: Any) -> int:
    """A number as the client sent it (Roku sends strings), rounded, within 0..`NUMBER_MAX`; 0 for anything else."""
    if value.__class__ is int:
        return value if 0 <= value <= NUMBER_MAX else 0 if value < 0 else NUMBER_MAX
    return round(real(value))


def real(value: Any) -> float:
    """A number as the client sent it, within 0..`NUMBER_MAX`; 0 for anything else."""
    return measured_real(value) or 0.0


def measured(value: Any) -> int | None:
    """As `whole`, but None for what is no number, or a negative one: the client has measured nothing."""
    if value.__class__ is int and 0 <= value <= NUMBER_MAX:
        number: int = value
        return number
    real = measured_real(value)
    return None if real is None else round(real)


def measured_real(value: Any) -> float | None:
    """As `real`, but None for what is no number, or a negative one: the client has measured nothing."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value < 0 or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return float(min(value, NUMBER_MAX))


def all_measured(attrs: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, int]:
    """Those of a client's numbers that it has measured, each the first of its list, by field: `fields` has theirs by name."""
    numbers = {field: measured(scalar(attrs[name])) for name, field in fields.items() if name in attrs}
    return {field: number for field, number in numbers.items() if number is not None}


def offset_ms(sent: int | None) -> int | None:
    """What is to be added to a client's times, within -`NUMBER_MAX`..`NUMBER_MAX`; None stays None."""
    return sent if sent is None else max(-NUMBER_MAX, min(NUMBER_MAX, sent))


def bitrate_bps(value: Any, unit_bps: int = 1) -> int:
    """A bitrate in units of `unit_bps`, in bps, at most `BITRATE_BPS_MAX`."""
    return min(whole(value) * unit_bps, BITRATE_BPS_MAX)


def text(value: Any, chars_max: int = TEXT_CHARS_MAX) -> str | None:
    """The value as a text, cut at `chars_max` characters; None stays None."""
    if value.__class__ is str:
        return value if len(value) <= chars_max else value[:chars_max]
    return None if value is None else str(value)[:chars_max]


def text_of(field: str, value: Any) -> str | None:
    """The value as a text of a field of the row."""
    return text(value, CHARS_MAX.get(field, TEXT_CHARS_MAX))


def flag(value: Any) -> bool:
    """Whether the client said true (Roku says it in words)."""
    return value is True or value == "true"


def scalar(value: Any) -> Any:
    """The first item of a CMCD inner list `[[item, parameter], ...]`, or the value itself."""
    if isinstance(value, list):
        return value[0][0] if value and isinstance(value[0], list) and value[0] else None
    return value


def video_entry(value: Any) -> int:
    """kbps of the video in a CMCD bitrate: the entry marked `v`, else the first."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, list) and len(item) == 2 and item[1] == "v":
                return whole(item[0])
    return whole(scalar(value))
