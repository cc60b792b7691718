"""Rows of one range, prepared for the search: sums by value, and by value within a cohort. Pure."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import DIMENSIONS_MAX, VALUES_MAX, Floats, Side
from shared.statistics.suspects.joint import IN_TURN_MAX, in_turn, with_all_pairs

Indices = NDArray[np.intp]

#: One or two dimensions.
Dimensions = tuple[int, ...]
#: A dimension and the code of a value.
Place = tuple[int, int]
#: The rows that have all of these values.
Cohort = tuple[Place, ...]

assert np.iinfo(np.uint16).max >= DIMENSIONS_MAX * max(IN_TURN_MAX, VALUES_MAX + 1)

#: Rows of a cohort that are summed by one call: some 16 B a row and dimension.
_ROWS_AT_ONCE: Final = 1 << 16


def in_one_line(sizes: Sequence[int]) -> Indices:
    """Where each of several begins, of which each has so many, if all are in one line; last, how many there are."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


class Rows:
    """The rows of one range that no suspect has taken yet."""

    def __init__(self, side: Side, cards: Sequence[int], event: float) -> None:
        self._codes = side.codes
        self._events = _exact(side.events / event)
        self._exposure = _exact(side.exposure)
        self._is_free = np.ones(side.exposure.size, bool)
        self._pairs = with_all_pairs(cards)
        self._in_turn = in_turn(cards)
        self._starts = in_one_line([joint.size for joint in self._in_turn])
        #: Where the values of each dimension begin, if those of all are in one line.
        self._values = in_one_line(cards)[:-1]
        #: Rows of suspects; and sums of cohorts by value, as they are without so many of those.
        self._taken: list[tuple[Cohort, Indices]] = []
        self._known: dict[Cohort, tuple[int, Floats]] = {}
        # A line a row: those of a cohort lie together.
        self._lines = np.empty((side.exposure.size, len(self._in_turn)), np.uint16)
        for place, joint in enumerate(self._in_turn):
            np.add(joint.places(side.codes), np.uint16(self._starts[place]), out=self._lines[:, place])

    def total(self) -> tuple[float, float]:
        """Events and exposure of all rows."""
        return float(self._events.sum()), float(self._exposure.sum())

    def exposure_of(self, rows: Indices) -> Floats:
        """The exposure of these rows."""
        found: Floats = self._exposure[rows]
        return found

    def tables(self, rows: Indices | None = None) -> Iterator[tuple[Dimensions, Floats, Floats]]:
        """Events and exposure by the values of each dimension, and of every two, of all rows or of these."""
        codes, events, exposure = self._codes, self._events, self._exposure
        if rows is not None:
            codes, events, exposure = np.take(codes, rows, axis=1), events[rows], exposure[rows]
        # Most views have no event.
        bad = np.flatnonzero(events)
        found: set[Dimensions] = set()
        for joint in self._pairs:
            places = joint.places(codes)
            sums = joint.summed(places[bad], events[bad]), joint.summed(places, exposure)
            for order in (1, 2):
                for dimensions in itertools.combinations(joint.dimensions, order):
                    if dimensions not in found:
                        found.add(dimensions)
                        yield dimensions, joint.added_up(sums[0], dimensions), joint.added_up(sums[1], dimensions)

    def by_value(self, cohorts: Sequence[Cohort]) -> Floats:
        """Events and exposure of each cohort by the values of all dimensions, in one line: an axis each."""
        if missing := [cohort for cohort in cohorts if cohort not in self._known]:
            lines = np.stack([np.stack(self._in_line(self.of(cohort))) for cohort in missing])
            # Each by itself: one that is asked for again would keep the others.
            its = (sums.copy() for sums in self._added_up(lines))
            self._known |= {cohort: (len(self._taken), sums) for cohort, sums in zip(missing, its, strict=True)}
        return np.stack([self._left(cohort) for cohort in cohorts], axis=1)

    def of(self, cohort: Cohort) -> Indices:
        """The free rows of a cohort."""
        found = self._is_free
        for place, code in cohort:
            found = found & (self._codes[place] == code)
        return np.flatnonzero(found)

    def take(self, cohort: Cohort) -> Iterator[tuple[Dimensions, Floats, Floats]]:
        """Leaves the rows of a cohort out from now on: they are a suspect's. Their sums, as `tables` has them."""
        rows = self.of(cohort)
        self._is_free[rows] = False
        # What nobody has asked for since the last one is not asked for again.
        self._known = {one: known for one, known in self._known.items() if known[0] == len(self._taken)}
        self._taken.append((cohort, rows))
        return self.tables(rows)

    def _left(self, cohort: Cohort) -> Floats:
        """The sums of a cohort that are known, without what was taken meanwhile: mostly a few rows."""
        since, sums = self._known[cohort]
        for taken, rows in self._taken[since:]:
            its = rows[:0] if are_apart(cohort, taken) else rows
            for place, code in cohort:
                its = its[self._codes[place, its] == code]
            if its.size:
                line = (self._codes[:, its] + self._values[:, np.newaxis]).ravel()
                weights = (np.tile(of[its], self._values.size) for of in (self._events, self._exposure))
                sums -= np.stack([np.bincount(line, of, sums.shape[1]) for of in weights])
        self._known[cohort] = len(self._taken), sums
        return sums

    def _added_up(self, lines: Floats) -> Floats:
        """`_in_line` on the last axis by the values of each dimension alone."""
        found = [
            joint.added_up(lines[..., start:end], [dimension])
            for joint, (start, end) in zip(self._in_turn, itertools.pairwise(self._starts), strict=True)
            for dimension in joint.dimensions
        ]
        return np.concatenate(found, axis=-1)

    def _in_line(self, rows: Indices) -> tuple[Floats, Floats]:
        """The same of these rows by dimensions in turn: several at once, since of few rows calls cost more than numbers do."""
        size = int(self._starts[-1])
        found = (np.zeros(size), np.zeros(size))
        for first in range(0, rows.size, _ROWS_AT_ONCE):
            some = rows[first : first + _ROWS_AT_ONCE]
            events, lines = np.take(self._events, some), np.take(self._lines, some, axis=0)
            bad = np.flatnonzero(events)
            found[0][:] += self._summed_in_line(np.take(lines, bad, axis=0), np.take(events, bad))
            found[1][:] += self._summed_in_line(lines, np.take(self._exposure, some))
        return found

    def _summed_in_line(self, lines: NDArray[np.uint16], weights: Floats) -> Floats:
        summed = np.bincount(lines.ravel(), np.repeat(weights, len(self._in_turn)), self._starts[-1])
        return summed.astype(np.float64, copy=False)


def are_apart(one: Cohort, other: Cohort) -> bool:
    """Whether no row is in both: they want different values of a dimension."""
    wanted = dict(one)
    return any(wanted.get(place, code) != code for place, code in other)


def _exact(weights: Floats) -> Floats:
    """The weights as multiples of one power of two, by which none changes by more than 2^-51 of their sum.

    Sums of such numbers are not rounded: they are the same in any order, and by any dimensions. Two descriptions of the same rows
    differ in their costs alone.
    """
    total = float(weights.sum())
    if total <= 0:
        return weights
    step = 2.0 ** (51 - math.ceil(math.log2(total)))
    exact: Floats = np.round(weights * step) / step
    return exact
