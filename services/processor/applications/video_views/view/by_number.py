"""The order of a view whose client numbers its beacons (mux, CMCD).

The steps up to the first gap in the numbers are folded. Those after it wait in `held` until the gap closes. If too many wait,
the gap is given up: what then comes of it is late.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import HELD_STEPS_MAX, RECENT_STEPS_MAX
from services.processor.applications.video_views.view.folded import (
    DUPLICATE,
    Folded,
    Taken,
    apply,
    back_to_settled,
    settle,
    take_copy,
    take_late,
    take_out_of_place,
)
from services.processor.applications.video_views.view.seen import (
    Ranges,
    add_number,
    count_of,
    numbered_key_of,
    numbers_of,
)

#: Where a step stands among those of its session: when it was sent, its number, its own time.
Place = tuple[int, int, int]
#: Before every place.
NOWHERE: Final[Place] = (0, 0, 0)


def place_of(one: Step) -> Place:
    """Where the step stands among those of its session. Of the beacon numbered 0 its own time counts."""
    return (one.told_ms if one.seq else one.at_ms, one.seq, one.at_ms)


class ByNumber(msgspec.Struct, array_like=True, tag=1):
    """What is stored of the order."""

    #: The first number of the view.
    first_seq: int
    #: The number of the next step to fold.
    next_seq: int
    #: Steps after a gap, in the order of their numbers.
    held: list[Step] = []
    #: Gaps given up, as [first, last] numbers.
    given_up: Ranges = []
    #: The number after the last settled step, and the last place of a settled step.
    settled_next_seq: int = 0
    settled_at: Place = NOWHERE
    #: The view was truncated: nothing is put in its place any more, and `numbers` have come.
    is_cut: bool = False
    numbers: Ranges = []

    @property
    def waiting(self) -> list[Step]:
        """Steps that are not folded yet."""
        return self.held

    @property
    def has_gaps(self) -> bool:
        """Whether numbers are missing."""
        return bool(self.held or self.given_up)

    @property
    def has_numbers(self) -> bool:
        """Whether every beacon of the view has a number."""
        return True

    @property
    def last_seq(self) -> int:
        """The largest number that has come."""
        return self.held[-1].seq if self.held else self.next_seq - 1

    def take(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> Taken:
        """Takes a step in where it belongs, once."""
        if self.is_cut:
            taken = self._take_cut(folded, dimensions, next_step)
        elif next_step.seq == self.next_seq:
            changed = self._apply(folded, dimensions, next_step)
            if self.held:
                changed = self._release(folded, dimensions) or changed
            taken = Taken(is_new=True, dimensions_changed=changed)
        elif next_step.seq > self.next_seq:
            taken = self._hold(folded, dimensions, next_step)
        elif self._fill(next_step.seq):
            taken = take_late(folded, dimensions, next_step)
        else:
            taken = take_copy(folded, dimensions, next_step, self.held)
        return taken

    def take_all(self, folded: Folded, dimensions: dict[str, Any], steps: Iterable[Step]) -> None:
        """Folds these steps, in the order of their numbers, in the place of all that are not settled."""
        back_to_settled(folded, dimensions)
        self.next_seq = self.settled_next_seq if folded.settled is not None else self.first_seq
        self.settled_next_seq = self.next_seq
        self.held = []
        # Steps after a gap that was given up among them wait again, and the gap is given up again if it must be.
        self.given_up = [gap for gap in self.given_up if gap[1] < self.next_seq]
        for one in steps:
            self.take(folded, dimensions, one)

    def cut(self, folded: Folded) -> None:
        """Notes which steps have come, before the view is truncated."""
        self.numbers = self._known()
        self.settled_at = max([*map(place_of, (*folded.recent, *self.held)), self.settled_at])
        self.next_seq = self.settled_next_seq = self.last_seq + 1
        self.held, self.given_up = [], []
        self.is_cut = True

    def missing(self, until_seq: int) -> int:
        """Numbers that never came below the largest one, or below `until_seq`, which the next play of the session begins with."""
        end = max(self.last_seq + 1, until_seq)
        if self.is_cut:
            return end - self.first_seq - count_of(self.numbers)
        return count_of(self.given_up) + end - self.next_seq - len(self.held)

    def remembered(self, folded: Folded, *, in_session: bool) -> tuple[Ranges, list[int]]:
        """The numbers, and the keys, by which a beacon that comes again is known after the view has closed.

        Within a session numbers begin again: steps that are not settled are known by their times, too.
        """
        if self.is_cut or not in_session:
            return self._known(), []
        numbers = numbers_of(self.first_seq, self.settled_next_seq, self.given_up, ())
        return numbers, [*map(numbered_key_of, (*folded.recent, *self.held))]

    def _known(self) -> Ranges:
        if self.is_cut:
            return self.numbers
        return numbers_of(self.first_seq, self.next_seq, self.given_up, [one.seq for one in self.held])

    def _take_cut(self, folded: Folded, dimensions: dict[str, Any], step: Step) -> Taken:
        if not add_number(self.numbers, step.seq):
            return DUPLICATE
        self.next_seq = self.settled_next_seq = max(self.next_seq, step.seq + 1)
        self.settled_at = max(self.settled_at, place_of(step))
        return take_out_of_place(folded, dimensions, step)

    def _apply(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> bool:
        changed = apply(folded, dimensions, next_step)
        self.next_seq = next_step.seq + 1
        if len(folded.recent) > RECENT_STEPS_MAX:
            self._settle(folded)
        return changed

    def _settle(self, folded: Folded) -> None:
        for oldest in settle(folded):
            self.settled_next_seq = oldest.seq + 1
            self.settled_at = max(self.settled_at, place_of(oldest))

    def _release(self, folded: Folded, dimensions: dict[str, Any]) -> bool:
        """Folds the held steps before the next gap. Returns whether dimensions changed."""
        count = 0
        changed = False
        for held in self.held:
            if held.seq != self.next_seq:
                break
            changed = self._apply(folded, dimensions, held) or changed
            count += 1
        if count:
            self.held = self.held[count:]
        return changed

    def _hold(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> Taken:
        at = len(self.held)
        while at and self.held[at - 1].seq > next_step.seq:
            at -= 1
        if at and self.held[at - 1].seq == next_step.seq:
            return take_copy(folded, dimensions, next_step, self.held)
        self.held = [*self.held[:at], next_step, *self.held[at:]]
        changed = False
        if len(self.held) > HELD_STEPS_MAX:
            self.given_up = [*self.given_up, [self.next_seq, self.held[0].seq - 1]]
            self.next_seq = self.held[0].seq
            changed = self._release(folded, dimensions)
        return Taken(is_new=True, dimensions_changed=changed)

    def _fill(self, seq: int) -> bool:
        """Takes a number out of the gaps given up. Returns whether it was in one of them."""
        for at, (first, last) in enumerate(self.given_up):
            if first <= seq <= last:
                parts = ([first, seq - 1], [seq + 1, last])
                self.given_up[at : at + 1] = [part for part in parts if part[0] <= part[1]]
                return True
        return False
