"""Gathers what all partitions counted of a customer in a bucket, and says when the bucket is whole. Pure.

A bucket closes once every partition has reported it that reported one of the last buckets, or when it has waited long enough.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from services.alerts.core.metrics import added, counts_of, padded
from services.alerts.core.slices import WHOLE, is_followed
from shared.schemas.live import BUCKET_MS, Live, LiveSlice

Pairs = frozenset[frozenset[str]]

#: A partition is expected for so long after its last report.
EXPECTED_MS: Final = 4 * BUCKET_MS
#: Buckets that wait at a time; beyond them the oldest closes. A broker may stamp 5 min ahead as installed, so that buckets of its
#: partitions wait for the others for as long, and the grace.
OPEN_MAX: Final = 72
#: Slices of all buckets that wait, besides the wholes: a name has up to 550 bytes and its counts 110, and all are one row.
OPEN_SLICES_MAX: Final = 1_000


class Open(msgspec.Struct, array_like=True):
    """One bucket that gathers; `due_ms` is when it closes at the latest, by the clock of the core."""

    due_ms: int
    partitions: list[int]
    #: By slice.
    counts: dict[str, list[int]]
    #: Whether slices were left out for want of room. Those that are there may lack what a partition counted.
    is_cut: bool = False

    def __post_init__(self) -> None:
        self.counts = {name: padded(counts) for name, counts in self.counts.items()}


class Gathering(msgspec.Struct, array_like=True):
    """The buckets of one customer, by their begin, ms since 1970."""

    open: dict[int, Open] = {}
    #: Up to here buckets have closed.
    closed_ms: int = 0
    #: The begin of the last closed bucket that a partition reported.
    reported: dict[int, int] = {}


class Closed(msgspec.Struct):
    """A bucket that has closed. `is_whole` is of all that was counted, `is_cut` as in `Open`."""

    start_ms: int
    counts: dict[str, list[int]]
    is_whole: bool
    is_cut: bool = False


def add_gauge(gathering: Gathering, live: Live, clock_ms: int, *, grace_ms: int, slices_max: int, pairs: Pairs) -> bool:
    """Adds a partition's gauge; False for one that comes after its bucket has closed.

    Of pairs of dimensions only slices of `pairs` are kept.
    """
    slices: dict[str, Live | LiveSlice] = {WHOLE: live, **live.slices}
    followed = {name: counts_of(one) for name, one in slices.items() if is_followed(name, pairs)}
    return take_counts(
        gathering, live.partition, live.bucket_ms, followed, clock_ms, grace_ms=grace_ms, slices_max=slices_max
    )


def take_counts(
    gathering: Gathering,
    partition: int,
    start_ms: int,
    counts_by_slice: Mapping[str, list[int]],
    clock_ms: int,
    *,
    grace_ms: int,
    slices_max: int,
) -> bool:
    """Takes what a partition, or another part that has a number, counted; False for what comes after its bucket has closed."""
    if start_ms <= gathering.closed_ms:
        return False
    bucket = gathering.open.get(start_ms)
    if bucket is None:
        bucket = gathering.open[start_ms] = Open(max(clock_ms, start_ms + BUCKET_MS) + grace_ms, [], {})
    if partition in bucket.partitions:
        return True
    bucket.partitions.append(partition)
    for name, counts in counts_by_slice.items():
        known = bucket.counts.get(name)
        if known is not None:
            bucket.counts[name] = added(known, counts)
        elif len(bucket.counts) < slices_max:
            bucket.counts[name] = counts
    _make_room(gathering)
    return True


def is_empty(live: Live) -> bool:
    """Whether a gauge says that a partition has nothing of its customer."""
    return not any(counts_of(live))


def due_ms(gathering: Gathering) -> int | None:
    """When the next bucket closes at the latest; None where none is open."""
    return gathering.open[min(gathering.open)].due_ms if gathering.open else None


def close_next(gathering: Gathering, clock_ms: int) -> Closed | None:
    """Closes the oldest bucket if it is whole, or its time is over; None where it waits."""
    if not gathering.open:
        return None
    start_ms = min(gathering.open)
    bucket = gathering.open[start_ms]
    expected = {one for one, last_ms in gathering.reported.items() if last_ms >= start_ms - EXPECTED_MS}
    # Of the first bucket, and after a gap, nobody knows who will report.
    is_whole = bool(expected) and expected <= set(bucket.partitions)
    if not is_whole and clock_ms < bucket.due_ms and len(gathering.open) <= OPEN_MAX:
        return None
    del gathering.open[start_ms]
    gathering.closed_ms = start_ms
    gathering.reported = {one: gathering.reported[one] for one in expected} | dict.fromkeys(bucket.partitions, start_ms)
    return Closed(start_ms, bucket.counts, is_whole, bucket.is_cut)


def _make_room(gathering: Gathering) -> None:
    """Leaves out the slices of the newest buckets that have no room. Their wholes stay, and no bucket closes before its time."""
    room = OPEN_SLICES_MAX
    for start_ms in sorted(gathering.open):
        bucket = gathering.open[start_ms]
        slices = len(bucket.counts) - 1
        if slices > room:
            bucket.counts = {name: counts for name, counts in bucket.counts.items() if name == WHOLE}
            bucket.is_cut = True
        else:
            room -= slices
