"""Finds suspects one after the other: the best explanation, then the best one of the remaining views. Pure; docs/suspects.md.

All cohorts of one and two dimensions are looked at. Those of three and four extend the best ones of one dimension less: the effect
shows in them, however diluted.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from shared.statistics.suspects.candidates import (
    BEAM,
    ORDER_MAX,
    Candidate,
    best_of_each,
    first_of_same,
    that_matter,
)
from shared.statistics.suspects.cells import cells_of
from shared.statistics.suspects.counts import OTHER, Counts, Floats
from shared.statistics.suspects.estimates import apart_by_themselves
from shared.statistics.suspects.likelihood import (
    AMONG_COHORTS,
    EVENTS_MIN,
    OVER_TIME,
    Evidence,
    Quad,
    evidence,
)
from shared.statistics.suspects.ranges import ranges
from shared.statistics.suspects.rows import Cohort, Place, in_one_line
from shared.statistics.suspects.suspect import COUNTED, LINE, Basis, Searched, Suspect

#: Of each extension by a dimension the values that are kept.
_KEPT: Final = 3
_KEPT_OF_PAIR: Final = 10
#: What each condition of a description costs besides the choice of its value, nats.
CONDITION_COST: Final = 1.0
#: How many cohorts near the line are looked at in all views: there they may be above it.
NEAR_MAX: Final = 12
#: A value is new if its share of the exposure was less than this part of what it is now.
_NEW: Final = 0.02


def suspects(counts: Counts, *, limit: int = 5) -> list[Suspect]:
    """The suspects, the best explanation first. None where nothing is worse than chance and natural change make it.

    Each leaves out the rows of those before it, so no row counts twice. Cost: linear in the rows.
    """
    return searched(counts, limit=limit).found


def searched(counts: Counts, *, limit: int = 5) -> Searched:
    """As `suspects`, and what is below the line but above `COUNTED` when those are left out."""
    return Search(counts).until(limit)


class Search:
    """A search of these counts, which can go on where it has ended."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._cards = [len(values) for values in counts.values]
        self._ranges = ranges(counts)
        #: All values of all dimensions in one line: where each dimension begins, which one each is of, and which can be suspects.
        self._starts = in_one_line(self._cards)
        self._dimension = np.repeat(np.arange(len(self._cards)), self._cards)
        self._is_value = np.arange(self._starts[-1]) - self._starts[self._dimension] != OTHER
        self._total = self._ranges.total()
        self._mix = self._ranges.mix()
        places = range(len(self._cards))
        self._cells = cells_of(self._cards)
        self._tables = dict(self._ranges.tables())
        present = [int(np.count_nonzero(self._tables[(place,)].exposure[1:])) for place in places]
        self._costs = [CONDITION_COST + math.log(max(2, count)) for count in present]
        self._found: list[Suspect] = []
        # Beside the rest exposure is both what there is and what is usual.
        sampled = (counts.now.sampled, 0.0 if counts.is_beside_rest else counts.usual.sampled)
        self._plain = self._apart = replace(AMONG_COHORTS if counts.is_beside_rest else OVER_TIME, sampled=sampled)

    def until(self, limit: int) -> Searched:
        """Goes on until so many suspects are found, or there are no more."""
        while len(self._found) < limit:
            candidates = [one for one in self._candidates() if one.beyond > COUNTED]
            above = [one for one in candidates if one.beyond > LINE]
            if not above:
                return Searched([*self._found], [self._named(one) for one in first_of_same(candidates)[:NEAR_MAX]])
            best = self._without_old(max(above, key=lambda one: one.score))
            self._found.append(self._named(best))
            self._take_cohort(best.cohort)
        return Searched(self._found[:limit], [])

    def _candidates(self) -> list[Candidate]:
        """The best cohorts of each level."""
        if self._total.events < EVENTS_MIN:
            return []
        # A suspect that is taken makes the others vary less.
        self._apart = apart_by_themselves(self._plain, self._tables.values(), self._overall_rate())
        self._rates = self._usual_rates()
        self._rates_in_line = np.concatenate(self._rates)
        found = list(self._of_tables())
        front, seen = [one for one in found if len(one.cohort) == 2], set[Cohort]()
        for _ in range(2, min(ORDER_MAX, len(self._cards))):
            front = sorted(front, key=lambda one: -one.score)[:BEAM]
            front = list(self._all_extended(front, seen))
            found += front
        return found

    def _without_old(self, best: Candidate) -> Candidate:
        """The part of a cohort that was not there before, where the remainder is no suspect without it; else the cohort.

        Of a new player version nothing is known from before, so its device explains the change better, by likelihood alone.
        """
        if self._counts.is_beside_rest:
            return best
        within = {place for place, _ in best.cohort}
        whole = Quad(*(np.array([part]) for part in best.quad))
        prior = np.array([max(float(self._rates[place][code]) for place, code in best.cohort)])
        its = Quad(*self._ranges.by_value([best.cohort]))
        for place in set(range(len(self._cards))) - within:
            start, end = self._starts[place : place + 2]
            table, of_all = Quad(*(part[0, start:end] for part in its.parts)), self._tables[(place,)]
            is_new = of_all.usual_exposure * self._total.exposure < _NEW * of_all.exposure * self._total.usual_exposure
            codes = np.flatnonzero(is_new & (table.events >= EVENTS_MIN))
            for code in codes[codes != OTHER]:
                only = np.array([code])
                rest = evidence(whole - table[only], self._total, prior, self._apart)
                own = evidence(of_all[only], self._total, prior, self._apart)
                (alone,) = self._judged([((place, int(code)),)], of_all[only], own, prior)
                if float(rest.beyond[0]) - best.cost <= LINE and alone.beyond > LINE:
                    return alone
        return best

    def _take_cohort(self, cohort: Cohort) -> None:
        """Leaves the rows of a cohort out from now on."""
        self._ranges.take(cohort, self._tables)
        self._total = Quad(*(np.maximum(part.sum(), 0.0) for part in self._tables[(0,)].parts))

    def _named(self, one: Candidate) -> Suspect:
        """A candidate by its values."""
        event, exposure = self._counts.event, self._ranges.exposure(one.cohort)
        return Suspect(
            tuple((self._counts.dimensions[place], self._counts.values[place][code]) for place, code in one.cohort),
            one.quad[0] * event,
            exposure[0],
            one.quad[2] * event,
            exposure[1],
            one.excess * event,
            one.factor,
            one.beyond,
            one.score,
            Basis(one.prior_rate, self._apart, one.cost, event, self._ranges.mix(one.cohort), self._mix),
        )

    def _usual_rates(self) -> list[Floats]:
        """By dimension and value the usual rate, drawn towards that of all."""
        overall, prior = self._overall_rate(), self._apart.prior_events
        return [
            (self._tables[(place,)].usual_events + prior) / (self._tables[(place,)].usual_exposure + prior / overall)
            for place in range(len(self._cards))
        ]

    def _overall_rate(self) -> float:
        total = self._total
        return float((total.usual_events + 0.5) / max(float(total.usual_exposure), 1.0))

    def _of_tables(self) -> Iterator[Candidate]:
        """The best cohorts of one dimension and of two. All are judged together: each call costs more than its numbers."""
        its, table, quad = self._cells.with_events(self._tables, EVENTS_MIN)
        first, second = self._cells.first[its], self._cells.second[its]
        prior = np.maximum(self._rates_in_line[first], self._rates_in_line[second])
        prior[first == second] = self._overall_rate()
        found = evidence(quad, self._total, prior, self._apart)
        best = best_of_each(found, table, _KEPT_OF_PAIR)
        costs = np.array(self._costs)[self._dimension]
        cost = costs[first[best]] + np.where(first[best] != second[best], costs[second[best]], 0.0)
        is_pair = first[best] != second[best]
        scores = np.where(is_pair, found.gain[best] - cost, -np.inf)
        best = best[that_matter(scores, found.beyond[best] - cost)]
        values = zip(first[best].tolist(), second[best].tolist(), strict=True)
        cohorts = (tuple(map(self._place, dict.fromkeys(its))) for its in values)
        return self._judged(cohorts, quad[best], found[best], prior[best])

    def _place(self, value: int) -> Place:
        """The dimension and the code of a value in the line of all values."""
        dimension = int(self._dimension[value])
        return dimension, value - int(self._starts[dimension])

    def _all_extended(self, front: Sequence[Candidate], seen: set[Cohort]) -> Iterator[Candidate]:
        """Each cohort with a further condition, judged together."""
        if not front:
            return
        sums = Quad(*self._ranges.by_value([one.cohort for one in front]))
        is_extension = self._is_value & (sums.events >= EVENTS_MIN)
        for number, one in enumerate(front):
            for place, _ in one.cohort:
                is_extension[number, self._starts[place] : self._starts[place + 1]] = False
        numbers, places = np.nonzero(is_extension)
        quad = Quad(*(part[numbers, places] for part in sums.parts))
        highest = np.array([max(float(self._rates[place][code]) for place, code in one.cohort) for one in front])
        prior = np.maximum(self._rates_in_line[places], highest[numbers])
        found = evidence(quad, self._total, prior, self._apart)
        best = best_of_each(found, numbers * len(self._cards) + self._dimension[places], _KEPT)
        cost = (
            np.array([one.cost for one in front])[numbers[best]] + np.array(self._costs)[self._dimension[places[best]]]
        )
        best = best[that_matter(found.gain[best] - cost, found.beyond[best] - cost)]
        pairs = zip(numbers[best].tolist(), places[best].tolist(), strict=True)
        cohorts = (tuple(sorted((*front[number].cohort, self._place(place)))) for number, place in pairs)
        for one in self._judged(cohorts, quad[best], found[best], prior[best]):
            if one.cohort not in seen:
                seen.add(one.cohort)
                yield one

    def _judged(self, cohorts: Iterable[Cohort], quad: Quad, found: Evidence, prior: Floats) -> Iterator[Candidate]:
        """Candidates: each cohort with what is at its place."""
        evident = (found.gain, found.beyond, found.excess, found.factor)
        parts = zip(*(part.tolist() for part in (*evident, prior, *quad.parts)), strict=True)
        for cohort, (gain, beyond, excess, factor, rate, *counts) in zip(cohorts, parts, strict=True):
            cost = sum(self._costs[place] for place, _ in cohort)
            yield Candidate(cohort, gain - cost, beyond - cost, tuple(counts), excess, factor, rate, cost)
