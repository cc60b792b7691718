"""How counts and rates of cohorts vary by themselves, estimated from the cohorts of one and two dimensions. Pure."""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Floats
from shared.statistics.suspects.likelihood import PRIOR_EVENTS, Apart, Quad

#: The median of χ² with one degree of freedom.
_CHI2_MEDIAN: Final = 0.4549
#: Cohorts from which variation is estimated: with so many events, and so many of the same dimensions.
_EXPECTED_MIN: Final = 5.0
_CELLS_MIN: Final = 5
#: Of cohorts with so many events that chance is less than natural change, at least so many tell the latter.
_LARGE_MIN: Final = 20
#: Its bounds: an incident in a large part of all views is no natural change.
_NATURAL: Final = (0.05, 0.1)
_CLUMPING: Final = (1.0, 1_000.0)
_ROUNDS: Final = 4


def apart_by_themselves(apart: Apart, tables: Collection[Quad], overall: float) -> Apart:
    """`apart` as these cohorts show it. `overall` is the rate of all views."""
    natural, clumping = _variation(tables, apart.natural)
    return replace(apart, natural=natural, clumping=clumping, prior_events=_prior_events(tables, overall, clumping))


def _variation(tables: Collection[Quad], natural: float) -> tuple[float, float]:
    """The standard deviation of the log of cohorts' rates, and how much more than Poisson's counts vary: events come in clumps.

    A cohort's change, beside those of the same dimensions, has the variance clumping x (1 / expected + 1 / usual) + natural².
    Cohorts of few events show the first part, those of many the second. The middle of each counts: an incident is in a few of
    them, or in all alike. Where `natural` is 0 it stays so.
    """
    change, chance = _changes(tables)
    if not change.size:
        return natural, 1.0
    clumping = 1.0
    few = chance >= np.median(chance) if natural else np.full(chance.size, True)
    for _ in range(_ROUNDS if natural else 1):
        found = natural
        clumping = _middle((change[few] / _CHI2_MEDIAN - found**2) / chance[few], _CLUMPING)
        many = clumping * chance < _NATURAL[0] * _NATURAL[1]
        if not natural or np.count_nonzero(many) < _LARGE_MIN:
            break
        least, most = _NATURAL
        natural = math.sqrt(_middle(change[many] / _CHI2_MEDIAN - clumping * chance[many], (least**2, most**2)))
    return natural, clumping


def _changes(tables: Collection[Quad]) -> tuple[Floats, Floats]:
    """Of each cohort the square of its relative change, and that square's expected size by chance."""
    changes, chances = [np.zeros(0)], [np.zeros(0)]
    for table in tables:
        usual = np.maximum(table.usual_events, 1e-9)
        common = table.exposure * usual / np.maximum(table.usual_exposure, 1e-9)
        is_enough = (common >= _EXPECTED_MIN) & (table.usual_events >= _EXPECTED_MIN)
        if np.count_nonzero(is_enough) >= _CELLS_MIN:
            events, usual, common = table.events[is_enough], usual[is_enough], common[is_enough]
            expected = common * max(float(np.median(events / common)), 1e-3)
            changes.append(np.square(events / expected - 1))
            chances.append(1 / expected + 1 / usual)
    return np.concatenate(changes), np.concatenate(chances)


def _middle(fitting: Floats, bounds: tuple[float, float]) -> float:
    """The middle of what would fit each cohort's square best, within bounds."""
    least, most = bounds
    return min(most, max(least, float(np.median(fitting))))


def _prior_events(tables: Collection[Quad], overall: float, clumped: float) -> float:
    """How much is known of a cohort's usual rate from those of others, events.

    1 / CV² of the rates of all cohorts, beyond chance (a gamma prior whose shape is estimated, as DuMouchel's shrinkage of 1999).
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
