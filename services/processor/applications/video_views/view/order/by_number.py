"""The order of a view whose client numbers its beacons (mux, CMCD).

The steps up to the first gap in the numbers are folded. Those after it wait in `held` until the gap closes. If too many wait, by
number or by bytes, the gap is given up. The waiting steps are folded, and later steps of the gap are late.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import (
    HELD_BYTES_MAX,
    HELD_STEPS_MAX,
    NUMBER_RANGES_MAX,
    RECENT_STEPS_MAX,
)
from services.processor.applications.video_views.view.folded import (
    apply,
    back_to_settled,
    bytes_of,
    newest_within,
    recent_steps,
    settle,
    take_copy,
    take_late,
)
from services.processor.applications.video_views.view.folded_state import NEW, NEW_WITH_DIMENSIONS, Folded, StepTaken
from services.processor.applications.video_views.view.order.seen import (
    Ranges,
    count_of,
    numbered_key_of,
    numbers_of,
)
from services.processor.applications.video_views.view.order.spans import Span, may_be_sent, note_sent

#: Where a step stands among those of its session: when it was sent, its number, its own time.
Place = tuple[int, int, int]
#: A missing beacon may have been sent so long before or after those around it: the client's clock may have stepped beside it.
MISSING_SLACK_MS: Final = 60_000
#: Before every place.
NOWHERE: Final[Place] = (0, 0, 0)


def place_of(one: Step) -> Place:
    """Where the step stands among those of its session. Of the beacon numbered 0 its own time counts."""
    # As `place_by` and `sent_ms` say it: a session asks for hundreds of places at each of its beacons.
    seq, at_ms = one.seq, one.at_ms
    return ((one.reported_ms if seq else at_ms) + one.shift_ms, seq, at_ms)


def place_by(one: Step, shift_ms: int) -> Place:
    """Where the step stands by a clock with this shift."""
    seq, at_ms = one.seq, one.at_ms
    return ((one.reported_ms if seq else at_ms) + shift_ms, seq, at_ms)


def latest_place_of(one: Step) -> Place:
    """Where the step stands at the latest: when its request was sent. An untimed step may tell of what was long before."""
    return (one.at_ms + one.recv_ms - one.server_ms + one.shift_ms, one.seq, one.at_ms)


def sent_ms(one: Step) -> int:
    """When the step was sent, by the client's clock. Of the beacon numbered 0 its own time counts."""
    return one.reported_ms if one.seq else one.at_ms


