"""Rows of one range, prepared for the search: sums by value, and by value within a cohort. Pure."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import Floats, Side

Indices = NDArray[np.intp]

#: Numbers that are summed by one call: so many fit into a core's cache.
_AT_ONCE: Final = 16_384


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
        self._bad = np.flatnonzero(self._events)
        self._is_free = np.ones(side.exposure.size, bool)
        #: By dimension the rows in the order of its values, and where each value begins.
        self._sorted: dict[int, tuple[Indices, Indices]] = {}
        self._starts = in_one_line(cards)
        self._in_one_line = side.codes + self._starts[:-1, np.newaxis].astype(np.int32)

    def total(self) -> tuple[float, float]:
        """Events and exposure of all rows."""
        return float(self._events.sum()), float(self._exposure.sum())

    def exposure_of(self, rows: Indices) -> Floats:
        """The exposure of these rows."""
        found: Floats = self._exposure[rows]
        return found

    def table(self, dimensions: Sequence[int], rows: Indices | None = None) -> tuple[Floats, Floats]:
        """Events and exposure by the values of these dimensions, of all rows or of these."""
        code, size = np.zeros(1, np.int64), 1
        for place in dimensions:
            line = self._codes[place] if rows is None else self._codes[place][rows]
            code = code * self._cards[place] + line
            size *= self._cards[place]
        events = self._events if rows is None else self._events[rows]
        exposure = self._exposure if rows is None else self._exposure[rows]
        bad = self._bad if rows is None else np.flatnonzero(events)
        summed: tuple[Floats, Floats] = (
            np.bincount(code[bad], events[bad], size).astype(np.float64, copy=False),
            np.bincount(code, exposure, size).astype(np.float64, copy=False),
        )
        return summed

    def tables(self, rows: Indices) -> tuple[Floats, Floats]:
        """`table` of these rows by each dimension alone: the values of all dimensions in one line, as `in_one_line` numbers them.

        Several dimensions at once: most cohorts have few rows, so calls cost more than numbers do.
        """
        events, exposure = self._events[rows], self._exposure[rows]
        bad = np.flatnonzero(events)
        rows_bad, events_bad = rows[bad], events[bad]
        count = len(self._cards)
        step = max(1, _AT_ONCE // max(1, rows.size))
        found: tuple[list[Floats], list[Floats]] = ([], [])
        for first in range(0, count, step):
            lines = self._in_one_line[first : first + step]
            begin, end = self._starts[first], self._starts[min(first + step, count)]
            for parts, of, weights in zip(found, (rows_bad, rows), (events_bad, exposure), strict=True):
                summed = np.bincount(lines[:, of].ravel(), np.tile(weights, len(lines)), end)
                parts.append(summed[begin:].astype(np.float64, copy=False))
        return np.concatenate(found[0]), np.concatenate(found[1])

    def of(self, cohort: Sequence[tuple[int, int]]) -> Indices:
        """The free rows of a cohort: dimensions and the code of each."""
        slices = [self._of_value(place, code) for place, code in cohort]
        found = min(slices, key=len)
        found = found[self._is_free[found]]
        for place, code in cohort:
            found = found[self._codes[place][found] == code]
        return found

    def take_rows(self, rows: Indices) -> None:
        """These rows are a suspect's from now on."""
        self._is_free[rows] = False

    def _of_value(self, place: int, code: int) -> Indices:
        if place not in self._sorted:
            order = np.argsort(self._codes[place], kind="stable")
            starts = np.searchsorted(self._codes[place], np.arange(self._cards[place] + 1), sorter=order)
            self._sorted[place] = (order, starts)
        order, starts = self._sorted[place]
        return order[starts[code] : starts[code + 1]]
