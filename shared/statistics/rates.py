"""Rates: what is usual of one, learned minute by minute and kept by hour of the week, and how unlikely is what is counted. Pure.

A forecast is the rate of the season (`seasons`). For a share, it is multiplied by how far the last minutes were from it. This
factor rises slowly and falls quickly. The difference of figures beyond chance is learned with them. Windows of 15 s differ from
their neighbours because a viewer is counted more than once. Minutes differ from their forecasts because the rate itself varies,
too.
"""

from math import sqrt
from typing import Final

import msgspec

from shared.statistics.seasons import MINUTES_MIN, PRIOR_DISPERSION, Expected, Hour, Past, Rate, SeasonName, expected
from shared.statistics.tails import count_tail, share_tail

#: A minute less likely than this is not learned, unless it has been so for a day: then it is the new usual.
UNLEARNED_BELOW: Final = 1e-5
UNLEARNED_MINUTES_MAX: Final = 24 * 60
#: What one window may add to the dispersion, at the most 10 deviations squared: an incident that was not noticed.
_SQUARE_MAX: Final = 100.0
#: By how much the rate may differ from its forecast by itself, as a fraction: the less is known, the more.
_UNSURE: Final[dict[SeasonName, float]] = {"hour_of_week": 0.03, "hour_of_day": 0.05, "recent": 0.1}
#: A season has few windows, and these follow each other. So the variance of its rate is mixed with that of all hours, which counts
#: for this many windows of each hour, of at most so many hours. An hour counts by this factor less than the next.
_VARYING_WINDOWS: Final = 10.0
_VARYING_HOURS_MAX: Final = 24.0
_FADING_VARYING: Final = 0.99
#: Each of the last minutes counts by this factor less than the next: half after ten minutes.
_FADING: Final = 0.933
#: The same of the very last minutes: half after two and a half.
_FADING_QUICK: Final = 0.75
#: Hits that the season counts for beside the last minutes.
_LEVEL_HITS: Final = 15.0
_LEVEL_MAX: Final = 3.0
#: In the forecast a minute counts for at most this many times the forecast, and what chance may add.
_STEP_MAX: Final = 1.2
#: Buckets of a short window.
SHORT: Final = 3


class Learning(msgspec.Struct, array_like=True):
    """What is being learned of one rate."""

    hour: Hour
    expected: Expected | None = None
    #: Of the last minutes, fading: hits, and what the season expected.
    recent_hits: float = 0.0
    recent_expected: float = 0.0
    #: Minutes in a row that were not learned.
    unlearned: int = 0
    #: Whether its level follows the last minutes: that of a count is its season's, or a slow silence would be usual.
    is_share: bool = True
    #: The last window of 15 s: hits, and of how many.
    short_hits: int = 0
    short_of: int = 0
    #: As the recent ones, fading sooner.
    quick_hits: float = 0.0
    quick_expected: float = 0.0
    #: Of the hour, what was not learned: minutes, hits, and of how many.
    left_minutes: int = 0
    left_hits: int = 0
    left_of: int = 0
    #: Of all hours, fading: how much the rate itself varied from its forecast, as a fraction squared, and how many hours.
    varying: float = 0.0
    varying_hours: float = 0.0


def begin_hour(learning: Learning | None, kind: Rate, start_ms: int, past: Past) -> Learning:
    """The learning at the beginning of an hour; `past` is what is known of an hour of the week, the newest last."""
    begun = learning or Learning(Hour(start_ms), is_share=kind.is_share)
    _learn_varying(begun)
    begun.hour = Hour(start_ms)
    begun.left_minutes = begun.left_hits = begun.left_of = 0
    former, begun.expected = begun.expected, expected(kind, start_ms, past)
    if former is not None and begun.expected is not None and "recent" in (former.season, begun.expected.season):
        # The last hours say how high it is, not how much higher than at other times: the level stays, in the new measure.
        begun.recent_expected *= begun.expected.rate / former.rate
        begun.quick_expected *= begun.expected.rate / former.rate
    return begun


def end_hour(learning: Learning) -> Hour:
    """The hour that has ended; with what was not learned of it, and doubtful, where little was."""
    hour = learning.hour
    if hour.minutes >= MINUTES_MIN or not learning.left_minutes:
        return hour
    minutes, hits, of = hour.minutes + learning.left_minutes, hour.hits + learning.left_hits, hour.of + learning.left_of
    return msgspec.structs.replace(hour, minutes=minutes, hits=hits, of=of, is_doubtful=True)


def rate_of(learning: Learning) -> float | None:
    """The forecast: hits of one; None while nothing is known."""
    if learning.expected is None:
        return None
    if not learning.is_share:
        return learning.expected.rate
    level = (learning.recent_hits + _LEVEL_HITS) / (learning.recent_expected + _LEVEL_HITS)
    quick_hits = learning.quick_hits + _LEVEL_HITS
    # Down it follows the very last minutes, as far as they are surely lower: what comes after a bump is measured from there.
    level = min(level, quick_hits / (learning.quick_expected + _LEVEL_HITS) * (1 + 2 / sqrt(quick_hits)))
    return learning.expected.rate * min(max(level, 1 / _LEVEL_MAX), _LEVEL_MAX)


