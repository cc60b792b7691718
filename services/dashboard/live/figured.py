"""The parts of a live picture that come from records or from landed minutes. Pure."""

from dataclasses import dataclass
from typing import Any

from services.dashboard.live.history import COUNTS
from services.dashboard.live.landed.slices import KeptSlices
from services.dashboard.live.picture import Figures, SlicesState, totals
from shared.schemas.live_minute import MINUTE_MS


@dataclass
class Figured:
    """The figures at the top: as in `LivePicture`."""

    now: Figures | None
    totals: Figures
    series: dict[str, list[int | None]]
    from_ms: int | None
    bucket_ms: int
    others_now: int = 0


@dataclass
class SlicesOf:
    """The values by dimension, where they come from, and as of when they are."""

    state: SlicesState
    as_of_ms: int | None
    values: dict[str, list[dict[str, Any]]] | None


def figured_by_minute(found: KeptSlices) -> Figured:
    """Those of a slice of many customers, minute by minute; nothing of one that is not known yet."""
    newest = {name: values[-1] for name, values in found.series.items()}
    now = None if None in newest.values() or not newest else {name: value or 0 for name, value in newest.items()}
    minutes = max((len(values) for values in found.series.values()), default=0)
    from_ms = None if found.as_of_ms is None else found.as_of_ms - minutes * MINUTE_MS
    return Figured(now, totals(found.series, COUNTS), found.series, from_ms, MINUTE_MS, found.others_now)
