"""The clock of a client that is set back: the order of plays, and of beacons without numbers, follows the times of receipt then.

The *delay* of a step is its server time less its client time. A step that was received after a quicker one, which was sent
after it, was either delayed, or the clock was set back. After a clock was set back, delays stay as they are. A delayed step is
followed by quick ones (docs/view.md, "Plays of a CMCD session"). Times in ms.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.view.order.by_number import Place, place_by, place_of
from services.processor.applications.video_views.view.order.delayed_alike import (
    Numbers,
    was_delayed,
    was_set_back,
    with_shift,
)
from services.processor.applications.video_views.view.order.spans import Span

#: A smaller difference of delays is that of slow requests.
SET_BACK_MS_MIN: Final = 30_000
#: Steps over so long have delays that differ by no more than this.
LEVEL_MS_MIN: Final = 10_000
LEVEL_SPREAD_MS_MAX: Final = 5_000
#: The range of a session's delays is widened by so much at once, so that it seldom changes.
_RANGE_MS: Final = 5_000
#: Clocks of one session, and groups of slow steps that may show one.
CLOCKS_MAX: Final = 16
GROUPS_MAX: Final = 32


class SetBack(msgspec.Struct, array_like=True, gc=False):
    """The first step, by the client's clock, before which that was set back."""

    begun_ms: int
    #: From this delay on steps are of the clock after it, and are moved by so much.
    delay_ms: int
    shift_ms: int
    #: When the first step by the clock after it was received.
    recv_ms: int
    #: What identifies that step beside its time.
    seq: int = 0
    tie: int = 0


def delay_ms(step: Step) -> int:
    """The server time of a step less its client time."""
    return step.server_ms - step.at_ms


def shifted_delay_ms(step: Step) -> int:
    """The delay of a step by the session's first clock."""
    return delay_ms(step) - step.shift_ms


def shifted(step: Step, known: Sequence[SetBack]) -> Step:
    """The step with the shift of the clock that it was sent by; the same object if it has that."""
    return _by_clock(step, _clock_of(step, sorted(known, key=_by_delay, reverse=True)))


def shifts_ms(step: Step, known: Sequence[SetBack]) -> tuple[int, ...]:
    """The shifts of the clocks that the step may have been sent by: of any that was known, if it was delayed."""
    if not is_delayed(step, known):
        return (step.shift_ms,)
    return (0, *(one.shift_ms for one in known))


def all_shifted(steps: Sequence[Step], known: Sequence[SetBack]) -> list[Step]:
    """The steps with the shifts of the clocks that they were sent by.

    A step that was also delayed may be of any clock before the one that its delay shows. It is of the one by which its number is
    between those around it.
    """
    last_first = sorted(known, key=_by_delay, reverse=True)
    clocks = [_clock_of(one, last_first) for one in steps]
    moved = [_by_clock(one, of_clock) for one, of_clock in zip(steps, clocks, strict=True)]
    are_delayed = [_is_behind(one, of_clock) for one, of_clock in zip(steps, clocks, strict=True)]
    places = sorted(place_of(one) for one, is_behind in zip(moved, are_delayed, strict=True) if not is_behind)
    shifts_ms = sorted({0, *(one.shift_ms for one in known)}, reverse=True)
    return [
        _between_its_numbers(one, shifts_ms, places) if is_behind else one
        for one, is_behind in zip(moved, are_delayed, strict=True)
    ]


def is_delayed(step: Step, known: Sequence[SetBack]) -> bool:
    """Whether the delay of a step is not a clock's: it may have been sent by an earlier one, or before all of them."""
    return _is_behind(step, _clock_of(step, sorted(known, key=_by_delay, reverse=True)))


def _is_behind(step: Step, of_clock: SetBack | None) -> bool:
    return of_clock is not None and delay_ms(step) - of_clock.delay_ms > LEVEL_SPREAD_MS_MAX


def _by_clock(step: Step, of_clock: SetBack | None) -> Step:
    return with_shift(step, _shift_ms(of_clock))


def _shift_ms(of_clock: SetBack | None) -> int:
    return 0 if of_clock is None else of_clock.shift_ms


def _clock_of(step: Step, last_first: Sequence[SetBack]) -> SetBack | None:
    """The last clock that the step may have been sent by, of clocks whose delays fall."""
    delay = delay_ms(step) + LEVEL_SPREAD_MS_MAX
    for one in last_first:
        if one.delay_ms <= delay and one.recv_ms <= step.recv_ms:
            return one
    return None


