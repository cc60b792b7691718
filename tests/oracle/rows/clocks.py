"""The clocks of one client: which beacons were sent after its clock was set back, and by how much.

Written from the words of `docs/view.md` (Plays of a CMCD session, "The clock is set back").
"""

from collections.abc import Sequence
from itertools import pairwise

from tests.oracle.rows.reading import Step


def reported_ms(one: Step) -> int:
    """When it was sent, with the shift of its clock."""
    reported_ms = one.at_ms + int(one.attrs.get("ttlb", 0)) if one.is_request else one.at_ms
    return reported_ms + one.shift_ms


def set_back(steps: Sequence[Step], *, numbered: bool = True) -> None:
    """Moves what was sent by clocks that were set back. Without numbers nothing shows which of it was only delayed."""
    in_order = sorted(steps, key=lambda one: one.at_ms)
    slow = [
        one
        for one in in_order
        if any(
            other.recv_ms < one.recv_ms and other.at_ms > one.at_ms and one.offset_ms - other.offset_ms >= 30_000
            for other in steps
        )
    ]
    placed = [(one, 0) for one in in_order if one not in slow]
    slow.sort(key=lambda one: one.offset_ms)
    all_slow = list(slow)
    clocks: list[tuple[int, int, int, int]] = []
    while slow:
        alike = [one for one in slow if one.offset_ms - slow[0].offset_ms <= 5_000]
        slow = [one for one in slow if one not in alike]
        timed = [one for one in alike if not one.is_request]
        if not timed:
            continue
        first = min(timed, key=lambda one: one.at_ms)
        if any(begun <= first.at_ms and abs(first.offset_ms - offset) <= 5_000 for begun, offset, _, _ in clocks):
            continue
        by_clock = [
            one for one in in_order if one.at_ms >= first.at_ms and abs(one.offset_ms - first.offset_ms) <= 5_000
        ]
        shifts = (0, *(clock[2] for clock in clocks))
        late = [one for one in by_clock if one in all_slow]
        places = [_place(*one) for one in placed]
        lies_between = any(_lies_between(one, shift, places) for one in late for shift in shifts)
        was_delayed = numbered and (lies_between or any(_rises(late, shift, places) for shift in shifts))
        clock, is_level = _clock(first, in_order, clocks, numbered=numbered)
        if clock is not None:
            quick = (one for one in in_order if first.offset_ms - one.offset_ms >= 30_000)
            forward_ms = next((one.at_ms for one in quick if one.at_ms - first.at_ms >= clock[2]), None)
            if forward_ms is not None or was_delayed or not is_level:
                until_ms = 1 << 62 if forward_ms is None else forward_ms - clock[2]
                others = [(one, shift) for one, shift in placed if shift or one not in by_clock]
                clock = clock if numbered and _explains(by_clock, until_ms, clock[2], shifts, others) else None
        clocks += [] if clock is None else [clock]
        placed = [(one, shift) for one, shift in placed if shift or one not in by_clock]
        placed += [(one, 0 if clock is None else clock[2]) for one in by_clock]
    level = []
    for one in in_order:
        own = [clock for clock in clocks if clock[1] <= one.offset_ms + 5_000 and clock[3] <= one.recv_ms]
        clock = max(own, key=lambda clock: clock[1], default=None)
        one.shift_ms = 0 if clock is None else clock[2]
        if clock is None or one.offset_ms - clock[1] <= 5_000:
            level.append((reported_ms(one), one.seq))
    level.sort()
    for one in in_order:
        if numbered and (reported_ms(one), one.seq) not in level:
            _place_between(one, [clock[2] for clock in clocks], level)


#: When a clock began by the client, its offset, what it adds to the first clock's times, when its first beacon was received.
_Clock = tuple[int, int, int, int]


def _shift_of(one: Step, clocks: Sequence[_Clock]) -> int:
    own = [clock for clock in clocks if clock[1] <= one.offset_ms + 5_000 and clock[3] <= one.recv_ms]
    return max(own, key=lambda clock: clock[1])[2] if own else 0


