"""The rows of both ranges of a search, in one: events and exposure, now and usually, of what no suspect has taken. Pure."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from shared.statistics.suspects.counts import KNOWN, Counts, Floats
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.mix import without_mix
from shared.statistics.suspects.rows import Cohort, Dimensions, Rows

#: What the exposure without mix is to the exposure, now and usually.
Mix = tuple[float, float]


class Ranges(Protocol):
    """The rows now, and what is usual."""

    def total(self) -> Quad:
        """Of all rows."""

    def tables(self) -> Iterator[tuple[Dimensions, Quad]]:
        """By the values of each dimension, and of every two."""

    def by_value(self, cohorts: Sequence[Cohort]) -> Floats:
        """Of each cohort the four parts by the values of all dimensions in one line: an axis each."""

    def take(self, cohort: Cohort, tables: dict[Dimensions, Quad]) -> None:
        """Leaves a cohort's rows out from now on, of these sums too."""

    def exposure(self, cohort: Cohort) -> tuple[float, float]:
        """Of a cohort, with mix."""

    def mix(self, cohort: Cohort = (), /) -> Mix:
        """Of a cohort, or of all rows."""


class TwoRanges:
    """Two ranges of rows, without what their mix of views explains."""

    def __init__(self, counts: Counts) -> None:
        mixed, cards = without_mix(counts), _cards(counts)
        self._sides = [Rows(side, cards, counts.event) for side in (mixed.now, mixed.usual)]
        self._exposure = [side.exposure for side in (counts.now, counts.usual)]

    def total(self) -> Quad:
        """As `Ranges.total`."""
        return Quad(*(np.array(part) for side in self._sides for part in side.total()))

    def tables(self) -> Iterator[tuple[Dimensions, Quad]]:
        """As `Ranges.tables`."""
        for (dims, *now), (_, *usual) in zip(*(side.tables() for side in self._sides), strict=True):
            yield dims, Quad(*now, *usual)

    def by_value(self, cohorts: Sequence[Cohort]) -> Floats:
        """As `Ranges.by_value`."""
        return np.concatenate([side.by_value(cohorts) for side in self._sides])

    def take(self, cohort: Cohort, tables: dict[Dimensions, Quad]) -> None:
        """As `Ranges.take`."""
        for place, side in enumerate(self._sides):
            for dims, *sums in side.take(cohort):
                _subtract(tables[dims].parts[2 * place :], sums)

    def exposure(self, cohort: Cohort) -> tuple[float, float]:
        """As `Ranges.exposure`."""
        now, usual = (float(of[side.of(cohort)].sum()) for side, of in zip(self._sides, self._exposure, strict=True))
        return now, usual

    def mix(self, cohort: Cohort = (), /) -> Mix:
        """As `Ranges.mix`."""
        without = [float(side.exposure_of(side.of(cohort)).sum()) for side in self._sides]
        now, usual = (its / max(of, 1e-9) for its, of in zip(without, self.exposure(cohort), strict=True))
        return now or 1.0, usual or 1.0


class BesideRest:
    """One range of rows, of which each is expected to have the rate of all: what is usual follows from its exposure."""

    def __init__(self, counts: Counts) -> None:
        self._rows = Rows(counts.now, _cards(counts), counts.event)
        events, exposure = self._rows.total()
        self._rate = events / exposure if exposure > 0 else 0.0

    def total(self) -> Quad:
        """As `Ranges.total`."""
        return self._quad(*(np.array(part) for part in self._rows.total()))

    def tables(self) -> Iterator[tuple[Dimensions, Quad]]:
        """As `Ranges.tables`."""
        for dims, *sums in self._rows.tables():
            yield dims, self._quad(*sums)

    def by_value(self, cohorts: Sequence[Cohort]) -> Floats:
        """As `Ranges.by_value`."""
        return np.stack(self._quad(*self._rows.by_value(cohorts)).parts)

    def take(self, cohort: Cohort, tables: dict[Dimensions, Quad]) -> None:
        """As `Ranges.take`."""
        for dims, *sums in self._rows.take(cohort):
            left = tables[dims]
            _subtract(left.parts, sums)
            # Not subtracted: products are rounded, and equal rows shall have equal sums.
            for part, known in zip((left.usual_events, left.usual_exposure), self._known, strict=True):
                np.multiply(left.exposure, known, out=part)

    def exposure(self, cohort: Cohort) -> tuple[float, float]:
        """As `Ranges.exposure`."""
        now = float(self._rows.exposure_of(self._rows.of(cohort)).sum())
        return now, KNOWN * now

    def mix(self, _: Cohort = (), /) -> Mix:
        """As `Ranges.mix`. All rows have the same rate, so no mix explains anything."""
        return 1.0, 1.0

    @property
    def _known(self) -> tuple[float, float]:
        """Usual events and exposure of an exposure of one."""
        return KNOWN * self._rate, KNOWN

    def _quad(self, events: Floats, exposure: Floats) -> Quad:
        return Quad(events, exposure, *(known * exposure for known in self._known))


def _subtract(parts: Sequence[Floats], taken: Sequence[Floats]) -> None:
    """In place: tables of many values are large."""
    for part, its in zip(parts, taken, strict=False):
        np.subtract(part, its, out=part)


def _cards(counts: Counts) -> list[int]:
    return [len(values) for values in counts.values]


def ranges(counts: Counts) -> Ranges:
    """What is searched in these counts."""
    return BesideRest(counts) if counts.is_beside_rest else TwoRanges(counts)
