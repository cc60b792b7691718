"""Rows of one range, prepared for the search: sums by value, and by value within a cohort. Pure."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import DIMENSIONS_MAX, VALUES_MAX, Codes, Floats, Side
from shared.statistics.suspects.joint import IN_TURN_MAX, in_turn, with_all_pairs

Indices = NDArray[np.intp]

#: One or two dimensions.
Dimensions = tuple[int, ...]
#: Events and exposure.
Sums = tuple[Floats, Floats]

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
        self._cards = cards
        self._events = side.events / event
        self._exposure = side.exposure
        # Most views have no event.
        bad = np.flatnonzero(self._events)
        self._of_bad = (side.codes[:, bad], self._events[bad])
        self._is_free = np.ones(side.exposure.size, bool)
        self._pairs = with_all_pairs(cards)
        self._in_turn = in_turn(cards)
        self._starts = in_one_line([joint.size for joint in self._in_turn])
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

    def tables(self, rows: Indices | None = None) -> dict[Dimensions, Sums]:
        """Events and exposure by the values of each dimension, and of every two, of all rows or of these."""
        if rows is None:
            found = [dict(self._by_pairs(*given)) for given in (self._of_bad, (self._codes, self._exposure))]
        else:
            codes = np.take(self._codes, rows, axis=1)
            found = [dict(self._by_pairs(codes, weights[rows])) for weights in (self._events, self._exposure)]
        return {dimensions: (events, found[1][dimensions]) for dimensions, events in found[0].items()}

    def lines(self, rows: Indices) -> Sums:
        """The same of these rows by dimensions in turn, in one line: `by_value` adds them up.

        Several dimensions at once: most cohorts have few rows, so calls cost more than numbers do.
        """
        size = int(self._starts[-1])
        found = (np.zeros(size), np.zeros(size))
        for first in range(0, rows.size, _ROWS_AT_ONCE):
            some = rows[first : first + _ROWS_AT_ONCE]
            events, lines = np.take(self._events, some), np.take(self._lines, some, axis=0)
            bad = np.flatnonzero(events)
            found[0][:] += self._summed_in_line(np.take(lines, bad, axis=0), np.take(events, bad))
            found[1][:] += self._summed_in_line(lines, np.take(self._exposure, some))
        return found

    def by_value(self, lines: Floats) -> Floats:
        """`lines` on the last axis by the values of each dimension alone, those of all dimensions in one line."""
        found = [
            joint.added_up(lines[..., start:end], [dimension])
            for joint, (start, end) in zip(self._in_turn, itertools.pairwise(self._starts), strict=True)
            for dimension in joint.dimensions
        ]
        return np.concatenate(found, axis=-1)

    def of(self, cohort: Sequence[tuple[int, int]]) -> Indices:
        """The free rows of a cohort: dimensions and the code of each."""
        found = self._is_free
        for place, code in cohort:
            found = found & (self._codes[place] == code)
        return np.flatnonzero(found)

    def take_rows(self, rows: Indices) -> None:
        """These rows are a suspect's from now on."""
        self._is_free[rows] = False

    def _by_pairs(self, codes: Codes, weights: Floats) -> Iterator[tuple[Dimensions, Floats]]:
        found: set[Dimensions] = set()
        for joint in self._pairs:
            sums = joint.summed(joint.places(codes), weights)
            for order in (1, 2):
                for dimensions in itertools.combinations(joint.dimensions, order):
                    if dimensions not in found:
                        found.add(dimensions)
                        yield dimensions, joint.added_up(sums, dimensions)

    def _summed_in_line(self, lines: NDArray[np.uint16], weights: Floats) -> Floats:
        summed = np.bincount(lines.ravel(), np.repeat(weights, len(self._in_turn)), self._starts[-1])
        return summed.astype(np.float64, copy=False)
