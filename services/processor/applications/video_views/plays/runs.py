"""What shows whether steps are of one run or of two (`arrangement`): numbers that fall although time passes, and delays.

Times in ms.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.order.set_back import (
    LEVEL_SPREAD_MS_MAX,
    SET_BACK_MS_MIN,
    delay_ms,
    shifted_delay_ms,
)

#: Numbers rise with the time, but within one request of a clock that is set back by less.
FALLS_MS_MIN: Final = SET_BACK_MS_MIN


def are_of_two_runs(one: Step, other: Step) -> bool:
    """Whether the greater number of two steps was sent well before the smaller one, by the same clock."""
    if not (one.is_timed and other.is_timed):
        return False
    apart_ms = one.at_ms - other.at_ms
    falls = apart_ms < -FALLS_MS_MIN if one.seq > other.seq else one.seq < other.seq and apart_ms > FALLS_MS_MIN
    return falls and abs(delay_ms(one) - delay_ms(other)) <= LEVEL_SPREAD_MS_MAX


class Falls:
    """For each of many steps those that are of another run (`are_of_two_runs`): sets of steps are the bits of a number.

    To compare all pairs would take seconds where a session's steps are many. Here each step is found in three orders.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        timed = [at for at, one in enumerate(steps) if one.is_timed]
        self._by_seq = _Order(timed, lambda at: steps[at].seq)
        self._by_time = _Order(timed, lambda at: steps[at].at_ms)
        self._by_delay = _Order(timed, lambda at: delay_ms(steps[at]))

    def of(self, at: int) -> int:
        """The steps that are of another run than the one at this index: bit `n` stands for the step at index `n`."""
        one = self._steps[at]
        if not one.is_timed:
            return 0
        smaller, greater = self._by_seq.below(one.seq), self._by_seq.above(one.seq)
        earlier = self._by_time.below(one.at_ms - FALLS_MS_MIN)
        later = self._by_time.above(one.at_ms + FALLS_MS_MIN)
        delay = delay_ms(one)
        outside = self._by_delay.below(delay - LEVEL_SPREAD_MS_MAX) | self._by_delay.above(delay + LEVEL_SPREAD_MS_MAX)
        return (smaller & later | greater & earlier) & ~outside


class Ends:
    """The last steps of the runs before the last one."""

    def __init__(self) -> None:
        #: By index of the run: its last number, and the delay of that step.
        self._ends: dict[int, tuple[int, int]] = {}

    def note(self, run: int, last: Step) -> None:
        """This step is the last of that run."""
        self._ends[run] = (last.seq, shifted_delay_ms(last))

    def goes_on(self, newer: Sequence[Step], one: Step) -> int | None:
        """The first run with which a step goes on, and not with the newer one, which is by another clock, by its delay."""
        if not self._ends or not newer or one.seq <= newer[-1].seq:
            return None
        own_ms = shifted_delay_ms(one)
        if abs(shifted_delay_ms(newer[-1]) - own_ms) < SET_BACK_MS_MIN:
            return None
        least_seq, seq = newer[-1].seq, one.seq
        return next(
            (
                run
                for run, (last_seq, last_ms) in self._ends.items()
                if least_seq < last_seq < seq and abs(last_ms - own_ms) < SET_BACK_MS_MIN
            ),
            None,
        )


class _Order:
    """Indices in the order of a value; sets of those below and above one."""

    def __init__(self, indices: Sequence[int], value_of: Callable[[int], int]) -> None:
        in_order = sorted(indices, key=value_of)
        self._values = [value_of(at) for at in in_order]
        #: Of the first so many.
        self._first = [0]
        for at in in_order:
            self._first.append(self._first[-1] | 1 << at)

    def below(self, value: int) -> int:
        return self._first[bisect_left(self._values, value)]

    def above(self, value: int) -> int:
        return self._first[-1] ^ self._first[bisect_right(self._values, value)]
