"""What may be a suspect: descriptions of rows with their evidence, and which of many are looked at further. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Floats
from shared.statistics.suspects.likelihood import Evidence
from shared.statistics.suspects.rows import Cohort, Indices
from shared.statistics.suspects.suspect import COUNTED

ORDER_MAX: Final = 4
#: Cohorts of a level that are extended.
BEAM: Final = 36


@dataclass(frozen=True)
class Candidate:
    """A cohort, its counts, and what they say of it."""

    cohort: Cohort
    score: float
    beyond: float
    quad: tuple[float, float, float, float]
    excess: float
    factor: float
    prior_rate: float
    cost: float


def first_of_same(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best description of each set of rows, the best first."""
    first: dict[tuple[float, ...], Candidate] = {}
    for one in sorted(candidates, key=lambda one: -one.score):
        first.setdefault(one.quad, one)
    return list(first.values())


def best_of_each(found: Evidence, groups: Indices, most: int) -> Indices:
    """Of each group the places of the greatest gains above zero, and of the greatest among those that are apart."""
    chosen = np.zeros(groups.size, bool)
    for gain in found.gains:
        above = np.flatnonzero(gain > 0)
        order = above[np.lexsort((-gain[above], groups[above]))]
        its = groups[order]
        is_first = np.concatenate([np.ones(1, bool), its[1:] != its[:-1]])[: order.size]
        rank = np.arange(order.size) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        chosen[order[rank < most]] = True
    return np.flatnonzero(chosen)


def that_matter(scores: Floats, beyond: Floats) -> Indices:
    """The places of candidates of a level that are counted or extended: a cohort has at most `ORDER_MAX` of them."""
    matters = beyond > COUNTED
    matters[np.argsort(-scores, kind="stable")[: ORDER_MAX * BEAM]] = True
    return np.flatnonzero(matters)
