"""The baseline of a time: past windows of the same hour of the week or, while these are few, of the same hour of any day. Pure.

Hours are UTC's; hour 0 of the week is Monday's first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from services.processor.applications.api_baselines.window import Figures, Window
from shared.histogram import merge
from shared.schemas.apis.anomaly import SeasonName

_HOUR_MS: Final = 3_600_000
_HOURS_OF_DAY: Final = 24
HOURS_OF_WEEK: Final = 7 * _HOURS_OF_DAY
#: 1970 began on a Thursday.
_FIRST_HOUR: Final = 3 * _HOURS_OF_DAY


class Season(msgspec.Struct, array_like=True):
    """One hour of the week of one endpoint: its newest windows one by one, and the durations of some more in one sketch."""

    #: Of which life of the endpoint this is; of a former one nothing is usual any more.
    epoch: int
    past: list[Figures] = []
    latency: dict[int, int] = {}
    #: Windows in the sketch.
    pooled: int = 0


@dataclass(frozen=True)
class Baseline:
    """What a window is held against."""

    season: SeasonName
    #: Windows, the newest last.
    past: list[Figures]
    latency: dict[int, int]


def hour_of_week(at_ms: int) -> int:
    """0 to 167."""
    return (at_ms // _HOUR_MS + _FIRST_HOUR) % HOURS_OF_WEEK


def learn(season: Season, window: Window, figures: Figures, *, windows_max: int) -> None:
    """Remembers a window. Of more than `windows_max` the oldest are forgotten; in the sketch all of them fade."""
    season.past = [*season.past, figures][-windows_max:]
    merge(season.latency, window.latency)
    season.pooled += 1
    if season.pooled > 2 * windows_max:
        # Half of each: the shape stays, and what comes counts for more.
        season.latency = {bucket: count // 2 for bucket, count in season.latency.items() if count > 1}
        season.pooled = windows_max


def baseline_at(
    hour: int, season_of: Callable[[int], Season | None], *, windows_min: int, windows_max: int
) -> Baseline | None:
    """What is usual in an hour of the week; None while too little is known."""
    own = season_of(hour)
    if own is not None and len(own.past) >= windows_min:
        return Baseline("hour_of_week", own.past, own.latency)
    others = [season_of(other) for other in range(hour % _HOURS_OF_DAY, HOURS_OF_WEEK, _HOURS_OF_DAY)]
    known = [season for season in others if season is not None]
    past = sorted((figures for season in known for figures in season.past), key=lambda figures: figures.start_ms)
    if len(past) < windows_min:
        return None
    latency: dict[int, int] = {}
    for season in known:
        merge(latency, season.latency)
    return Baseline("hour_of_day", past[-windows_max:], latency)
