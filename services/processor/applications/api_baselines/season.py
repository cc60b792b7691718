"""The baseline of a time: past windows of the same hour of the week or, while these are few, of the same hour of any day. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from services.processor.applications.api_baselines.window import Figures, Window
from shared.schemas.apis.anomaly import SeasonName
from shared.statistics.histogram import merge
from shared.statistics.weeks import hours_like


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
    """The usual values with which a window is compared."""

    season: SeasonName
    #: Windows, the newest last.
    past: list[Figures]
    latency: dict[int, int]


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
    seasons: dict[int, Season | None] = {}

    def known(like: int) -> int:
        season = seasons.setdefault(like, season_of(like))
        return 0 if season is None else len(season.past)

    found = hours_like(hour, known, windows_min)
    if found is None:
        return None
    name, hours = found
    past: list[Figures] = []
    latency: dict[int, int] = {}
    for like in hours:
        season = seasons[like]
        if season is not None:
            past += season.past
            merge(latency, season.latency)
    past.sort(key=lambda figures: figures.start_ms)
    return Baseline(name, past[-windows_max:], latency)