def _clock(
    first: Step, in_order: Sequence[Step], known: Sequence[_Clock], *, numbered: bool
) -> tuple[_Clock | None, bool]:
    """When it began by the client, its offset, its shift, when the first beacon by it was received; whether it lasts."""
    later = [one for one in in_order if one.at_ms > first.at_ms]
    quick = [one for one in later if first.offset_ms - one.offset_ms >= 30_000]
    before = [one for one in quick if one.recv_ms < first.recv_ms]
    alike = [one for one in later if abs(one.offset_ms - first.offset_ms) <= 5_000]
    zeros = [one.at_ms for one in alike if one.seq == 0] if numbered else []
    own = [one for one in alike if (not zeros or one.at_ms < zeros[0]) and one.at_ms >= first.at_ms + 10_000]
    if not before:
        return None, False
    shift_ms = first.offset_ms - min(one.offset_ms - _shift_of(one, known) for one in before)
    return (first.at_ms, first.offset_ms, shift_ms, min(one.recv_ms for one in (first, *own))), bool(own)


def _place(one: Step, shift_ms: int) -> tuple[int, int]:
    return reported_ms(one) + shift_ms, one.seq


def _explains(
    by_clock: Sequence[Step],
    until_ms: int,
    shift_ms: int,
    shifts_ms: Sequence[int],
    others: Sequence[tuple[Step, int]],
) -> bool:
    """Whether a clock that was set back and forward again explains beacons, and numbers would be missing without it."""
    timed = [one for one in by_clock if not one.is_request and one.at_ms < until_ms]
    rest = [one for one in by_clock if not one.is_request and one.at_ms >= until_ms]
    places = [_place(*one) for one in others if not one[0].is_request]
    if not timed or not _continues(timed, shift_ms, places):
        return False
    for shift in shifts_ms:
        without, *missing = (
            _missing([*places, *(_place(one, own) for one in timed), *(_place(one, rest_ms) for one in rest)])
            for own, rest_ms in ((shift, shift), (shift_ms, shift), (shift_ms, shift_ms))
        )
        if without - min(missing) < 3:
            return False
    return True


def _continues(timed: Sequence[Step], shift_ms: int, places: Sequence[tuple[int, int]]) -> bool:
    own = sorted(_place(one, shift_ms) for one in timed)
    before = max((other for other in places if other < own[0]), default=(0, -1))[1]
    after = min((other for other in places if other > own[-1]), default=None)
    if after is None or 0 < own[0][1] <= before:
        return False
    within = sorted([*own, *(other for other in places if own[0] <= other <= own[-1]), after])
    numbers = [seq for _, seq in within]
    begins = 0 in numbers[1:]
    follows = numbers[0] in (0, before + 1)
    return (follows or not begins) and all(two > one or two == 0 for one, two in pairwise(numbers))


def _missing(places: Sequence[tuple[int, int]]) -> int:
    missing, due = 0, 0
    for _, seq in sorted(places):
        missing += seq - due if seq >= due else seq
        due = seq + 1
    return missing


def _lies_between(one: Step, shift_ms: int, places: list[tuple[int, int]]) -> bool:
    place = (reported_ms(one) + shift_ms, one.seq)
    before = max((other for other in places if other < place), default=None)
    after = min((other for other in places if other >= place), default=None)
    return before is not None and after is not None and before[1] < one.seq < after[1]


def _rises(late: Sequence[Step], shift_ms: int, places: list[tuple[int, int]]) -> bool:
    own = sorted((reported_ms(one) + shift_ms, one.seq) for one in late)
    before = max((other for other in places if other < own[0]), default=None)
    after = min((other for other in places if other > own[-1]), default=None)
    if after is None or (own[0][1] and before is not None and before[1] >= own[0][1]):
        return False
    within = [other for other in places if own[0] <= other <= own[-1]]
    numbers = [seq for _, seq in sorted([*own, *within, after])]
    return numbers == sorted(set(numbers))


def _place_between(one: Step, shifts_ms: list[int], level: list[tuple[int, int]]) -> None:
    """Gives a delayed beacon the latest clock by which its number lies between those around it."""
    first_ms = one.shift_ms
    for shift_ms in sorted({0, *(shift for shift in shifts_ms if shift <= first_ms)}, reverse=True):
        one.shift_ms = shift_ms
        before = [seq for at_ms, seq in level if (at_ms, seq) < (reported_ms(one), one.seq)]
        after = [seq for at_ms, seq in level if (at_ms, seq) > (reported_ms(one), one.seq)]
        if not after or after[0] <= one.seq:
            continue
        if (one.seq and before and before[-1] < one.seq) or (not one.seq and (not before or before[-1] >= after[0])):
            return
    one.shift_ms = first_ms
