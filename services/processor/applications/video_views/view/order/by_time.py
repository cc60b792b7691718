"""The order of a view whose beacons are put in order by the client's time (EPAS, native).

If every beacon of the view has a number, the number comes before the time. Else what was sent after the client's clock was set
back is moved behind what was sent before. The newest steps are kept, so that one that comes late is folded in its place.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import KEYS_MAX, NUMBER_RANGES_MAX, RECENT_STEPS_MAX
from services.processor.applications.video_views.view.folded import (
    apply,
    fold_again,
    newest_step,
    newest_within,
    note_offset,
    recent_steps,
    settle,
    take_copy,
    take_late,
)
from services.processor.applications.video_views.view.folded_state import NEW, NEW_WITH_DIMENSIONS, Folded, StepTaken
from services.processor.applications.video_views.view.order.seen import Ranges, add_key, count_of, key_of, put_number
from services.processor.applications.video_views.view.order.set_back import (
    SetBack,
    found_in,
    has_delay,
    may_differ,
    ranged,
    shifted,
)


class ByTime(msgspec.Struct, array_like=True, gc=False, tag=2):
    """What is stored of the order."""

    #: Whether each beacon so far has a number.
    is_numbered: bool = True
    #: The place of the last settled step.
    settled_at: tuple[int, int, int] = (0, 0, 0)
    #: Keys of the settled steps, and of those that came too late; the newest `KEYS_MAX`.
    settled_keys: list[int] = []
    #: The numbers that have come: the highest ranges of them.
    numbers: Ranges = []
    #: Of a view without numbers: where the client's clock was set back, and between which delays its steps lie.
    set_back: list[SetBack] = []
    delays_ms: tuple[int, int] | None = None
    #: Up to which number it is not known which ones came, and how many of them did not.
    forgotten_until: int = 0
    forgotten: int = 0

    @property
    def waiting(self) -> list[Step]:
        """Steps that are not folded yet: none wait."""
        return []

    @property
    def has_gaps(self) -> bool:
        """Whether steps wait for others: never."""
        return False

    @property
    def has_numbers(self) -> bool:
        """Whether every beacon of the view has a number."""
        return self.is_numbered

    def take_step(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        """Takes a step in where it belongs, once."""
        is_reordered = self.is_numbered and not next_step.seq and self._order_by_time(folded, dimensions)
        if not self.is_numbered and not has_delay(self.delays_ms, next_step):
            self.delays_ms = ranged(self.delays_ms, [next_step])
        if self.delays_ms is not None and may_differ(self.delays_ms):
            taken = self._put_by_clocks(folded, dimensions, next_step)
        else:
            taken = self._put(folded, dimensions, next_step)
        if taken.is_new and next_step.seq:
            self.take_number(next_step.seq)
        return taken._replace(dimensions_changed=True) if is_reordered else taken

    def take_number(self, number: int) -> None:
        """Notes the number of a new step.

        While numbers are missing among the forgotten ones, it may be one of these: of steps that are new it is.
        """
        if number <= self.forgotten_until:
            self.forgotten = max(0, self.forgotten - 1)
        elif put_number(self.numbers, number) and len(self.numbers) > NUMBER_RANGES_MAX:
            first, last = self.numbers.pop(0)
            self.forgotten += first - 1 - self.forgotten_until
            self.forgotten_until = last

    def shrink(self, folded: Folded) -> None:
        """Settles recent steps beyond their bytes."""
        self._settle(folded, newest_within(folded.recent))

    def missing(self, until_seq: int) -> int:  # noqa: ARG002  # as of `ByNumber`: these clients have no sessions of plays
        """Numbers from 1 to the largest one that never came; 0 if the client gives no numbers."""
        if not self.numbers:
            return 0
        return self.forgotten + self.numbers[-1][1] - self.forgotten_until - count_of(self.numbers)

    def remembered(self, folded: Folded, *, in_session: bool) -> tuple[Ranges, list[int]]:  # noqa: ARG002  # as above
        """The numbers, and the keys, by which a beacon that comes again is known after the view has closed."""
        return [], [*self.settled_keys, *map(key_of, recent_steps(folded))]

    def _place_of(self, one: Step) -> tuple[int, int, int]:
        return (one.seq if self.is_numbered else 0, one.at_ms + one.shift_ms, one.tie)

    def _order_by_time(self, folded: Folded, dimensions: dict[str, Any]) -> bool:
        """Puts the view in order by time alone: a beacon without a number has come. Returns whether that changed the order."""
        self.is_numbered = False
        self.settled_at = (0, *self.settled_at[1:])
        recent = recent_steps(folded)
        self.delays_ms = ranged(None, recent)
        in_order = sorted(recent, key=self._place_of)
        is_changed = in_order != recent
        if is_changed:
            fold_again(folded, dimensions, in_order)
        return is_changed

    def _put_by_clocks(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        """As `_put`, where a step may change what is known of the client's clocks."""
        original = next(
            (one for one in recent_steps(folded) if one.at_ms == next_step.at_ms and one.tie == next_step.tie), None
        )
        if original is not None:
            # A copy has a delay of its own: it stands where its original does.
            taken = self._put(folded, dimensions, msgspec.structs.replace(next_step, shift_ms=original.shift_ms))
            return taken._replace(dimensions_changed=self._arrange(folded, dimensions, ()) or taken.dimensions_changed)
        if folded.settled is not None and self._place_of(shifted(next_step, self.set_back)) <= self.settled_at:
            return self._put(folded, dimensions, shifted(next_step, self.set_back))
        self._arrange(folded, dimensions, (next_step,))
        self._settle(folded, RECENT_STEPS_MAX)
        return NEW_WITH_DIMENSIONS

    def _arrange(self, folded: Folded, dimensions: dict[str, Any], new: Sequence[Step]) -> bool:
        """Puts the steps that can be moved, and new ones, in order by the clocks that all of them show; whether that changed."""
        before = recent_steps(folded)
        steps = [*before, *new]
        self.set_back = found_in(steps, self.set_back, are_numbered=False)
        in_order = sorted((shifted(one, self.set_back) for one in steps), key=self._place_of)
        if new and all(one is other for one, other in zip(before, in_order, strict=False)):
            apply(folded, dimensions, in_order[-1])
            return True
        is_changed = in_order != before
        if is_changed:
            fold_again(folded, dimensions, in_order)
        return is_changed

    def _put(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        newest = newest_step(folded)
        if newest is not None and self._place_of(newest) < self._place_of(next_step):
            taken = NEW_WITH_DIMENSIONS if apply(folded, dimensions, next_step) else NEW
        else:
            taken = self._put_before(folded, dimensions, next_step)
        if len(folded.recent) > RECENT_STEPS_MAX:
            self._settle(folded, RECENT_STEPS_MAX)
        return taken

    def _put_before(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> StepTaken:
        """As `_put`, of a step that does not come after all recent ones, or where there are none."""
        place = self._place_of(next_step)
        recent = recent_steps(folded)
        at = len(recent)
        while at and self._place_of(recent[at - 1]) > place:
            at -= 1
        is_settled = not at and folded.settled is not None and place <= self.settled_at
        if is_settled:
            comes_again = not add_key(self.settled_keys, key_of(next_step))
        else:
            comes_again = at > 0 and self._place_of(recent[at - 1]) == place
        if comes_again:
            return take_copy(folded, dimensions, next_step, [])
        if is_settled:
            note_offset(folded, next_step.clock_offset_ms)
            return take_late(folded, dimensions, next_step)
        if at == len(recent):
            return NEW_WITH_DIMENSIONS if apply(folded, dimensions, next_step) else NEW
        fold_again(folded, dimensions, [*recent[:at], next_step, *recent[at:]])
        return NEW_WITH_DIMENSIONS

    def _settle(self, folded: Folded, steps_max: int) -> None:
        for oldest in settle(folded, steps_max):
            self.settled_at = self._place_of(oldest)
            self.settled_keys = [*self.settled_keys[1 - KEYS_MAX :], key_of(oldest)]
