"""Which beacons have come: one that comes again is a duplicate, however late it is.

Beacons with a sequence number are known by ranges of numbers, others by keys made of their time and content. Both are bounded
(`bounds`): beyond that the oldest are forgotten, and a copy of one counts as a beacon that comes for the first time.
"""

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.bounds import KEYS_MAX, NUMBER_RANGES_MAX
from services.processor.applications.video_views.view.order.spans import Span
from shared.sources import SOURCES, Ordering

#: Sorted, disjoint [first, last] numbers that have come.
Ranges = list[list[int]]


class Closed(msgspec.Struct, array_like=True, gc=False):
    """What is remembered of a view after its lateness window: its later beacons are late, and begin no second view."""

    revision: int
    source: str
    numbers: Ranges = []
    keys: list[int] = []
    #: Of a view of a session: when its settled numbers were sent.
    spans: list[Span] = []


def has_number(ranges: Ranges, number: int) -> bool:
    """Whether the number has come."""
    at = bisect_right(ranges, number, key=_first) - 1
    return at >= 0 and number <= ranges[at][1]


def add_number(ranges: Ranges, number: int) -> bool:
    """Notes a number; whether it is new. Beyond `NUMBER_RANGES_MAX` ranges the lowest one is forgotten."""
    is_new = put_number(ranges, number)
    del ranges[:-NUMBER_RANGES_MAX]
    return is_new


def put_number(ranges: Ranges, number: int) -> bool:
    """Notes a number among any number of ranges; whether it is new."""
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
    del ranges[:-NUMBER_RANGES_MAX]
    for number in more:
        add_number(ranges, number)
    return ranges


def count_of(ranges: Ranges) -> int:
    """How many numbers have come."""
    return sum(last - first + 1 for first, last in ranges)


def key_of(step: Step) -> int:
    """The key of a beacon among those of its view: of its time and content."""
    return step.at_ms * 31 ^ step.tie


def numbered_key_of(step: Step) -> int:
    """The key of a beacon among those of its session, in which numbers begin again: of its number and time."""
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
    if SOURCES[closed.source].ordering is Ordering.TIME:
        return add_key(closed.keys, key_of(step))
    return add_number(closed.numbers, step.seq)


def _first(one: list[int]) -> int:
    return one[0]
