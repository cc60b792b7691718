"""The offset of the client times of a POST of events.

If it does not say when it was sent, it was sent after the latest of its events. If the client's clock was set back within it, the
latest time is an earlier one. So the events before that and those after it have offsets of their own (docs/view.md, "Time, gaps
and clocks"). Times in ms.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

#: Times that fall by so much from one number to a later one are by a clock that was set back.
SET_BACK_MS_MIN: Final = 30_000


class Stamp(NamedTuple):
    """When an event was, by the client's clock, and its place in its session. `at_ms` is None where it has no time."""

    session: object
    seq: int | None
    at_ms: int | None
    #: Whether `at_ms` is when it was sent, about.
    is_sent: bool = True


def clock_offsets_ms(
    times_ms: Sequence[int | None],
    recv_time_ms: int,
    stamps: Callable[[], Sequence[Stamp]],
    *,
    sent_time_ms: int | None = None,
) -> list[int | None]:
    """The clock offset of each event of one POST, in the order of its body; None where no event has a time.

    `stamps` tells more of the events; it is asked only if times fall. `sent_time_ms` is when the POST was sent, if it says so.
    """
    latest_ms = None
    for at_ms in times_ms:
        if at_ms is not None and (latest_ms is None or at_ms > latest_ms):
            latest_ms = at_ms
        elif at_ms is not None and latest_ms is not None and latest_ms - at_ms >= SET_BACK_MS_MIN:
            return _in_parts(stamps(), recv_time_ms, sent_time_ms)
    sent_ms = latest_ms if sent_time_ms is None else sent_time_ms
    return [None if sent_ms is None else recv_time_ms - sent_ms] * len(times_ms)


def _in_parts(stamps: Sequence[Stamp], recv_time_ms: int, sent_time_ms: int | None) -> list[int | None]:
    beginnings = [0, *_set_back_at(stamps), len(stamps)]
    offsets: list[int | None] = [None] * len(stamps)
    sent_ms = recv_time_ms
    for begin, end in reversed(list(pairwise(beginnings))):
        # After the step a request may still report that it began before it.
        times = [one.at_ms for one in stamps[begin:end] if one.at_ms is not None and (one.is_sent or not begin)]
        if not times:
            continue
        is_last = end == len(stamps)
        offset_ms = sent_ms - (sent_time_ms if is_last and sent_time_ms is not None else max(times))
        offsets[begin:end] = [offset_ms] * (end - begin)
        # What comes before was sent before the first of these.
        sent_ms = times[0] + offset_ms
    return offsets


def _set_back_at(stamps: Sequence[Stamp]) -> list[int]:
    """The places of the events before which the clock was set back."""
    found: list[int] = []
    last: dict[object, Stamp] = {}
    for place, one in enumerate(stamps):
        if one.seq is None or one.at_ms is None or (found and not one.is_sent):
            # After a step a request may still report that it began before it.
            continue
        before = last.get(one.session)
        if before is not None and before.seq is not None and before.at_ms is not None:
            falls_ms = before.at_ms - one.at_ms if one.seq > before.seq or not one.seq else 0
            if falls_ms > 0 and not one.is_sent:
                # It was sent later than its time says, and after the one before it.
                last[one.session] = one._replace(at_ms=before.at_ms)
                continue
            if falls_ms >= SET_BACK_MS_MIN:
                found.append(place)
        last[one.session] = one
    return found
