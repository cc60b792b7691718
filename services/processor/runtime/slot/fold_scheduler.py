"""Fold scheduler: divides the folding time of the slot's one thread among its partitions.

Between two turns the loop polls the group, answers queries and checks for SIGTERM. So a turn is short, for any number of partitions
that catch up. A partition that got no time is the first of the next turn.
"""

import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

#: Of all partitions together, but for the slice at hand (`inputs.SLICE_SECONDS`, `folding.FIRED_MAX`).
FOLD_SECONDS_MAX: Final = 0.1


class FoldScheduler:
    """One turn after the other. `now` is a monotonic clock, in seconds."""

    def __init__(self, seconds_max: float = FOLD_SECONDS_MAX, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds_max = seconds_max
        self._now = now
        self._first = 0

    def shares(self, partitions: Collection[int]) -> Iterator[tuple[int, float]]:
        """Each partition, and until when it may fold: an equal share, and what those before it have left over.

        A partition whose time is over before it begins does not fold in this turn; its other work is done.
        """
        numbers = sorted(partitions)
        order = [number for number in numbers if number >= self._first]
        order += numbers[: len(numbers) - len(order)]
        began_at = self._now()
        end = began_at + self._seconds_max
        has_first = False
        for place, number in enumerate(order):
            now = self._now() if place else began_at
            if now >= end and not has_first:
                self._first, has_first = number, True
            yield number, now + max(0.0, end - now) / (len(order) - place)
