"""Seasons: what is usual of a rate in an hour, from the hours that are kept of it. Pure.

The season is the same hour of former weeks; until that hour came twice, the same hour of former days; until then, the last hours.
In the first hour nothing is known.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from shared.statistics.tails import dispersed_count_beyond, dispersed_share_at_least
from shared.statistics.weeks import HOUR_MS, hour_of_week, hours_like

SeasonName = Literal["hour_of_week", "hour_of_day", "recent"]

#: Hours that are kept of one hour of the week: two months.
OCCURRENCES_MAX: Final = 8
#: An hour with fewer learned minutes tells nothing.
MINUTES_MIN: Final = 20
#: So often must an hour have come.
OCCURRENCES_MIN: Final = 2
#: Hours that tell what is usual while nothing else does.
RECENT_HOURS: Final = 3
#: An hour less likely than this beside the others of its season is left out.
_OUTLIER: Final = 1e-4
#: Windows that a dispersion is known from before anything is measured, and that dispersion.
_PRIOR_WINDOWS: Final = 30.0
PRIOR_DISPERSION: Final = 1.3
#: What a rate is known from before anything is counted: hits, and of how many.
_PRIOR_HITS: Final = 0.5
_PRIOR_OF: Final = 1


class Rate(NamedTuple):
    """What kind of rate: hits of so many, or events in so much time (where what is counted in is units of time)."""

    is_share: bool
    #: The side on which it is an anomaly.
    is_above: bool


class Hour(msgspec.Struct, array_like=True):
    """One hour: minutes, hits and of how many; squared deviations, in what chance alone gives, of so many windows."""

    start_ms: int
    minutes: int = 0
    hits: int = 0
    of: int = 0
    #: Of windows of 15 s the squared differences from the one before, of windows of a minute those from the forecast.
    short_windows: int = 0
    short_squares: float = 0.0
    long_windows: int = 0
    long_squares: float = 0.0
    #: Most of it was too unlikely to be learned.
    is_doubtful: bool = False


class Expected(msgspec.Struct, array_like=True):
    """What the season says. `rate` is hits of one (viewer, view, or bucket); `hits` is how many it is known from."""

    season: SeasonName
    rate: float
    hits: int
    #: Dispersion of windows of 15 s and of a minute, and expected hits of a minute.
    short: float
    long: float
    long_hits: float
    #: How many windows of a minute that is known from.
    long_windows: int = 0

    @property
    def of(self) -> int:
        """Among how many the hits were counted."""
        return round((self.hits + _PRIOR_HITS) / self.rate - _PRIOR_OF)


Past = Callable[[int], Sequence[Hour]]


def remember(hours: Sequence[Hour], hour: Hour) -> list[Hour]:
    """Those of one hour of the week, with a new one."""
    if hour.minutes < MINUTES_MIN or hour.of == 0:
        return list(hours)
    return [*[one for one in hours if one.start_ms != hour.start_ms], hour][-OCCURRENCES_MAX:]


def expected(kind: Rate, start_ms: int, past: Past) -> Expected | None:
    """What is usual in the hour from `start_ms`; None while nothing is known."""
    hour = hour_of_week(start_ms)
    found = hours_like(hour, lambda like: len(_believed(past(like))), OCCURRENCES_MIN)
    season: SeasonName = "recent"
    if found is not None:
        season, hours = found[0], [one for like in found[1] for one in past(like)]
    else:
        before = [hour_of_week(start_ms - back * HOUR_MS) for back in range(1, RECENT_HOURS + 1)]
        since_ms = start_ms - (RECENT_HOURS + 1) * HOUR_MS
        hours = [one for like in before for one in past(like) if one.start_ms >= since_ms]
    hours = _believed(hours)
    if not hours:
        return None
    kept = _without_outliers(kind, hours)
    hits, of = sum(one.hits for one in kept), sum(one.of for one in kept)
    minutes = sum(one.minutes for one in kept)
    short = _dispersion(sum(one.short_squares for one in kept), sum(one.short_windows for one in kept))
    windows = sum(one.long_windows for one in kept)
    long = _dispersion(sum(one.long_squares for one in kept), windows)
    a_minute = max(hits / minutes, 0.1)
    return Expected(season, (hits + _PRIOR_HITS) / (of + _PRIOR_OF), hits, short, long, a_minute, windows)


def _dispersion(squares: float, windows: int) -> float:
    return max(1.0, (squares + _PRIOR_WINDOWS * PRIOR_DISPERSION) / (windows + _PRIOR_WINDOWS))


def _believed(hours: Sequence[Hour]) -> list[Hour]:
    """Without the doubtful ones, unless these are most: then the others were unusual, as a match on the first day."""
    sure = [one for one in hours if not one.is_doubtful]
    return sure if 2 * len(sure) >= len(hours) else list(hours)


def _without_outliers(kind: Rate, hours: Sequence[Hour]) -> list[Hour]:
    """Without the hours, at most half of them, that are too far from all others together: incidents that were learned."""
    kept = sorted(hours, key=lambda one: one.hits / one.of)
    for _ in range(len(hours) // 2):
        if len(kept) <= OCCURRENCES_MIN:
            break
        # Of shares the highest hours are suspect, of counts the lowest.
        out = kept[-1] if kind.is_above else kept[0]
        others = [one for one in kept if one is not out]
        hits, of = sum(one.hits for one in others), sum(one.of for one in others)
        rate = (hits + 0.5) / (of + 1)
        wanted = rate * out.of
        spread = 2.0 + wanted * (1 / (hits + 0.5) + 0.3**2)
        if kind.is_share:
            probability = dispersed_share_at_least(out.hits, out.of, share=rate, dispersion=spread)
        else:
            probability = dispersed_count_beyond(out.hits, expected=wanted, dispersion=spread)
        if probability >= _OUTLIER:
            break
        kept = others
    return kept
