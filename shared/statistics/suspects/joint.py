"""Sums by the values of several dimensions together, of which those of one or two are added up. Pure.

numpy counts one row after the other and holds the interpreter's lock meanwhile. So a row is counted by several dimensions at once:
twelve of them have 66 pairs, and some fifteen sums of all rows say them all.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import VALUES_MAX, Codes, Floats

#: The place of a row among the sums of some dimensions: 16 bits, or what numpy makes of them.
Places = NDArray[np.uint16] | NDArray[np.intp]
_SUMS_MAX: Final = 1 << 16
#: With more sums, adding them up costs more than counting rows less often saves. Of two dimensions there may be more.
PAIRS_MAX: Final = 1 << 14
#: The same for dimensions in turn, by which cohorts of few rows are summed too.
IN_TURN_MAX: Final = 1 << 12

assert (VALUES_MAX + 1) ** 2 <= _SUMS_MAX


@dataclass(frozen=True)
class Joint:
    """Some dimensions together, in the order of their numbers; the values of the last one lie beside each other."""

    dimensions: tuple[int, ...]
    #: How many values each has.
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many sums there are."""
        return math.prod(self.shape)

    def places(self, codes: Codes) -> NDArray[np.uint16]:
        """The place of each row's sum."""
        found: NDArray[np.uint16] = codes[self.dimensions[0]].astype(np.uint16)
        for dimension, card in zip(self.dimensions[1:], self.shape[1:], strict=True):
            found *= np.uint16(card)
            found += codes[dimension]
        return found

    def summed(self, places: Places, weights: Floats) -> Floats:
        """The sums of rows' weights."""
        # Without rows numpy counts in whole numbers.
        return np.bincount(places, weights, self.size).astype(np.float64, copy=False)

    def added_up(self, sums: Floats, dimensions: Sequence[int]) -> Floats:
        """Of the sums on the last axis those by some of the dimensions alone, in the same order."""
        kept, others = sums.ndim - 1, [place for place, one in enumerate(self.dimensions) if one not in dimensions]
        added: Floats = sums.reshape(*sums.shape[:-1], *self.shape).sum(axis=tuple(kept + place for place in others))
        return added.reshape(*sums.shape[:-1], -1)


def in_turn(cards: Sequence[int]) -> list[Joint]:
    """All dimensions, each once and in their order, as few times together as there is room."""
    found: list[list[int]] = []
    for dimension, card in enumerate(cards):
        if found and math.prod(cards[one] for one in found[-1]) * card <= IN_TURN_MAX:
            found[-1].append(dimension)
        else:
            found.append([dimension])
    return [_joint(one, cards) for one in found]


def with_all_pairs(cards: Sequence[int]) -> list[Joint]:
    """Dimensions together so that every two are in one at least: those of the most values first, each with all that fit."""
    size = {pair: cards[pair[0]] * cards[pair[1]] for pair in _pairs(range(len(cards)))}
    missing = dict.fromkeys(sorted(size, key=lambda pair: -size[pair]))
    found: list[tuple[int, ...]] = [] if missing else [tuple(range(len(cards)))]
    while missing:
        chosen = list(next(iter(missing)))
        while (added := _next(chosen, cards, missing)) is not None:
            chosen.append(added)
        found.append(tuple(sorted(chosen)))
        for pair in _pairs(found[-1]):
            missing.pop(pair, None)
    return [_joint(one, cards) for one in found]


def _next(chosen: Sequence[int], cards: Sequence[int], missing: Iterable[tuple[int, int]]) -> int | None:
    """The dimension that fits beside these and brings the most missing pairs; None where none does."""
    size, wanted = math.prod(cards[one] for one in chosen), set(missing)
    brought = {
        other: sum((min(one, other), max(one, other)) in wanted for one in chosen)
        for other in range(len(cards))
        if other not in chosen and size * cards[other] <= PAIRS_MAX
    }
    best = max(brought, key=lambda other: brought[other], default=None)
    return None if best is None or not brought[best] else best


def _pairs(dimensions: Iterable[int]) -> Iterator[tuple[int, int]]:
    return itertools.combinations(dimensions, 2)


def _joint(dimensions: Iterable[int], cards: Sequence[int]) -> Joint:
    chosen = tuple(dimensions)
    return Joint(chosen, tuple(cards[one] for one in chosen))
