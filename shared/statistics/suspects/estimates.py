"""How counts and rates of cohorts vary by themselves, estimated from the cohorts of one and two dimensions. Pure."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Floats
from shared.statistics.suspects.likelihood import PRIOR_EVENTS, Quad

#: The median of χ² with one degree of freedom.
_CHI2_MEDIAN: Final = 0.4549
#: Cohorts from which clumping is estimated: with so many events, and so many of the same dimensions.
_EXPECTED_MIN: Final = 5.0
_CELLS_MIN: Final = 5
_LARGE_MIN: Final = 20
NATURAL: Final = 0.07
NATURAL_BOUNDS: Final = (0.05, 0.1)


def clumping(tables: Collection[Quad]) -> float:
    """By how much counts vary more than Poisson's do: events of one viewer come together. At least 1.

    The middle over all cohorts, each beside those of the same dimensions: an incident is in a few of them, or in all alike.
    """
    found = []
    for table in tables:
        usual = np.maximum(table.usual_events, 1e-9)
        common = table.exposure * usual / np.maximum(table.usual_exposure, 1e-9)
        is_enough = (common >= _EXPECTED_MIN) & (table.usual_events >= _EXPECTED_MIN)
        if np.count_nonzero(is_enough) >= _CELLS_MIN:
            events, usual, common = table.events[is_enough], usual[is_enough], common[is_enough]
            expected = common * max(float(np.median(events / common)), 1e-3)
            found.append(np.square(events - expected) / (expected + np.square(expected) / usual))
    if not found:
        return 1.0
    return max(1.0, float(np.median(np.concatenate(found))) / _CHI2_MEDIAN)

@dataclass(frozen=True)
class Variation:
    """How much cohorts vary from one range to another without a cause."""

    #: By how much counts vary more than Poisson's do: events of one viewer come together. At least 1.
    clumping: float
    #: The standard deviation of the log of a cohort's rate.
    natural: float


def variation(tables: Collection[Quad]) -> Variation:
    """Both, from all cohorts, each beside those of the same dimensions.

    A cohort's change has the variance clumping x (1 / expected + 1 / usual) + natural². Cohorts of few events show the first part,
    those of many events the second. The middle of each half counts: an incident is in a few of them, or in all alike.
    """
    changes, chances = [], []
    for table in tables:
        usual = np.maximum(table.usual_events, 1e-9)
        common = table.exposure * usual / np.maximum(table.usual_exposure, 1e-9)
        is_enough = (common >= _EXPECTED_MIN) & (table.usual_events >= _EXPECTED_MIN)
        if np.count_nonzero(is_enough) >= _CELLS_MIN:
            events, usual, common = table.events[is_enough], usual[is_enough], common[is_enough]
            expected = common * max(float(np.median(events / common)), 1e-3)
            changes.append(np.square(events / expected - 1))
            chances.append(1 / expected + 1 / usual)
    natural = NATURAL
    if not changes:
        return Variation(1.0, natural)
    change, chance = np.concatenate(changes), np.concatenate(chances)
    clumping = 1.0
    for _ in range(4):
        few = chance >= np.quantile(chance, 0.5)
        clumping = _fitting(lambda of: change[few] / (of * chance[few] + natural**2), 1.0, 1e3)
        many = clumping * chance <= NATURAL ** 2
        if np.count_nonzero(many) < _LARGE_MIN:
            natural = NATURAL
            continue
        natural = _fitting(lambda of: change[many] / (clumping * chance[many] + of**2), *NATURAL_BOUNDS)
    return Variation(clumping, natural)


def _fitting(scaled: Callable[[float], Floats], low: float, high: float) -> float:
    """The variance at which the median of squares is that of a normal deviate's, by halving."""
    for _ in range(24):
        middle = math.sqrt(low * high)
        if float(np.median(scaled(middle))) > _CHI2_MEDIAN:
            low = middle
        else:
            high = middle
    return high


def prior_events(tables: Collection[Quad], overall: float, clumped: float) -> float:
    """How much is known of a cohort's usual rate from those of others, events.

    1 / CV² of the rates of all cohorts, beyond chance (a gamma prior whose shape is estimated, as DuMouchel's shrinkage of 1999).
    `overall` is the rate of all views, `clumped` what `clumping` gives.
    """
    excess = weight = 0.0
    for table in tables:
        expected = table.usual_exposure * overall
        is_enough = expected >= _EXPECTED_MIN
        off = table.usual_events[is_enough] - expected[is_enough]
        excess += float((np.square(off) - clumped * expected[is_enough]).sum())
        weight += float(np.square(expected[is_enough]).sum())
    least, most = PRIOR_EVENTS
    return min(most, max(least, weight / excess)) if excess > 0 else most if weight > 0 else least
