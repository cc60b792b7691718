"""How a range of many views is sampled for the search: those with events, which say the most, are kept longest. Pure."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Floats

#: Views of a range that are searched: with events, and others. More are sampled.
BAD_MAX: Final = 80_000
GOOD_MAX: Final = 80_000
#: One of so many views is among the few that are read to say how many there are. Samples of fewer views are among them too.
FEW_OF: Final = 8
#: A multiple of it is near if it is off by at most this part.
_NEAR: Final = 12


@dataclass(frozen=True)
class Sampling:
    """Of the views with events one of `bad_of` is searched, of the others one of `good_of`."""

    bad_of: int
    good_of: int

    @property
    def weight(self) -> float:
        """For how many views one without events stands, of as many as the events are of; 0 where all views are searched."""
        return self.good_of / self.bad_of if self.good_of > 1 else 0.0

    def exposure(self, events: Floats, exposure: Floats) -> Floats:
        """The exposure of sampled rows.

        A view without events stands for more views than one with: its exposure is that of as many as the events are of.
        """
        weighted: Floats = np.where(events > 0, exposure, exposure * (self.weight or 1.0))
        return weighted


def sampling(views: int, bad: int, *, bad_max: int = BAD_MAX, good_max: int = GOOD_MAX) -> Sampling:
    """How a range of so many views, of which `bad` have events, is sampled: not at all where there are no more than `good_max`."""
    if views <= good_max:
        return Sampling(1, 1)
    bad_of = one_of(bad, bad_max)
    return Sampling(bad_of, max(bad_of, one_of(views, good_max)))


def one_of(views: int, most: int) -> int:
    """One of how many views is taken, so that there are no more than `most`, or hardly more.

    A multiple of `FEW_OF` where one is near: fewer views with events would find fewer incidents.
    """
    taken = max(1, -(-views // most))
    rounded = FEW_OF * round(taken / FEW_OF)
    return rounded if abs(rounded - taken) * _NEAR <= taken else taken
