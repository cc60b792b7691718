"""The clock of a session that is set back between two plays: the order of the plays follows the times of receipt then.

The *delay* of a step is its server time less its client time. A step numbered 0 that was received after steps that were sent
after it by the client's clock was either delayed, or the clock was set back. Delays and numbers tell the two apart: after a
clock was set back delays stay as they are, and the steps that were received before are of another run of numbers
(docs/view.md, "Plays of a CMCD session"). Times in ms.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from services.processor.applications.video_views.beacons.step import Step

#: A smaller difference of delays is that of slow requests.
SET_BACK_MS_MIN: Final = 30_000
#: Steps over so long have delays that differ by no more than this.
LEVEL_MS_MIN: Final = 10_000
LEVEL_SPREAD_MS_MAX: Final = 5_000


class SetBack(msgspec.Struct, array_like=True):
    """A beginning at which the client's clock may have been set back."""

    begun_ms: int
    #: From this delay on steps are of the clock after it, and are moved by so much.
    delay_ms: int
    shift_ms: int
    #: When it was received.
    recv_ms: int
    is_certain: bool = False


def delay_ms(step: Step) -> int:
    """The server time of a step less its client time."""
    return step.server_ms - step.at_ms


def shifted(step: Step, known: Sequence[SetBack]) -> Step:
    """The step with the shift of the clock that it was sent by; the same object if it has that."""
    delay = delay_ms(step) + LEVEL_SPREAD_MS_MAX
    of_clock = max((one for one in known if one.is_certain and one.delay_ms <= delay), key=_by_delay, default=None)
    shift_ms = 0 if of_clock is None else of_clock.shift_ms
    return step if step.shift_ms == shift_ms else msgspec.structs.replace(step, shift_ms=shift_ms)


def shows(one: SetBack, step: Step) -> bool:
    """Whether a step may make it certain that the clock was set back at this beginning."""
    is_after = step.at_ms >= one.begun_ms + LEVEL_MS_MIN
    return is_after and abs(delay_ms(step) - one.delay_ms) <= LEVEL_SPREAD_MS_MAX


def denies(one: SetBack, step: Step) -> bool:
    """Whether a step shows that the beginning was only delayed: it is as quick as those before, and was received after it."""
    is_quick = one.delay_ms - delay_ms(step) >= SET_BACK_MS_MIN
    return is_quick and step.at_ms > one.begun_ms and step.recv_ms > one.recv_ms


def found_in(steps: Iterable[Step], known: Sequence[SetBack], runs_ms: Iterable[int] = ()) -> list[SetBack]:
    """The beginnings among these steps at which the clock may have been set back, beside those that are certain.

    `runs_ms` are beginnings by the client's clock that are settled.
    """
    in_order = sorted(steps, key=_by_time)
    found = [one for one in known if one.is_certain and not any(denies(one, step) for step in in_order)]
    certain = {one.begun_ms for one in found}
    begun_ms = sorted({*runs_ms, *(one.at_ms for one in in_order if not one.seq)})
    for begun in [one for one in in_order if not one.seq and one.at_ms not in certain]:
        until_ms = next((at_ms for at_ms in begun_ms if at_ms > begun.at_ms), None)
        one = _judged(begun, until_ms, [other for other in in_order if other.at_ms > begun.at_ms])
        found += [] if one is None else [one]
    return found


def _judged(begun: Step, until_ms: int | None, later: Sequence[Step]) -> SetBack | None:
    """What the steps later by the client's clock show of a beginning, up to the following one at `until_ms`."""
    quick = [one for one in later if delay_ms(begun) - delay_ms(one) >= SET_BACK_MS_MIN]
    before = [one for one in quick if one.recv_ms < begun.recv_ms]
    if not before:
        return None
    base_ms = min(delay_ms(one) - one.shift_ms for one in before)
    found = SetBack(begun.at_ms, delay_ms(begun), delay_ms(begun) - base_ms, begun.recv_ms)
    own = [one for one in later if (until_ms is None or one.at_ms < until_ms) and shows(found, one)]
    others = [one for one in before if until_ms is None or one.at_ms < until_ms]
    # A run that was received before this one begins after it, or its numbers go on, or come again, within this one.
    is_before_another = until_ms is not None and not others
    is_within_another = any(_are_of_two_runs(one, other) for one in others for other in own)
    was_delayed = len(before) < len(quick)
    found.is_certain = bool(own) and not was_delayed and (is_before_another or is_within_another)
    return found


def _are_of_two_runs(one: Step, other: Step) -> bool:
    """Whether the numbers and client times of two steps cannot be of one run."""
    if one.seq == other.seq:
        return one.at_ms != other.at_ms
    return one.at_ms < other.at_ms and one.seq > other.seq


def _by_time(step: Step) -> int:
    return step.at_ms


def _by_delay(one: SetBack) -> int:
    return one.delay_ms