def likelihood(
    kind: Rate, learning: Learning, hits: int, of: int, *, times: float = 1.0
) -> tuple[float, float] | None:  # fmt: skip
    """(probability, usual rate): how likely hits as far out, or farther, on the side of anomalies; None while nothing is known.

    The usual rate is taken as `times` higher (or lower, where an anomaly is below it).
    """
    rate = rate_of(learning)
    if rate is None or learning.expected is None or not of:
        return None
    rate *= times if kind.is_above else 1 / times
    rate = min(rate, 0.999) if kind.is_share else rate
    known = learning.expected
    # Who stalls is counted in more than one bucket: so many hits are worth fewer.
    worth = 1 / known.short
    wanted, seen = rate * of * worth, int(hits * worth)
    # What minutes vary by more is the rate's own; so is what is not known of it. As a fraction of the rate, squared.
    unsure = _varying(learning, known) + 1 / (known.hits + 0.5) + _UNSURE[known.season] ** 2
    # Most windows are near what is usual: their exact probability is of no use.
    if (seen - wanted if kind.is_above else wanted - seen) < 2 * (wanted + wanted**2 * unsure) ** 0.5:
        return 1.0, rate
    if kind.is_share:
        together = max((1 - rate) / (rate * unsure) - 1, 1e-3)
        return share_tail(seen, max(int(of * worth), seen), rate * together, (1 - rate) * together), rate
    shape = 1 / unsure
    return count_tail(seen, shape, shape / wanted), rate


def learn_short(kind: Rate, learning: Learning, hits: int, of: int) -> None:
    """A window of 15 s has ended."""
    square = _difference(kind, (hits, of), (learning.short_hits, learning.short_of))
    learning.short_hits, learning.short_of = hits, of
    if square is not None and not learning.unlearned:
        learning.hour.short_windows += 1
        learning.hour.short_squares += square


def learn_minute(kind: Rate, learning: Learning, hits: int, of: int, *, usually: float = 1.0) -> None:
    """A minute has ended; so late in the hour `usually` times the forecast is usual. One that is too unlikely is not learned."""
    if not of:
        return
    found = likelihood(kind, learning, hits, of, times=usually)
    if found is not None and found[0] < UNLEARNED_BELOW and learning.unlearned < UNLEARNED_MINUTES_MAX:
        learning.unlearned += 1
        learning.left_minutes += 1
        learning.left_hits += hits
        learning.left_of += of
        return
    learning.unlearned = 0
    square = _square(kind, learning, hits, of, usually)
    if square is not None:
        learning.hour.long_windows += 1
        learning.hour.long_squares += square
    hour = learning.hour
    hour.minutes += 1
    hour.hits += hits
    hour.of += of
    if learning.expected is not None and learning.is_share:
        _learn_level(learning, learning.expected, hits, of * usually)


def _learn_level(learning: Learning, known: Expected, hits: int, of: float) -> None:
    forecast, wanted = (rate_of(learning) or 0.0) * of, known.rate * of
    # What is too much raises the level little by little: an incident that begins must not hide itself.
    counted = min(hits, forecast * _STEP_MAX + 3 * sqrt(forecast))
    learning.recent_hits = learning.recent_hits * _FADING + counted
    learning.recent_expected = learning.recent_expected * _FADING + wanted
    learning.quick_hits = learning.quick_hits * _FADING_QUICK + hits
    learning.quick_expected = learning.quick_expected * _FADING_QUICK + wanted


def _square(kind: Rate, learning: Learning, hits: int, of: int, usually: float) -> float | None:
    """The squared deviation from the forecast (in the first hour: from the hour's mean), in what chance alone gives."""
    rate = rate_of(learning)
    if rate is None:
        rate = learning.hour.hits / learning.hour.of if learning.hour.minutes >= 3 else 0.0
    if not of or not rate:
        return None
    wanted = rate * usually * of
    variance = wanted * (1 - rate) if kind.is_share else wanted
    return min((hits - wanted) ** 2 / max(variance, 1e-9), _SQUARE_MAX)


def _learn_varying(learning: Learning) -> None:
    """An hour has ended."""
    hour = learning.hour
    if hour.long_windows < MINUTES_MIN or not hour.hits:
        return
    short = hour.short_squares / hour.short_windows if hour.short_windows else PRIOR_DISPERSION
    excess = (hour.long_squares / hour.long_windows - short) * hour.minutes / hour.hits
    learning.varying = learning.varying * _FADING_VARYING + excess
    learning.varying_hours = learning.varying_hours * _FADING_VARYING + 1.0


def _varying(learning: Learning, known: Expected) -> float:
    """The variance of the rate itself, as a fraction squared: of the season, and of all hours, by how much is known of each."""
    own = max(known.long - known.short, 0.0) / known.long_hits
    if not learning.varying_hours:
        return own
    of_all = _VARYING_WINDOWS * min(learning.varying_hours, _VARYING_HOURS_MAX)
    found = own * known.long_windows + learning.varying / learning.varying_hours * of_all
    return max(found / (known.long_windows + of_all), 0.0)


def _difference(kind: Rate, now: tuple[int, int], before: tuple[int, int]) -> float | None:
    """The squared difference of two windows that follow each other, in what chance alone gives.

    Source: J. von Neumann, Distribution of the Ratio of the Mean Square Successive Difference to the Variance (1941): what changes
    slowly is not in it.
    """
    (hits, of), (hits_before, of_before) = now, before
    if not of or not of_before or not hits + hits_before:
        return None
    rate = (hits + hits_before) / (of + of_before)
    variance = (rate * (1 - rate) if kind.is_share else rate) * (1 / of + 1 / of_before)
    return min((hits / of - hits_before / of_before) ** 2 / max(variance, 1e-12), _SQUARE_MAX)
