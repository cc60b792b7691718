"""Steps with about one delay: whether they were only delayed, or sent by a clock that was set back, by their numbers.

Numbers rise with the time, but for the beginning of a play. Such steps may have been sent at two places: at their own times, or
at those times moved by the difference of delays. The numbers around them show which is right. Times in ms.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.order.by_number import Place, place_by
from services.processor.applications.video_views.view.order.spans import Span

#: So many numbers more are missing where steps are not where they were sent. Two that were delayed alike, while the next play
#: lost the same two, are no clock.
MISSING_MORE_MIN: Final = 3


def with_shift(step: Step, shift_ms: int) -> Step:
    """The step with this shift of its clock; the same object if it has that."""
    return step if step.shift_ms == shift_ms else msgspec.structs.replace(step, shift_ms=shift_ms)


class Numbers(NamedTuple):
    """What shows whether steps were only delayed."""

    #: Of other steps, in order; and of those that may have been delayed, where nothing shows that they were.
    places: Sequence[Place]
    #: The numbers and times of steps that tell of what was before.
    untimed: Set[tuple[int, int]]
    #: The shifts of the clocks by which they may have been sent.
    shifts_ms: Sequence[int]
    #: When steps were sent that cannot be moved.
    settled: Sequence[Span]


def was_delayed(level: Sequence[Step], numbers: Numbers) -> bool:
    """Whether steps were only delayed: one lies, by number and time, between two others.

    Or their numbers, with those around them, rise with the time up to that of another: they are of its run.
    """
    places = numbers.places
    for shift_ms in numbers.shifts_ms:
        own = _places(level, shift_ms)
        if _rises(own, places):
            return True
        for place in own:
            at = bisect_left(places, place)
            lies_between = 0 < at < len(places) and places[at - 1][1] < place[1] < places[at][1]
            # Where its number is settled, the step is of another run.
            if lies_between and not any(
                span.has(place[1]) and span.from_ms <= place[0] <= span.to_ms for span in numbers.settled
            ):
                return True
    return False


def was_set_back(level: Sequence[Step], until_ms: int | None, shift_ms: int, numbers: Numbers) -> bool:
    """Whether only a clock that was set back, by `shift_ms`, explains these steps up to a time, though it was set forward again.

    Moved by that, their numbers go on with the one before them and rise up to the one after them, or begin again. Where they
    are, by a clock with any of the shifts, more numbers would be missing. Untimed steps do not count.
    """
    timed = [one for one in level if one.is_timed and (until_ms is None or one.at_ms < until_ms)]
    rest = [one for one in level if one.is_timed and until_ms is not None and one.at_ms >= until_ms]
    own = set(_places(level, 0))
    places = [one for one in numbers.places if one not in own]
    if numbers.untimed:
        places = [one for one in places if one[1:] not in numbers.untimed]
    moved = _places(timed, shift_ms)
    if not moved or not _goes_on(moved, places):
        return False
    for one in numbers.shifts_ms:
        # What comes behind that time is by the clock again, or was delayed.
        with_clock = min(_missing([*moved, *_places(rest, by_ms), *places]) for by_ms in (shift_ms, one))
        if _missing([*_places([*timed, *rest], one), *places]) < with_clock + MISSING_MORE_MIN:
            return False
    return True


def _places(level: Sequence[Step], shift_ms: int) -> list[Place]:
    return [place_by(one, shift_ms) for one in level]


def _rises(own: Sequence[Place], places: Sequence[Place]) -> bool:
    """Whether the numbers from the first of these places to the place after the last one rise with the time."""
    begin, end = bisect_left(places, own[0]), bisect_right(places, own[-1])
    if end == len(places) or (own[0][1] and begin and places[begin - 1][1] >= own[0][1]):
        return False
    numbers = [number for _, number, _ in sorted([*own, *places[begin : end + 1]])]
    return all(one < following for one, following in pairwise(numbers))


def _goes_on(own: Sequence[Place], places: Sequence[Place]) -> bool:
    """As `_rises`, or plays begin behind the first of these places, which directly follows a number or begins a play itself."""
    begin, end = bisect_left(places, own[0]), bisect_right(places, own[-1])
    before, first = places[begin - 1][1] if begin else -1, own[0][1]
    if end == len(places) or (first and before >= first):
        return False
    numbers = [number for _, number, _ in sorted([*own, *places[begin : end + 1]])]
    if 0 in numbers[1:] and first and before != first - 1:
        return False
    return all(one < following or not following for one, following in pairwise(numbers))


def _missing(places: Sequence[Place]) -> int:
    """How many numbers are missing: between two in order, and before one with which a play begins."""
    numbers = [number for _, number, _ in sorted(places)]
    return sum(later - one - 1 if later > one else later for one, later in pairwise([-1, *numbers]))