class ByNumber(msgspec.Struct, array_like=True, gc=False, tag=1):
    """What is stored of the order."""

    #: The first number of the view.
    first_seq: int
    #: The number of the next step to fold.
    next_seq: int
    #: Steps after a gap, in the order of their numbers.
    held: list[Step] = []
    #: What the held steps take, bytes packed.
    held_bytes: int = 0
    #: The newest gaps given up, as [first, last] numbers. Of older ones: how many numbers are missing, up to which one.
    given_up: Ranges = []
    forgotten: int = 0
    #: The number after the last settled step, and the first and the last place of a settled step.
    settled_next_seq: int = 0
    settled_from: Place = NOWHERE
    settled_at: Place = NOWHERE
    #: When what is settled was sent; None for clients whose numbers never begin again.
    spans: list[Span] | None = None
    #: Up to this number it is not known which ones are missing.
    forgotten_until: int = -1

    @property
    def waiting(self) -> list[Step]:
        """Steps that are not folded yet."""
        return self.held

    @property
    def gaps(self) -> Ranges:
        """The gaps given up, the newest exactly: any older number may be missing while one of the forgotten ones is."""
        return [[self.first_seq, self.forgotten_until], *self.given_up] if self.forgotten else self.given_up

    @property
    def has_gaps(self) -> bool:
        """Whether numbers are missing."""
        return bool(self.held or self.given_up or self.forgotten)

    @property
    def has_numbers(self) -> bool:
        """Whether every beacon of the view has a number."""
        return True

    @property
    def last_seq(self) -> int:
        """The largest number that has come."""
        return self.held[-1].seq if self.held else self.next_seq - 1

    def take_step(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        """Takes a step in where it belongs, once."""
        if next_step.seq == self.next_seq:
            changed = self.fold_next(folded, dimensions, next_step)
            if self.held:
                changed = self._release(folded, dimensions) or changed
            taken = NEW_WITH_DIMENSIONS if changed else NEW
        elif next_step.seq > self.next_seq:
            taken = self._hold(folded, dimensions, next_step)
        elif self.fill(next_step.seq):
            taken = take_late(folded, dimensions, next_step)
        else:
            taken = self._take_copy(folded, dimensions, next_step)
        return taken

    def fold_next(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> bool:
        """Folds the step that is the next in order; whether dimensions changed."""
        changed = apply(folded, dimensions, next_step)
        self.next_seq = next_step.seq + 1
        if len(folded.recent) > RECENT_STEPS_MAX:
            self._settle(folded, RECENT_STEPS_MAX)
        return changed

    def take_all(self, folded: Folded, dimensions: dict[str, Any], steps: Iterable[Step]) -> None:
        """Folds these steps, in the order of their numbers, in the place of all that are not settled."""
        back_to_settled(folded, dimensions)
        self.next_seq = self.settled_next_seq if folded.settled is not None else self.first_seq
        self.settled_next_seq = self.next_seq
        self.held, self.held_bytes = [], 0
        # Steps after a gap that was given up among them wait again, and the gap is given up again if it must be.
        self.given_up = [gap for gap in self.given_up if gap[1] < self.next_seq]
        for one in steps:
            self.take_step(folded, dimensions, one)

    def begin_at(self, first_seq: int) -> None:
        """The view begins with this number; of those before its former first one none has come."""
        if self.settled_next_seq > self.first_seq > first_seq:
            self.given_up = [[first_seq, self.first_seq - 1], *self.given_up]
        self.first_seq = first_seq

    def shrink(self, folded: Folded) -> None:
        """Settles recent steps beyond their bytes."""
        self._settle(folded, newest_within(folded.recent))

    def settle_all(self, folded: Folded, dimensions: dict[str, Any]) -> None:
        """Gives up all gaps, and settles all steps."""
        while self.held:
            self._give_up([self.next_seq, self.held[0].seq - 1])
            self._release(folded, dimensions)
        self._settle(folded, 0)

    def missing(self, until_seq: int) -> int:
        """Numbers that never came below the largest one, or below `until_seq`, which the next play of the session begins with."""
        end = max(self.last_seq + 1, until_seq)
        return self.forgotten + count_of(self.given_up) + end - self.next_seq - len(self.held)

    def remembered(self, folded: Folded, *, in_session: bool) -> tuple[Ranges, list[int]]:
        """The numbers, and the keys, by which a beacon that comes again is known after the view has closed.

        Within a session numbers begin again: steps that are not settled are known by their times, too.
        """
        if not in_session:
            held = [one.seq for one in self.held]
            return numbers_of(self.first_seq, self.next_seq, self.gaps, held), []
        numbers = numbers_of(self.first_seq, self.settled_next_seq, self.gaps, ())
        return numbers, [*map(numbered_key_of, (*recent_steps(folded), *self.held))]

    def _take_copy(self, folded: Folded, dimensions: dict[str, Any], copy: Step) -> StepTaken:
        taken = take_copy(folded, dimensions, copy, self.held)
        # A copy may have taken the place of a held step.
        self.held_bytes = sum(map(bytes_of, self.held))
        return taken

    def _settle(self, folded: Folded, steps_max: int) -> None:
        for oldest in settle(folded, steps_max):
            place = place_of(oldest)
            if self.spans is not None:
                note_sent(self.spans, oldest.seq, place[0])
            self.settled_next_seq = oldest.seq + 1
            self.settled_from = place if self.settled_from == NOWHERE else min(self.settled_from, place)
            self.settled_at = max(self.settled_at, place)

    def _release(self, folded: Folded, dimensions: dict[str, Any]) -> bool:
        """Folds the held steps before the next gap. Returns whether dimensions changed."""
        count = 0
        changed = False
        for held in self.held:
            if held.seq != self.next_seq:
                break
            changed = self.fold_next(folded, dimensions, held) or changed
            self.held_bytes -= bytes_of(held)
            count += 1
        if count:
            self.held = self.held[count:]
        return changed

    def _hold(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        at = len(self.held)
        while at and self.held[at - 1].seq > next_step.seq:
            at -= 1
        if at and self.held[at - 1].seq == next_step.seq:
            return self._take_copy(folded, dimensions, next_step)
        self.held = [*self.held[:at], next_step, *self.held[at:]]
        self.held_bytes += bytes_of(next_step)
        changed = False
        while len(self.held) > HELD_STEPS_MAX or self.held_bytes > HELD_BYTES_MAX:
            self._give_up([self.next_seq, self.held[0].seq - 1])
            changed = self._release(folded, dimensions) or changed
        return NEW_WITH_DIMENSIONS if changed else NEW

    def _give_up(self, gap: list[int]) -> None:
        self.given_up = [*self.given_up, gap]
        self.next_seq = gap[1] + 1
        if len(self.given_up) > NUMBER_RANGES_MAX:
            first, last = self.given_up.pop(0)
            self.forgotten += last - first + 1
            self.forgotten_until = last

    def may_have(self, one: Step, shifts_ms: Iterable[int]) -> bool:
        """Whether a step with a settled number was sent, by any clock of the session, when that number was, or about then."""
        slack_ms = MISSING_SLACK_MS if self.is_missing(one.seq) else 0
        return may_be_sent(self.spans or [], one.seq, sent_ms(one), shifts_ms, slack_ms=slack_ms)

    def is_missing(self, seq: int) -> bool:
        """Whether the number is in a gap that was given up, or may be in a forgotten one."""
        return any(first <= seq <= last for first, last in self.gaps)

    def fill(self, seq: int) -> bool:
        """Takes a number out of the gaps given up. Returns whether it was in one of them.

        While numbers are missing in the forgotten ranges, any number may be one of them. So a copy may count as late, and no step
        that comes for the first time counts as a copy.
        """
        if self.forgotten and seq <= self.forgotten_until:
            self.forgotten -= 1
            return True
        for at, (first, last) in enumerate(self.given_up):
            if first <= seq <= last:
                parts = ([first, seq - 1], [seq + 1, last])
                self.given_up[at : at + 1] = [part for part in parts if part[0] <= part[1]]
                return True
        return False
