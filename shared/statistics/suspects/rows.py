"""Rows of one range, prepared for the search: sums by value, and by value within a cohort. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import DIMENSIONS_MAX, VALUES_MAX, Codes, Floats, Side

Indices = NDArray[np.intp]

assert np.iinfo(np.uint16).max >= max(DIMENSIONS_MAX, VALUES_MAX + 1) * (VALUES_MAX + 1)


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
        codes = self._codes[:, rows]
        return self._summed(dimensions, codes, self._events[rows]), self._summed(
            dimensions, codes, self._exposure[rows]
        )

    def tables(self, rows: Indices) -> tuple[Floats, Floats]:
        """`table` of these rows by each dimension alone: the values of all dimensions in one line, as `in_one_line` numbers them.

        Several dimensions at once: most cohorts have few rows, so calls cost more than numbers do.
        """
        events = np.take(self._events, rows)
        bad = np.flatnonzero(events)
        lines = np.take(self._in_one_line, rows, axis=0)
        return (
            self._summed_in_line(np.take(lines, bad, axis=0), np.take(events, bad)),
            self._summed_in_line(lines, np.take(self._exposure, rows)),
        )

    def of(self, cohort: Sequence[tuple[int, int]]) -> Indices:
        """The free rows of a cohort: dimensions and the code of each."""
        found = self._is_free
        for place, code in cohort:
            found = found & (self._codes[place] == code)
        return np.flatnonzero(found)

    def take_rows(self, rows: Indices) -> None:
        """These rows are a suspect's from now on."""
        self._is_free[rows] = False

    def _summed(self, dimensions: Sequence[int], codes: Codes, weights: Floats) -> Floats:
        first, *others = dimensions
        # Codes of two dimensions fit into 16 bits.
        place, size = codes[first].astype(np.uint16), self._cards[first]
        for dimension in others:
            place *= np.uint16(self._cards[dimension])
            place += codes[dimension]
            size *= self._cards[dimension]
        return np.bincount(place, weights, size).astype(np.float64, copy=False)

    def _summed_in_line(self, lines: Indices, weights: Floats) -> Floats:
        summed = np.bincount(lines.ravel(), np.repeat(weights, len(self._cards)), self._starts[-1])
        return summed.astype(np.float64, copy=False)
