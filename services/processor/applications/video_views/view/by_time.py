"""The order of a view whose beacons are put in order by the client's time (EPAS, native).

If every beacon of the view has a number, the number comes before the time. The newest steps are kept, so that one that comes
late is folded in its place.
"""

from typing import Any

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import KEYS_MAX, RECENT_STEPS_MAX
from services.processor.applications.video_views.view.folded import (
    Folded,
    Taken,
    apply,
    fold_again,
    newest_within,
    note_offset,
    settle,
    take_copy,
    take_late,
)
from services.processor.applications.video_views.view.seen import Ranges, add_key, add_number, count_of, key_of


class ByTime(msgspec.Struct, array_like=True, tag=2):
    """What is stored of the order."""

    #: Whether each beacon so far has a number.
    is_numbered: bool = True
    #: The place of the last settled step.
    settled_at: tuple[int, int, int] = (0, 0, 0)
    #: Keys of the settled steps, and of those that came too late; the newest `KEYS_MAX`.
    settled_keys: list[int] = []
    #: The numbers that have come.
    numbers: Ranges = []

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

    def take(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> Taken:
        """Takes a step in where it belongs, once."""
        is_reordered = self.is_numbered and not next_step.seq and self._order_by_time(folded, dimensions)
        taken = self._put(folded, dimensions, next_step)
        if taken.is_new and next_step.seq:
            add_number(self.numbers, next_step.seq)
        return taken._replace(dimensions_changed=True) if is_reordered else taken

    def shrink(self, folded: Folded) -> None:
        """Settles recent steps beyond their bytes."""
        self._settle(folded, newest_within(folded.recent))

    def missing(self, until_seq: int) -> int:  # noqa: ARG002  # as of `ByNumber`: these clients have no sessions of plays
        """Numbers from 1 to the largest one that never came; 0 if the client gives no numbers."""
        return self.numbers[-1][1] - count_of(self.numbers) if self.numbers else 0

    def remembered(self, folded: Folded, *, in_session: bool) -> tuple[Ranges, list[int]]:  # noqa: ARG002  # as above
        """The numbers, and the keys, by which a beacon that comes again is known after the view has closed."""
        return [], [*self.settled_keys, *map(key_of, folded.recent)]

    def _place_of(self, one: Step) -> tuple[int, int, int]:
        return (one.seq if self.is_numbered else 0, one.at_ms, one.tie)

    def _order_by_time(self, folded: Folded, dimensions: dict[str, Any]) -> bool:
        """Puts the view in order by time alone: a beacon without a number has come. Returns whether that changed the order."""
        self.is_numbered = False
        self.settled_at = (0, *self.settled_at[1:])
        in_order = sorted(folded.recent, key=self._place_of)
        is_changed = in_order != folded.recent
        if is_changed:
            fold_again(folded, dimensions, in_order)
        return is_changed

    def _put(self, folded: Folded, dimensions: dict[str, Any], next_step: Step) -> Taken:
        place = self._place_of(next_step)
        recent = folded.recent
        at = len(recent)
        while at and self._place_of(recent[at - 1]) > place:
            at -= 1
        is_settled = not at and folded.settled is not None and place <= self.settled_at
        if is_settled:
            comes_again = not add_key(self.settled_keys, key_of(next_step))
        else:
            comes_again = at > 0 and self._place_of(recent[at - 1]) == place
        if comes_again:
            taken = take_copy(folded, dimensions, next_step, [])
        elif is_settled:
            note_offset(folded, next_step.clock_offset_ms)
            taken = take_late(folded, dimensions, next_step)
        elif at == len(recent):
            taken = Taken(is_new=True, dimensions_changed=apply(folded, dimensions, next_step))
        else:
            fold_again(folded, dimensions, [*recent[:at], next_step, *recent[at:]])
            taken = Taken(is_new=True, dimensions_changed=True)
        self._settle(folded, RECENT_STEPS_MAX)
        return taken

    def _settle(self, folded: Folded, steps_max: int) -> None:
        for oldest in settle(folded, steps_max):
            self.settled_at = self._place_of(oldest)
            self.settled_keys = [*self.settled_keys[1 - KEYS_MAX :], key_of(oldest)]
