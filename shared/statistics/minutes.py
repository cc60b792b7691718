"""Minutes of the hour: how many times the forecast a share usually is in each of them, as in ad breaks on the hour. Pure.

All hours teach it together, so it is known after a day, where a season of minutes of the week would take two weeks. Old hours fade.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

MINUTES: Final = 60
MINUTE_MS: Final = 60_000
#: An hour counts for so much less than the next: half after three days.
_FADING: Final = 0.99
#: So many hours, as forecast, does each minute count for from the beginning, and so many hits: one hour shows nothing.
_PRIOR_HOURS: Final = 5.0
_PRIOR_HITS: Final = 100.0
#: So many times the forecast is the most that an hour counts for: an incident that was not noticed must not become usual.
_COUNTED_MAX: Final = 2.0


class Minutes(msgspec.Struct, array_like=True):
    """By minute of the hour, fading: hits, what was forecast of them, and in how many hours."""

    hits: list[float] = msgspec.field(default_factory=lambda: [0.0] * MINUTES)
    expected: list[float] = msgspec.field(default_factory=lambda: [0.0] * MINUTES)
    hours: list[float] = msgspec.field(default_factory=lambda: [0.0] * MINUTES)


def minute_of(at_ms: int) -> int:
    """0 to 59, of a time in ms since 1970."""
    return at_ms // MINUTE_MS % MINUTES


def times_of(minutes: Minutes, minute: int) -> float:
    """How many times the forecast is usual in this minute of the hour."""
    expected, hours = minutes.expected[minute], minutes.hours[minute]
    prior = _PRIOR_HITS + (_PRIOR_HOURS * expected / hours if hours else 0.0)
    return (minutes.hits[minute] + prior) / (expected + prior)


def times_before(minutes: Minutes, end_ms: int, lengths_ms: Iterable[int]) -> list[float]:
    """The mean of it over so much time, a minute at the most, before `end_ms`: of each length."""
    begun_ms = (end_ms - 1) % MINUTE_MS + 1
    now, before = times_of(minutes, minute_of(end_ms - 1)), times_of(minutes, minute_of(end_ms - 1 - MINUTE_MS))
    return [now if one <= begun_ms else before + (now - before) * begun_ms / one for one in lengths_ms]


def learn(minutes: Minutes, minute: int, hits: int, expected: float) -> None:
    """The minute has ended with so many hits; `expected` is the forecast without what is usual of the minute."""
    minutes.hits[minute] = minutes.hits[minute] * _FADING + min(hits, _COUNTED_MAX * expected)
    minutes.expected[minute] = minutes.expected[minute] * _FADING + expected
    minutes.hours[minute] = minutes.hours[minute] * _FADING + 1.0
