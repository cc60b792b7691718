"""Parts: the aggregates over views from which metrics are computed, as DuckDB computes them. Pure data.

Additive parts are those of `shared.measures`, and sums that only views have. So what answers from sums of hours and what answers
from views divide the same numbers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.measures import COUNTED, SUMMED

#: Who watches: the customer's own name of a viewer comes first, as in rollups.
VIEWER: Final = "coalesce(viewer_user_id, viewer_id)"


@dataclass(frozen=True)
class Part:
    """One aggregate over views, as DuckDB computes it."""

    name: str
    sql: str
    #: Fields of a view that `sql` reads.
    fields: tuple[str, ...]
    #: Whether those of two groups add up to that of both.
    is_additive: bool = True
    #: What one view adds to it, where it adds up; at least 0.
    of_view: str = "0"


#: Aggregates that only views have: sums, and counts of views under a condition.
_SUMMED_OF_VIEWS: Final = {
    "upscale_integral": "upscale_integral",
    "downscale_integral": "downscale_integral",
    "scale_time_ms": "scale_time_ms",
    "ttfb_sum_ms": "ttfb_sum_ms",
    "requests_answered": "req_count - coalesce(req_failed, 0) - coalesce(req_canceled, 0)",
    "req_bytes": "req_bytes",
    # Of clients that report bytes: else the time of others would be in the denominator alone.
    "req_time_ms": "CASE WHEN req_bytes IS NOT NULL THEN req_time_ms END",
    "dropped_frames": "dropped_frames",
    # Of clients that report them, too.
    "dropped_frames_time_ms": "CASE WHEN dropped_frames IS NOT NULL THEN playing_ms END",
    "score_view_sum": "score_view",
    "score_startup_sum": "score_startup",
    "score_smooth_sum": "score_smooth",
    "score_quality_sum": "score_quality",
    "score_success_sum": "score_success",
}
_COUNTED_OF_VIEWS: Final = {
    "score_view_count": "score_view IS NOT NULL",
    "score_startup_count": "score_startup IS NOT NULL",
    "score_smooth_count": "score_smooth IS NOT NULL",
    "score_quality_count": "score_quality IS NOT NULL",
    "score_success_count": "score_success IS NOT NULL",
    "scale_time_ms_count": "scale_time_ms IS NOT NULL",
    "ttfb_sum_ms_count": "ttfb_sum_ms IS NOT NULL",
    "req_bytes_count": "req_bytes IS NOT NULL",
    "dropped_frames_count": "dropped_frames IS NOT NULL",
    "spi_good_views": "spi_good",
    "spi_known_views": "spi_good IS NOT NULL",
}
#: The parts that rollups and hot sums have.
OF_SUMS: Final = frozenset({*COUNTED, *SUMMED})
_WORD: Final = re.compile(r"'[^']*'|[a-z_]+")


def fields_read(expression: str) -> tuple[str, ...]:
    """The fields that an expression of ours reads: its words in small letters that are no functions."""
    words = (word for word in _WORD.findall(expression) if not word.startswith("'"))
    return tuple(dict.fromkeys(word for word in words if word not in {"coalesce", "true"}))


def _parts() -> dict[str, Part]:
    counted = {**COUNTED, **_COUNTED_OF_VIEWS}
    summed = {**SUMMED, **_SUMMED_OF_VIEWS}
    filters = {name: "" if on == "true" else f" FILTER (WHERE {on})" for name, on in counted.items()}
    parts = {
        name: Part(name, f"count(*){filters[name]}", fields_read(on), of_view=f"CASE WHEN {on} THEN 1 ELSE 0 END")
        for name, on in counted.items()
    }
    return parts | {
        # A sum below 0 is a fault of its view. For `greatest` of `coalesce` DuckDB takes twice as long.
        name: Part(
            name, f"coalesce(sum({of}), 0)", fields_read(of), of_view=f"CASE WHEN ({of}) > 0 THEN ({of}) ELSE 0 END"
        )
        for name, of in summed.items()
    }


#: Additive parts by name.
PARTS: Final[Mapping[str, Part]] = _parts()
