"""What clients write, as what the row can hold: whole numbers, rates, texts and flags within bounds, never an error."""

import math
from typing import Any

from services.processor.applications.video_views.bounds import BITRATE_BPS_MAX, CHARS_MAX, TEXT_CHARS_MAX
from shared.schemas.view import NUMBER_MAX


def whole(value: Any) -> int:
    """A number as the client sent it (Roku sends strings), rounded, within 0..`NUMBER_MAX`; 0 for what is none."""
    if value.__class__ is int:
        return value if 0 <= value <= NUMBER_MAX else 0 if value < 0 else NUMBER_MAX
    return round(real(value))


def real(value: Any) -> float:
    """A number as the client sent it, within 0..`NUMBER_MAX`; 0 for what is none."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return 0.0
    return float(min(max(value, 0), NUMBER_MAX))


def offset_ms(told: int | None) -> int | None:
    """What is to be added to a client's times, within -`NUMBER_MAX`..`NUMBER_MAX`; None stays None."""
    return told if told is None else max(-NUMBER_MAX, min(NUMBER_MAX, told))


def rate(value: Any) -> float:
    """The share of viewers that is sampled: above 0, up to 1; 1 for what is none."""
    number = real(value)
    return number if 0 < number <= 1 else 1.0


def bitrate_bps(value: Any, unit_bps: int = 1) -> int:
    """A bitrate told in units of `unit_bps`, in bps, at most `BITRATE_BPS_MAX`."""
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
