"""Which beacons have come, told briefly: so that one that comes again is a duplicate, however late, and none counts twice.

Where a beacon has a sequence number of its view, ranges of numbers tell it; where it has none, keys made of its time and
content. Both are bounded (`bounds`): beyond that the oldest gaps count as filled, and the oldest keys are forgotten.
"""

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import KEYS_MAX, NUMBER_RANGES_MAX
from shared.sources import SOURCES, Ordering

#: Sorted, disjoint [first, last] numbers that have come.
Ranges = list[list[int]]


class Closed(msgspec.Struct, array_like=True):
    """What is remembered of a view whose lateness window is over: what hits it is late, and never a second view."""

    revision: int
    source: str = ""
    numbers: Ranges = []
    keys: list[int] = []


def is_by_time(source: str) -> bool:
    """Whether beacons of the source are put in order by the client's time."""
    return SOURCES[source].ordering is Ordering.TIME


def has_number(ranges: Ranges, number: int) -> bool:
    """Whether the number has come."""
    at = bisect_right(ranges, number, key=_first) - 1
    return at >= 0 and number <= ranges[at][1]


def add_number(ranges: Ranges, number: int) -> bool:
    """Notes a number; whether it is new."""
    at = bisect_right(ranges, number, key=_first)
    if at and number <= ranges[at - 1][1]:
        return False
    joins_before = at > 0 and ranges[at - 1][1] == number - 1
    joins_after = at < len(ranges) and ranges[at][0] == number + 1
    if joins_before and joins_after:
        ranges[at - 1 : at + 1] = [[ranges[at - 1][0], ranges[at][1]]]
    elif joins_before:
        ranges[at - 1][1] = number
    elif joins_after:
        ranges[at][0] = number
    else:
        ranges.insert(at, [number, number])
        if len(ranges) > NUMBER_RANGES_MAX:
            ranges[:2] = [[ranges[0][0], ranges[1][1]]]
    return True


def numbers_of(first: int, after_last: int, gaps: Iterable[list[int]], more: Iterable[int]) -> Ranges:
    """The numbers `first` up to `after_last`, without `gaps` ([first, last], in any order), and `more` of them."""
    ranges: Ranges = []
    for gap in sorted(gaps):
        if first < gap[0]:
            ranges.append([first, gap[0] - 1])
        first = max(first, gap[1] + 1)
    if first < after_last:
        ranges.append([first, after_last - 1])
    excess = len(ranges) - NUMBER_RANGES_MAX
    if excess > 0:
        ranges[: excess + 1] = [[ranges[0][0], ranges[excess][1]]]
    for number in more:
        add_number(ranges, number)
    return ranges


def count_of(ranges: Ranges) -> int:
    """How many numbers have come."""
    return sum(last - first + 1 for first, last in ranges)


def key_of(step: Step) -> int:
    """What tells a beacon without a number from the others of its view: its time and content."""
    return step.at_ms * 31 ^ step.tie


def numbered_key_of(step: Step) -> int:
    """What tells a beacon from the others of its session, where numbers begin anew: its number and time."""
    return (step.at_ms << 20) ^ step.seq


def add_key(keys: list[int], key: int) -> bool:
    """Notes a key; whether it is new."""
    if key in keys:
        return False
    keys.append(key)
    del keys[:-KEYS_MAX]
    return True


def is_late(closed: Closed, step: Step) -> bool:
    """Whether a beacon that hits a closed view is late, and not a duplicate; it is noted then."""
    if closed.source and is_by_time(closed.source):
        return add_key(closed.keys, key_of(step))
    return add_number(closed.numbers, step.seq)


def _first(one: list[int]) -> int:
    return one[0]
