"""What is learned of a customer's slices, hour by hour, and kept by hour of the week. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from services.alerts.core.metrics import LEARNED, Metric
from services.alerts.core.series import BUCKETS_MAX, Series, window
from services.alerts.core.slices import WHOLE
from shared.schemas.live import BUCKET_MS
from shared.statistics import minutes as of_hour
from shared.statistics import rates
from shared.statistics.minutes import Minutes
from shared.statistics.seasons import OCCURRENCES_MAX, Hour, remember
from shared.statistics.weeks import HOUR_MS, hour_of_week

#: Slices of one customer that are followed; beyond them only the whole is.
SLICES_MAX: Final = 200
_LENGTHS_MS: Final = [length * BUCKET_MS for length in range(1, BUCKETS_MAX + 1)]
SHORT_MS: Final = rates.SHORT * BUCKET_MS


class Season(msgspec.Struct, array_like=True):
    """One hour of the week of one customer: by slice and metric the hours that were learned, the newest last."""

    hours: dict[str, dict[str, list[Hour]]] = {}


#: What is stored of an hour of the week.
SeasonOf = Callable[[int], Season | None]


class Seasons:
    """The seasons that one bucket needs, each read once."""

    def __init__(self, season_of: SeasonOf) -> None:
        self._season_of = season_of
        self._read: dict[int, Season] = {}

    def of(self, hour: int) -> Season:
        """That of an hour of the week, to be changed in place."""
        if hour not in self._read:
            self._read[hour] = self._season_of(hour) or Season()
        return self._read[hour]

    def past(self, name: str, metric: str) -> Callable[[int], Sequence[Hour]]:
        """What is known of a metric of a slice, by hour of the week."""
        return lambda hour: self.of(hour).hours.get(name, {}).get(metric, ())


def end_hour(
    series: Mapping[str, Series],
    ended_ms: int,
    hour_ms: int,
    seasons: Seasons,
    metrics: Sequence[Metric] = LEARNED,
) -> dict[int, Season]:
    """Puts the hour from `ended_ms` into its season, and takes from the seasons what is usual in the one from `hour_ms`.

    Returns the seasons that have changed, by hour of the week; none where no hour has ended (`ended_ms` is 0).
    """
    if ended_ms == 0:
        return {}
    ended = hour_of_week(ended_ms)
    into = seasons.of(ended)
    for name, one in series.items():
        for metric, learning in one.learning.items():
            hours = remember(into.hours.get(name, {}).get(metric, ()), rates.end_hour(learning))
            if hours:
                into.hours.setdefault(name, {})[metric] = hours
    _forget_old(into, hour_ms)
    for name, one in series.items():
        begin_hour(name, one, hour_ms, seasons, metrics)
    return {ended: into}


def begin_hour(
    name: str, series: Series, hour_ms: int, seasons: Seasons, metrics: Sequence[Metric] = LEARNED
) -> None:  # fmt: skip
    """Takes from the seasons what is usual in the hour from `hour_ms`."""
    for metric in metrics:
        if name == WHOLE or metric.is_of_slices:
            past = seasons.past(name, metric.name)
            series.learning[metric.name] = rates.begin_hour(
                series.learning.get(metric.name), metric.rate, hour_ms, past
            )


def learn_short(name: str, series: Series, end_ms: int, metrics: Sequence[Metric] = LEARNED) -> None:
    """A window of 15 s has ended."""
    found = window(series.buckets, end_ms, rates.SHORT)
    for metric in metrics if found.is_whole else ():
        if name == WHOLE or metric.is_of_slices:
            of = metric.exposure(found.counts, found.buckets)
            rates.learn_short(metric.rate, series.learning[metric.name], found.counts[metric.hits], of)


def learn_minute(
    series: Mapping[str, Series], end_ms: int, minutes: dict[str, Minutes], metrics: Sequence[Metric] = LEARNED
) -> None:
    """A minute has ended. What is usual of a minute of the hour, by metric, is learned of the whole and used of every slice."""
    shares = [metric.name for metric in metrics if metric.rate.is_share]
    usually = {
        one: of_hour.times_of(minutes.setdefault(one, Minutes()), of_hour.minute_of(end_ms - 1)) for one in shares
    }
    for name, one in series.items():
        found = window(one.buckets, end_ms, BUCKETS_MAX)
        for metric in metrics if found.is_whole else ():
            if name != WHOLE and not metric.is_of_slices:
                continue
            learning, hits = one.learning[metric.name], found.counts[metric.hits]
            of, rate = metric.exposure(found.counts, found.buckets), rates.rate_of(learning)
            rates.learn_minute(metric.rate, learning, hits, of, usually=usually.get(metric.name, 1.0))
            if name == WHOLE and rate is not None and metric.rate.is_share:
                # Also what was too unlikely: only so can a break become usual that opens an incident in each hour.
                of_hour.learn(minutes[metric.name], of_hour.minute_of(end_ms - 1), hits, rate * of)


def usual_times(minutes: Mapping[str, Minutes], metric: Metric, end_ms: int) -> list[float]:
    """How many times the forecast is usual in the windows of 1 to `BUCKETS_MAX` buckets before `end_ms`."""
    known = minutes.get(metric.name)
    return of_hour.times_before(known, end_ms, _LENGTHS_MS) if known is not None else [1.0] * BUCKETS_MAX


def _forget_old(season: Season, now_ms: int) -> None:
    """Slices that did not come for two months, and the oldest beyond the limit."""
    oldest_ms = now_ms - OCCURRENCES_MAX * 7 * 24 * HOUR_MS
    newest = {
        name: max((hours[-1].start_ms for hours in metrics.values()), default=0)
        for name, metrics in season.hours.items()
    }
    kept = sorted((name for name in newest if newest[name] > oldest_ms), key=lambda name: -newest[name])[:SLICES_MAX]
    season.hours = {name: season.hours[name] for name in kept}
