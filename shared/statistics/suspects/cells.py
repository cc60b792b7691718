"""The sums by one and two dimensions of all tables in one line, and which values each is of. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import OTHER
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.rows import Dimensions, Indices, in_one_line


@dataclass(frozen=True)
class Cells:
    """Of each sum in the line of all tables what it is of."""

    #: Dimensions by the number of their table.
    tables: tuple[Dimensions, ...]
    #: By sum: the table; its values, in one line of all dimensions' values (of one dimension twice the same); and whether it may
    #: be a suspect.
    table: Indices
    first: Indices
    second: Indices
    may_be: NDArray[np.bool_]

    def quad(self, tables: Mapping[Dimensions, Quad]) -> Quad:
        """The counts of all sums."""
        return Quad(
            *(np.concatenate(parts) for parts in zip(*(tables[dims].parts for dims in self.tables), strict=True))
        )


def cells_of(cards: Sequence[int]) -> Cells:
    """The sums by one dimension, and by every two, of dimensions with so many values."""
    starts = in_one_line(cards)
    tables = tuple(dims for order in (1, 2) for dims in itertools.combinations(range(len(cards)), order))
    firsts, seconds = [], []
    for dims in tables:
        values = [starts[place] + np.arange(cards[place]) for place in (dims[0], dims[-1])]
        firsts.append(np.repeat(values[0], cards[dims[1]]) if len(dims) == 2 else values[0])
        seconds.append(np.tile(values[1], cards[dims[0]]) if len(dims) == 2 else values[1])
    is_value = np.ones(starts[-1], bool)
    is_value[starts[:-1] + OTHER] = False
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    table = np.repeat(np.arange(len(tables)), [one.size for one in firsts])
    return Cells(tables, table, first, second, is_value[first] & is_value[second])
