"""Traffic of one environment as topic `live` would have it: seasons, matches, ad breaks, deploys, and incidents.

Viewers follow the hour of the day and of the week, with a level of their own each day and slow noise. Two matches a week come at
the same hour, one at any; each has ad breaks. A deploy comes every working day, at about the same time. A stall is seen in
more than one bucket, as in reality: a fifth of those who rebuffer in one still do in the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, pi
from typing import Final

import numpy as np
from numpy.random import Generator

from services.alerts.core.gathering import Closed
from services.alerts.core.metrics import FIELDS
from services.alerts.core.slices import WHOLE
from shared.schemas.live import BUCKET_MS

_DAY_MS: Final = 86_400_000
_WEEK_MS: Final = 7 * _DAY_MS
#: A Monday, 00:00 UTC.
T0: Final = 1_795_996_800_000 - 1_795_996_800_000 % _WEEK_MS + 4 * _DAY_MS
#: Of those who rebuffer in a bucket, how many still do in the next.
_STILL: Final = 0.2
_CDNS: Final = (("cdn=a", 0.5), ("cdn=b", 0.3), ("cdn=c", 0.2))
_PLACES: Final = {name: place for place, name in enumerate(FIELDS)}


@dataclass(frozen=True)
class Kind:
    """One kind of environment: usual viewers, share that rebuffers, share of starts that fail."""

    name: str
    viewers: float
    rebuffering: float
    failures: float = 0.01


@dataclass(frozen=True)
class Incident:
    """From `from_ms` on so many times as much, everywhere or on one CDN."""

    from_ms: int
    times: float
    cdn: str | None = None


class Calendar:
    """What happens when, for all weeks of a run: drawn once."""

    def __init__(self, rng: Generator, weeks: int) -> None:
        self._day_level = np.exp(rng.normal(0, 0.10, weeks * 7 + 1))
        self._day_quality = np.exp(rng.normal(0, 0.05, weeks * 7 + 1))
        self._deploys = [
            day * _DAY_MS + int((10 + rng.normal(0, 0.2)) * 3_600_000) for day in range(weeks * 7) if day % 7 < 5
        ]
        self._matches: list[int] = []
        for week in range(weeks):
            start = week * _WEEK_MS
            self._matches += [start + 2 * _DAY_MS + 20 * 3_600_000, start + 5 * _DAY_MS + 18 * 3_600_000]
            self._matches.append(start + int(rng.integers(0, 7)) * _DAY_MS + int(rng.integers(10, 23)) * 3_600_000)
        self._breaks = {break_ms for match in self._matches for break_ms in range(match, match + 7_200_000, 900_000)}

    def at(self, ms: int) -> tuple[float, float]:
        """(viewers, rebuffering), each as a multiple of the usual, at a time since `T0`."""
        day, hour = ms // _DAY_MS, ms % _DAY_MS / 3_600_000
        viewers = (1 - 0.6 * cos((hour - 3) / 24 * 2 * pi)) * (1.25 if day % 7 >= 5 else 1.0) * self._day_level[day]
        quality = self._day_quality[day] * (0.9 + 0.1 * viewers)
        match = next((one for one in self._matches if one <= ms < one + 7_200_000), None)
        if match is not None:
            ramp = min((ms - match) / 600_000, (match + 7_200_000 - ms) / 300_000, 1.0)
            viewers *= 1 + 3 * ramp
            quality *= 1 + 0.15 * ramp
            if (ms - match) % 900_000 < 120_000:
                quality *= 1.3
        elif ms % 1_800_000 < 90_000:
            quality *= 1.15
        if any(0 <= ms - one < 120_000 for one in self._deploys):
            quality *= 1.25
            viewers *= 0.95
        return float(viewers), float(quality)


def buckets(
    kind: Kind,
    calendar: Calendar,
    rng: Generator,
    from_ms: int,
    to_ms: int,
    *,
    incident: Incident | None = None,
    viewers: float | None = None,
) -> Iterator[Closed]:
    """The buckets from `from_ms` to `to_ms` (since `T0`); with `viewers`, so many watch at every hour."""
    slow_viewers = slow_quality = 0.0
    stalled = dict.fromkeys([name for name, _ in _CDNS], 0)
    for ms in range(from_ms, to_ms, BUCKET_MS):
        # A first-order process whose memory is ten minutes.
        slow_viewers = 0.9917 * slow_viewers + rng.normal(0, 0.05 * 0.128)
        slow_quality = 0.9917 * slow_quality + rng.normal(0, 0.06 * 0.128)
        many, bad = calendar.at(ms)
        watching = (kind.viewers * many if viewers is None else viewers) * np.exp(slow_viewers)
        share = kind.rebuffering * bad * np.exp(slow_quality)
        counts = {}
        for name, part in _CDNS:
            is_hit = incident is not None and ms + BUCKET_MS > incident.from_ms and incident.cdn in (None, name)
            # The bucket in which it begins has it for a part of its time.
            whole = (
                min((ms + BUCKET_MS - incident.from_ms) / BUCKET_MS, 1.0) if incident is not None and is_hit else 0.0
            )
            times = 1 + (incident.times - 1) * whole if incident is not None else 1.0
            now = int(rng.poisson(watching * part))
            staying = int(rng.binomial(min(stalled[name], now), _STILL))
            entering = int(rng.binomial(now - staying, min(share * times * (1 - _STILL), 1.0)))
            stalled[name] = staying + entering
            starts = int(rng.poisson(watching * part / 120))
            counts[name] = _row(now, stalled[name], starts, int(rng.binomial(starts, min(kind.failures * times, 1.0))))
        counts[WHOLE] = [sum(column) for column in zip(*counts.values(), strict=True)]
        counts[WHOLE][_PLACES["beacons"]] = int(rng.poisson(watching * 0.6))
        yield Closed(T0 + ms, counts, True)


def _row(viewers: int, rebuffering: int, starts: int, failures: int) -> list[int]:
    row = [0] * len(FIELDS)
    row[_PLACES["viewers_now"]], row[_PLACES["rebuffering_now"]] = viewers, rebuffering
    row[_PLACES["views_started"]], row[_PLACES["failures"]] = starts, failures
    return row
