"""Which columns of a file are moments or days, and the columns that have the same in words of a calendar. Pure."""

from collections.abc import Sequence
from typing import Final

#: Moments, ms since 1970, by the names of columns. Every other `_ms` is a duration.
MOMENTS: Final = frozenset(
    (
        "from_ms",
        "to_ms",
        "counted_ms",
        "first_ms",
        "last_ms",
        "view_start_ms",
        "view_end_ms",
        "first_append_ms",
        "last_append_ms",
    )
)
#: Days since 1970 (UTC), and their dates.
_DAY: Final = "day"
_DATE: Final = "date"


def time_of(column: str) -> str | None:
    """The column beside one that has its time or date: `from_at` beside `from_ms`. None beside any other."""
    if column == _DAY:
        return _DATE
    return f"{column.removesuffix('_ms')}_at" if column in MOMENTS else None


def is_date(column: str) -> bool:
    """Whether a column that `time_of` names has dates; else it has times."""
    return column == _DATE


def with_times(columns: Sequence[str]) -> list[str]:
    """The columns, each with its time or date behind it."""
    return [name for column in columns for name in (column, time_of(column)) if name is not None]
