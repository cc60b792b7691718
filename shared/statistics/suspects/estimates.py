"""How counts and rates of cohorts vary by themselves, estimated from the cohorts of one and two dimensions. Pure."""

from collections.abc import Collection
from typing import Final

import numpy as np

from shared.statistics.suspects.likelihood import PRIOR_EVENTS, Quad

#: The median of χ² with one degree of freedom.
_CHI2_MEDIAN: Final = 0.4549
#: Cohorts from which clumping is estimated: with so many events, and so many of the same dimensions.
_EXPECTED_MIN: Final = 5.0
_CELLS_MIN: Final = 5


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
