"""Distributions: which values of a view have one, the buckets they are counted in, and bins and quantiles of the counts. Pure.

Durations and bitrates are counted in the log buckets of `shared.statistics.histogram`: their quantiles are within 1 %. Scores are
from 0 to 100 with two decimals, and are counted as they are.
"""

from collections.abc import Mapping
from typing import Final

from services.query.core.metrics import MEASURED, METRICS, Unit
from services.query.core.parts import fields_read
from shared.statistics.histogram import BUCKET_OF_ZERO, GAMMA, bucket_at, quantile

#: Fields of a view, each with its unit.
DISTRIBUTED: Final[Mapping[str, Unit]] = {
    **dict.fromkeys(MEASURED, "ms"),
    **{one.of_view: one.unit for one in METRICS.values() if one.of_view and fields_read(one.of_view) == (one.of_view,)},
}
#: The log of the ratio of a bucket's bounds: `shared.statistics.histogram`, as the triggers of `serving.views` have it.
_LOG: Final = "0.01980262729617973"
#: Log buckets that make a bin: its bounds are 1.27 apart.
_BUCKETS_A_BIN: Final = 12
#: Buckets of a score, by point.
_BUCKETS_A_POINT: Final = 100
_POINTS_A_BIN: Final = 5
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def bucket_sql(field: str) -> str:
    """The bucket of a view whose value is known."""
    if _is_score(field):
        return f"CAST(round({field} * {_BUCKETS_A_POINT}) AS integer)"
    return f"CASE WHEN {field} > 0 THEN CAST(floor(ln({field}::double) / {_LOG}) AS integer) ELSE {BUCKET_OF_ZERO} END"


def bins(field: str, counts: Mapping[int, int]) -> list[tuple[float, float, int]]:
    """From, to below, and how many views: in their order. Those of a duration or a bitrate of 0 have a bin without a width."""
    width = _BUCKETS_A_POINT * _POINTS_A_BIN if _is_score(field) else _BUCKETS_A_BIN
    found: dict[int, int] = {}
    for bucket, count in counts.items():
        place = BUCKET_OF_ZERO if bucket == BUCKET_OF_ZERO else bucket // width
        found[place] = found.get(place, 0) + count
    return [(*_bounds(field, place), count) for place, count in sorted(found.items())]


def quantiles(field: str, counts: Mapping[int, int]) -> dict[str, float | None]:
    """`p5` to `p99` by nearest rank; None without a view."""
    found = {}
    for q in _QUANTILES:
        if _is_score(field):
            bucket = bucket_at(counts, q)
            found[f"p{round(100 * q)}"] = None if bucket is None else bucket / _BUCKETS_A_POINT
        else:
            found[f"p{round(100 * q)}"] = quantile(counts, q)
    return found


def is_exact(field: str) -> bool:
    """Whether quantiles are values of views; else they are within 1 % of one."""
    return _is_score(field)


def _is_score(field: str) -> bool:
    return DISTRIBUTED[field] == "score"


def _bounds(field: str, place: int) -> tuple[float, float]:
    if _is_score(field):
        return float(place * _POINTS_A_BIN), float((place + 1) * _POINTS_A_BIN)
    if place == BUCKET_OF_ZERO:
        return 0.0, 0.0
    return GAMMA ** (place * _BUCKETS_A_BIN), GAMMA ** ((place + 1) * _BUCKETS_A_BIN)
