"""Values of clients, converted to values of the row: rates, texts and flags within bounds, never an error."""

from collections.abc import Mapping
from typing import Any

from services.processor.applications.video_views.bounds import BITRATE_BPS_MAX, CHARS_MAX, TEXT_CHARS_MAX
from shared.client_values import measured, scalar, whole
from shared.schemas.view import NUMBER_MAX


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


def video_entry(value: Any) -> int:
    """kbps of the video in a CMCD bitrate: the entry marked `v`, else the first."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, list) and len(item) == 2 and item[1] == "v":
                return whole(item[0])
    return whole(scalar(value))