def _between_its_numbers(step: Step, shifts_ms: Sequence[int], places: Sequence[Place]) -> Step:
    """The delayed step by the clock by which it comes before a greater number and, unless a run begins with it, after a smaller."""
    for shift_ms in shifts_ms:
        if shift_ms > step.shift_ms:
            continue
        at = bisect_left(places, place_by(step, shift_ms))
        is_before_greater = at < len(places) and places[at][1] > step.seq
        is_after_smaller = not step.seq or (at > 0 and places[at - 1][1] < step.seq)
        if is_before_greater and is_after_smaller and (step.seq or not at or places[at - 1][1] >= places[at][1]):
            return with_shift(step, shift_ms)
    return step


def has_delay(delays_ms: tuple[int, int] | None, step: Step) -> bool:
    """Whether the delay of a step is in this range."""
    return delays_ms is not None and delays_ms[0] <= delay_ms(step) <= delays_ms[1]


def ranged(delays_ms: tuple[int, int] | None, steps: Iterable[Step]) -> tuple[int, int] | None:
    """The range of delays with those of these steps."""
    least_ms, most_ms = delays_ms or (1 << 62, -1 << 62)
    for one in steps:
        delay = delay_ms(one)
        if not least_ms <= delay <= most_ms:
            begin_ms = delay // _RANGE_MS * _RANGE_MS
            least_ms, most_ms = min(least_ms, begin_ms), max(most_ms, begin_ms + _RANGE_MS)
    return (least_ms, most_ms) if least_ms <= most_ms else None


def may_differ(delays_ms: tuple[int, int]) -> bool:
    """Whether delays in this range may be by several clocks."""
    return delays_ms[1] - delays_ms[0] >= SET_BACK_MS_MIN


def has_slow(steps: Iterable[Step]) -> bool:
    """Whether one of them was received after a quicker one that was sent after it: without that no clock was set back."""
    return bool(_slow(steps))


def found_in(
    steps: Iterable[Step], known: Sequence[SetBack], settled: Sequence[Span] = (), *, are_numbered: bool = True
) -> list[SetBack]:
    """The steps among these at which the clock was set back, beside those that are known.

    Each is the first one by its clock. `settled` says when steps were sent that cannot be moved. `are_numbered`: the steps have
    numbers, which show which of them were only delayed.
    """
    in_order = sorted(steps, key=_by_time)
    found = [one for one in known if not _is_judged_again(one, in_order)][-CLOCKS_MAX:]
    slow = _slow(in_order)
    slow_ids = set(map(id, slow))
    ends = [place for one in settled for place in ((one.from_ms, one.first_seq, 0), (one.to_ms, one.until_seq - 1, 0))]
    places = sorted(ends + [place_by(one, 0) for one in in_order if id(one) not in slow_ids])
    untimed = {(one.seq, one.at_ms) for one in in_order if not one.is_timed}
    by_delay = sorted(in_order, key=delay_ms)
    # The clock that was set back least first: what was delayed lies between steps by it.
    for alike in _groups(slow):
        first = min((one for one in alike if one.is_timed), key=_by_time, default=None)
        if first is None:
            continue
        level = _level(first, by_delay)
        if any(one.begun_ms <= first.at_ms and _is_level(delay_ms(first), one.delay_ms) for one in found):
            continue
        of_clock, is_level = _judged(first, in_order, level, found, are_numbered=are_numbered)
        if of_clock is not None:
            delayed = [one for one in level if id(one) in slow_ids] if is_level else None
            shifts_ms = [0, *(one.shift_ms for one in found)]
            numbers = Numbers(places, untimed, shifts_ms, settled) if are_numbered else None
            of_clock = of_clock if _is_clock(of_clock, in_order, level, delayed, numbers) else None
        if of_clock is not None:
            found.append(of_clock)
            if len(found) >= CLOCKS_MAX:
                break
        shift_ms = _shift_ms(of_clock)
        moved = {place_by(one, 0) for one in level}
        places = sorted({*places} - moved | {place_by(one, shift_ms) for one in level})
    return found


def _is_judged_again(one: SetBack, in_order: Sequence[Step]) -> bool:
    """Whether the steps show again what they showed of a clock, or that it was none.

    They do as long as its first step and one that was sent before it can be moved. After that it stays known.
    """
    # Its delay may be another one: that of a copy that was received before.
    first = (one.begun_ms, one.seq, one.tie)
    begun = any((step.at_ms, step.seq, step.tie) == first for step in in_order)
    return begun and any(
        step.at_ms > one.begun_ms and one.delay_ms - delay_ms(step) >= SET_BACK_MS_MIN for step in in_order
    )


