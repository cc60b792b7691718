"""The sums by one and two dimensions of all tables in one line, and which values each is of. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import DIMENSIONS_MAX, OTHER, VALUES_MAX
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.rows import Dimensions, Indices, in_one_line

assert np.iinfo(np.uint16).max >= DIMENSIONS_MAX * (VALUES_MAX + 1)


@dataclass(frozen=True)
class Cells:
    """Of each sum in the line of all tables what it is of."""

    #: Dimensions by the number of their table.
    tables: tuple[Dimensions, ...]
    #: Where each table begins.
    starts: Indices
    #: By sum: its values, in one line of all dimensions' values (of one dimension twice the same); and whether it may be a suspect.
    first: NDArray[np.uint16]
    second: NDArray[np.uint16]
    may_be: NDArray[np.bool_]

    def with_events(self, tables: Mapping[Dimensions, Quad], least: float) -> tuple[Indices, Indices, Quad]:
        """The sums that may be suspects and have so many events: their places, the numbers of their tables, and their counts."""
        found = []
        for dims, (start, end) in zip(self.tables, itertools.pairwise(self.starts), strict=True):
            its = np.flatnonzero((tables[dims].events >= least) & self.may_be[start:end])
            found.append((start + its, tables[dims][its]))
        places = [its for its, _ in found]
        numbers = np.repeat(np.arange(len(found)), [its.size for its in places])
        quad = Quad(*(np.concatenate(parts) for parts in zip(*(of.parts for _, of in found), strict=True)))
        return np.concatenate(places), numbers, quad


def cells_of(cards: Sequence[int]) -> Cells:
    """The sums by one dimension, and by every two, of dimensions with so many values."""
    starts = in_one_line(cards)
    tables = tuple(dims for order in (1, 2) for dims in itertools.combinations(range(len(cards)), order))
    firsts, seconds = [], []
    for dims in tables:
        values = [(starts[place] + np.arange(cards[place])).astype(np.uint16) for place in (dims[0], dims[-1])]
        firsts.append(np.repeat(values[0], cards[dims[1]]) if len(dims) == 2 else values[0])
        seconds.append(np.tile(values[1], cards[dims[0]]) if len(dims) == 2 else values[1])
    is_value = np.ones(starts[-1], bool)
    is_value[starts[:-1] + OTHER] = False
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    return Cells(tables, in_one_line([one.size for one in firsts]), first, second, is_value[first] & is_value[second])
