"""What is compared: each method names cohorts of a case. Ours does what `/v1/suspects` does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from operator import and_
from typing import Final

import numpy as np

from bench.suspects import peers
from bench.suspects.incidents import Case
from bench.suspects.world import DIMENSIONS
from services.query.core.suspects.question import SUSPECTS_MAX, AskedSuspects
from shared.statistics.suspects.counts import Counts
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.search import searched
from shared.statistics.suspects.suspect import POSSIBLE_MAX, Searched, Suspect, confirmed, judgements, possible

#: As many as the service names, where a question does not say.
LIMIT: Final = AskedSuspects(metric="").limit
OURS: Final = "Playhead"
Cohort = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Named:
    """The cohorts that a method names, the first one first; and those that it calls possible, which come after them."""

    certain: list[Cohort]
    possible: list[Cohort] = field(default_factory=list)


def ours(made: Case, counts: Counts) -> Named:
    """The answer of `/v1/suspects`: those of a sample are confirmed by all views, suspects are ranked by excess."""
    searched_views = counts.now.events.size + counts.usual.events.size
    is_sample = searched_views < made.now.events.size + made.usual.events.size
    found = searched(counts, limit=SUSPECTS_MAX if is_sample else LIMIT)
    while True:
        quads, total, together = counted_in_all(made, found)
        said = judgements(found, quads, total)
        places = confirmed(found, said, together) if is_sample else [*range(len(found.found))]
        again = found.to_be_counted_again(places)
        if again is None:
            most = min(POSSIBLE_MAX, max(0, LIMIT - len(places)))
            others = possible(found, said, places, together, most)
            ranked = sorted(places[:LIMIT], key=lambda place: -said[place].excess)
            certain, near = ([_cohort(found.listed[place]) for place in of] for of in (ranked, others))
            return Named(certain, near)
        found = again


def counted_in_all(made: Case, found: Searched) -> tuple[list[Quad], Quad, list[int]]:
    """The counts of each cohort in all views, without views of those found before it, and of all views.

    The last are the bits of those with which each has views in common now.
    """
    quads: list[list[float]] = [[] for _ in found.listed]
    total: list[float] = []
    together = [0] * len(found.listed)
    for hour in (made.now, made.usual):
        # Cohorts that are near the line have conditions in common.
        holds = cache(lambda place, code, columns=hour.columns: columns[place] == code)
        is_free, before = np.ones(hour.events.size, bool), list[np.ndarray]()
        for number, one in enumerate(found.listed):
            is_in = reduce(and_, (holds(*condition) for condition in _cohort(one)), is_free)
            quads[number] += [float(hour.events[is_in].sum()), float(np.count_nonzero(is_in))]
            if number < len(found.found):
                is_free &= ~is_in
            elif hour is made.now:
                for other, its in enumerate(before, start=len(found.found)):
                    if np.any(is_in & its):
                        together[number] |= 1 << other
                        together[other] |= 1 << number
                before.append(is_in)
        total += [float(hour.events.sum()), float(hour.events.size)]
    return [Quad(*map(np.array, quad)) for quad in quads], Quad(*map(np.array, total)), together


def _cohort(one: Suspect) -> Cohort:
    return tuple((DIMENSIONS.index(name), int(value or "")) for name, value in one.values)


def _of_codes(found: Sequence[Cohort], counts: Counts) -> list[Cohort]:
    return [tuple((place, int(counts.values[place][code] or "-1")) for place, code in one) for one in found]


def theirs(method: Callable[[Counts], list[Cohort]], _made: Case, counts: Counts) -> Named:
    """What another method names, by the world's values. It searches the same sample."""
    return Named(_of_codes(method(counts), counts))


METHODS: Final[dict[str, Callable[[Case, Counts], Named]]] = {
    OURS: ours,
    "Adtributor": partial(theirs, peers.adtributor),
    "RiskLoc": partial(theirs, peers.riskloc),
}