def _groups(slow: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """The slow steps, which are sorted by delay, by groups with about one delay; at most `GROUPS_MAX` of them."""
    at = 0
    for _ in range(GROUPS_MAX):
        if at == len(slow):
            return
        end = bisect_right(slow, delay_ms(slow[at]) + LEVEL_SPREAD_MS_MAX, key=delay_ms)
        yield slow[at:end]
        at = end


def _level(first: Step, by_delay: Sequence[Step]) -> list[Step]:
    """The steps with the delay of this one, from it on, in order of time."""
    delay = delay_ms(first)
    begin = bisect_left(by_delay, delay - LEVEL_SPREAD_MS_MAX, key=delay_ms)
    end = bisect_right(by_delay, delay + LEVEL_SPREAD_MS_MAX, key=delay_ms)
    return sorted((one for one in by_delay[begin:end] if one.at_ms >= first.at_ms), key=_by_time)


def _slow(steps: Iterable[Step]) -> list[Step]:
    """The steps that were received after a quicker one that was sent after them, the quickest first."""
    slow: list[Step] = []
    #: The steps received so far of which none is both later and quicker: with the time the delay rises.
    quickest: list[Step] = []
    for one in sorted(steps, key=_by_receipt):
        at = bisect_right(quickest, one.at_ms, key=_by_time)
        if at < len(quickest) and delay_ms(one) - delay_ms(quickest[at]) >= SET_BACK_MS_MIN:
            slow.append(one)
        if at == len(quickest) or delay_ms(quickest[at]) > delay_ms(one):
            first = at
            while first and delay_ms(quickest[first - 1]) >= delay_ms(one):
                first -= 1
            quickest[first:at] = [one]
    return sorted(slow, key=delay_ms)


def _judged(
    first: Step, in_order: Sequence[Step], level: Sequence[Step], known: Sequence[SetBack], *, are_numbered: bool
) -> tuple[SetBack | None, bool]:
    """What the steps show of the first one by a clock, if they show one, and whether others have its delay long enough.

    `level` have its delay; `known` are the clocks that were set back by less.
    """
    later = in_order[bisect_right(in_order, first.at_ms, key=_by_time) :]
    quick_ms, recv_ms = delay_ms(first) - SET_BACK_MS_MIN, first.recv_ms
    before = [one for one in later if one.recv_ms < recv_ms and delay_ms(one) <= quick_ms]
    if not before:
        return None, False
    last_first = sorted(known, key=_by_delay, reverse=True)
    base_ms = min(delay_ms(one) - _shift_ms(_clock_of(one, last_first)) for one in before)
    # Beginnings that were delayed alike are no clock.
    beginnings = (one.at_ms for one in later if not one.seq and _is_level(delay_ms(one), delay_ms(first)))
    until_ms = next(beginnings, None) if are_numbered else None
    from_ms = first.at_ms + LEVEL_MS_MIN
    own = [one for one in level if one.at_ms >= from_ms and (until_ms is None or one.at_ms < until_ms)]
    recv_ms = min([first.recv_ms, *(one.recv_ms for one in own)])
    found = SetBack(first.at_ms, delay_ms(first), delay_ms(first) - base_ms, recv_ms, first.seq, first.tie)
    return found, bool(own)


def _is_clock(
    one: SetBack,
    in_order: Sequence[Step],
    level: Sequence[Step],
    delayed: Sequence[Step] | None,
    numbers: Numbers | None,
) -> bool:
    """Whether the clock of these steps was set back, which is possible; `delayed` are those of `level` that are slow.

    `delayed` is None if they do not last long enough to show a clock by their delay alone.

    A quick step may have been sent after the first of them, by the clock before it. Then they were delayed, or the clock was set
    forward again; only numbers show which.
    """
    later = in_order[bisect_left(in_order, one.begun_ms + one.shift_ms, key=_by_time) :]
    quick_ms = one.delay_ms - SET_BACK_MS_MIN
    forward_ms = next((step.at_ms for step in later if delay_ms(step) <= quick_ms), None)
    if numbers is None:
        return delayed is not None and forward_ms is None
    if delayed is not None and forward_ms is None and not was_delayed(delayed, numbers):
        return True
    until_ms = None if forward_ms is None else forward_ms - one.shift_ms
    return was_set_back(level, until_ms, one.shift_ms, numbers)


def _is_level(delay: int, other: int) -> bool:
    """Whether two delays are about the same."""
    return abs(delay - other) <= LEVEL_SPREAD_MS_MAX


def _by_time(step: Step) -> int:
    return step.at_ms


def _by_receipt(step: Step) -> int:
    return step.recv_ms


def _by_delay(one: SetBack) -> int:
    return one.delay_ms
