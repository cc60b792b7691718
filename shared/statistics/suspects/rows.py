"""Rows of one range, prepared for the search: sums by value, and by value within a cohort. Pure."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import DIMENSIONS_MAX, VALUES_MAX, Codes, Floats, Side

Indices = NDArray[np.intp]

assert np.iinfo(np.uint16).max >= max(DIMENSIONS_MAX, VALUES_MAX + 1) * (VALUES_MAX + 1)


#: Rows of a cohort that are summed by one call: some 16 B a row and dimension.
_ROWS_AT_ONCE: Final = 1 << 16


def in_one_line(cards: Sequence[int]) -> Indices:
    """Where the values of each dimension begin if all are in one line; last, how many there are."""
    return np.concatenate([[0], np.cumsum(cards)]).astype(np.intp)


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
        self._starts = in_one_line(cards)
        # A line a row: those of a cohort lie together.
        self._in_one_line = np.add(side.codes.T, self._starts[:-1], dtype=np.uint16, order="C", casting="unsafe")

    def total(self) -> tuple[float, float]:
        """Events and exposure of all rows."""
        return float(self._events.sum()), float(self._exposure.sum())

    def exposure_of(self, rows: Indices) -> Floats:
        """The exposure of these rows."""
        found: Floats = self._exposure[rows]
        return found

    def table(self, dimensions: Sequence[int], rows: Indices | None = None) -> tuple[Floats, Floats]:
        """Events and exposure by the values of one or two dimensions, of all rows or of these."""
        if rows is None:
            return self._summed(dimensions, *self._of_bad), self._summed(dimensions, self._codes, self._exposure)
        events, exposure = self._events[rows], self._exposure[rows]
        return self._summed(dimensions, self._codes, events, rows), self._summed(
            dimensions, self._codes, exposure, rows
        )

    def tables(self, rows: Indices) -> tuple[Floats, Floats]:
        """`table` of these rows by each dimension alone: the values of all dimensions in one line, as `in_one_line` numbers them.

        Several dimensions at once: most cohorts have few rows, so calls cost more than numbers do.
        """
        size = int(self._starts[-1])
        found = (np.zeros(size), np.zeros(size))
        for first in range(0, rows.size, _ROWS_AT_ONCE):
            some = rows[first : first + _ROWS_AT_ONCE]
            events, lines = np.take(self._events, some), np.take(self._in_one_line, some, axis=0)
            bad = np.flatnonzero(events)
            found[0][:] += self._summed_in_line(np.take(lines, bad, axis=0), np.take(events, bad))
            found[1][:] += self._summed_in_line(lines, np.take(self._exposure, some))
        return found

    def of(self, cohort: Sequence[tuple[int, int]]) -> Indices:
        """The free rows of a cohort: dimensions and the code of each."""
        found = self._is_free
        for place, code in cohort:
            found = found & (self._codes[place] == code)
        return np.flatnonzero(found)

    def take_rows(self, rows: Indices) -> None:
        """These rows are a suspect's from now on."""
        self._is_free[rows] = False

    def _summed(self, dimensions: Sequence[int], codes: Codes, weights: Floats, rows: Indices | None = None) -> Floats:
        first, *others = ((codes[each] if rows is None else np.take(codes[each], rows)) for each in dimensions)
        cards = [self._cards[each] for each in dimensions]
        # Codes of two dimensions fit into 16 bits.
        assert len(cards) <= 2
        place = first.astype(np.uint16)
        for card, other in zip(cards[1:], others, strict=True):
            place *= np.uint16(card)
            place += other
        return np.bincount(place, weights, math.prod(cards)).astype(np.float64, copy=False)

    def _summed_in_line(self, lines: NDArray[np.uint16], weights: Floats) -> Floats:
        summed = np.bincount(lines.ravel(), np.repeat(weights, len(self._cards)), self._starts[-1])
        return summed.astype(np.float64, copy=False)
