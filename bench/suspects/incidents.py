"""Random incidents in a world, and which of them anybody could find. Both are decided before anything is searched."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.suspects.world import DIMENSIONS, Columns, Hour, World, drawn

ORDER_MAX: Final = 4
SHARES: Final = (0.002, 0.2)
STRENGTHS: Final = (1.5, 10.0)
#: Without each of its conditions an incident's cohort has so many times more views: none is said by the others.
_NARROWS: Final = 1.25
#: Rates of the metrics: failures, exits before start, slow starts.
RATES: Final = (0.01, 0.04, 0.08)
#: The expected log of the likelihood ratio, nats, from which on an incident can be found: a million calm cohorts reach
#: ln 10⁶ = 13.8 by chance, and one in twenty incidents is 1.64 standard deviations below what is expected of it:
#: (√(2·13.8) + 1.64)² / 2.
DETECTABLE_NATS: Final = 23.8
#: … and from which on it is distinguished from the same cohort without one of its conditions: one of 300 values is ln 300 = 5.7.
APART_NATS: Final = 5.7

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Incident:
    """What is made worse: views with these values, by this factor. Both are drawn evenly in their logs."""

    values: tuple[tuple[int, int], ...]
    strength: float
    #: Of the hour's views.
    share: float
    is_detectable: bool

    def within(self, columns: Columns) -> Mask:
        """Which views are in its cohort."""
        return _within(self.values, columns)

    def __str__(self) -> str:
        return " × ".join(f"{DIMENSIONS[place]}={code}" for place, code in self.values)


@dataclass(frozen=True)
class Case:
    """An hour, what is usual, and what was done to the hour."""

    world: World
    now: Hour
    usual: Hour
    incident: Incident | None


def case(world: World, seed: int, *, views: int, usual_views: int, is_calm: bool) -> Case:
    """One case of a seed: an incident of one to four dimensions, or a calm hour."""
    chance = np.random.default_rng(seed)
    rate = RATES[seed % len(RATES)]
    usual = world.hour(chance, usual_views, rate, is_first=True)
    now = world.hour(chance, views, rate, is_first=False)
    incident = None if is_calm else _incident(chance, now, usual)
    rates = now.rates
    if incident is not None:
        rates = np.where(incident.within(now.columns), np.minimum(rates * incident.strength, 0.95), rates)
    return Case(world, drawn(chance, now, rates), drawn(chance, usual, usual.rates), incident)


def _incident(chance: np.random.Generator, now: Hour, usual: Hour) -> Incident:
    order = int(chance.integers(1, ORDER_MAX + 1))
    strength = _log_even(chance, STRENGTHS)
    while True:
        wanted = _log_even(chance, SHARES)
        for _ in range(200):
            # The values of some view: so the cohort is not empty.
            view = int(chance.integers(now.rates.size))
            places = sorted(map(int, chance.choice(len(DIMENSIONS), order, replace=False)))
            values = tuple((place, int(now.columns[place, view])) for place in places)
            share = float(_within(values, now.columns).mean())
            is_wanted = max(SHARES[0], wanted / 1.5) <= share <= min(SHARES[1], wanted * 1.5)
            if is_wanted and _needs_all(values, share, now):
                return Incident(values, strength, share, _is_detectable(values, strength, now, usual))


def _log_even(chance: np.random.Generator, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return math.exp(float(chance.uniform(math.log(low), math.log(high))))


def _within(values: tuple[tuple[int, int], ...], columns: Columns) -> Mask:
    found: Mask = np.all([columns[place] == code for place, code in values], axis=0)
    return found


def _wider(values: tuple[tuple[int, int], ...]) -> list[tuple[tuple[int, int], ...]]:
    return [values[:number] + values[number + 1 :] for number in range(len(values))] if len(values) > 1 else []


def _needs_all(values: tuple[tuple[int, int], ...], share: float, now: Hour) -> bool:
    return all(float(_within(wider, now.columns).mean()) >= _NARROWS * share for wider in _wider(values))


def _is_detectable(values: tuple[tuple[int, int], ...], strength: float, now: Hour, usual: Hour) -> bool:
    """Whether what is expected of it tells it from chance, and from wider cohorts."""

    def expected(cohort: tuple[tuple[int, int], ...]) -> float:
        inside = _within(values, now.columns)
        worse = np.where(inside, np.minimum(strength * now.rates, 0.95), now.rates)
        mine, its = _within(cohort, now.columns), _within(cohort, usual.columns)
        return _nats(
            (worse[mine].sum(), mine.sum(), usual.rates[its].sum(), its.sum()),
            (worse.sum(), mine.size, usual.rates.sum(), its.size),
        )

    own = expected(values)
    return own >= DETECTABLE_NATS and all(own - expected(wider) >= APART_NATS for wider in _wider(values))


def _nats(of: tuple[float, ...], total: tuple[float, ...]) -> float:
    """The log likelihood ratio of two factors (of a cohort and of the rest) against one, for expected counts."""
    rest = tuple(whole - part for whole, part in zip(total, of, strict=True))
    common = sum(one[0] * one[3] / (one[1] + one[3]) for one in (of, rest)) / sum(
        one[2] * one[1] / (one[1] + one[3]) for one in (of, rest)
    )
    return sum(
        _fit(one, (one[0] * one[3]) / max(one[1] * one[2], 1e-12)) - _fit(one, common)
        for one in (of, rest)
        if one[0] > 0 and one[2] > 0
    )


def _fit(counts: tuple[float, ...], factor: float) -> float:
    events, exposure, usual, base = counts
    share = factor * exposure / (factor * exposure + base)
    return events * math.log(max(share, 1e-12)) + usual * math.log(max(1 - share, 1e-12))
