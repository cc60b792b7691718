"""Series: the last minute of one slice in buckets of 5 s, and what is being learned of it. Pure."""

from collections.abc import Iterator, Sequence
from operator import add as add_up
from typing import Final, NamedTuple

import msgspec

from services.alerts.core.metrics import NOTHING, padded
from shared.schemas.live import BUCKET_MS
from shared.statistics.rates import Learning

#: Buckets that are kept of a series.
BUCKETS_MAX: Final = 12


class Bucket(msgspec.Struct, array_like=True):
    """The sums over all partitions that reported; `is_whole` where all did that were expected to."""

    start_ms: int
    counts: list[int]
    is_whole: bool

    def __post_init__(self) -> None:
        self.counts = padded(self.counts)


class Series(msgspec.Struct, array_like=True):
    """One slice of a customer, or the whole customer."""

    buckets: list[Bucket] = []
    #: The begin of the last bucket that a partition reported it in.
    seen_ms: int = 0
    #: By metric.
    learning: dict[str, Learning] = {}


class Window(NamedTuple):
    """Sums of a series over the newest buckets."""

    counts: list[int]
    buckets: int
    is_whole: bool


def add(series: Series, bucket: Bucket) -> None:
    """The next bucket of a series; the oldest beyond a minute is forgotten."""
    first_ms = bucket.start_ms - (BUCKETS_MAX - 1) * BUCKET_MS
    series.buckets = [one for one in series.buckets if one.start_ms >= first_ms]
    series.buckets.append(bucket)


def window(buckets: Sequence[Bucket], end_ms: int, length: int) -> Window:
    """The last `length` buckets of time before `end_ms`; of buckets that are missing nothing is in the sums."""
    (found,) = windows(buckets, end_ms, (length,))
    return found


def windows(buckets: Sequence[Bucket], end_ms: int, lengths: Sequence[int]) -> Iterator[Window]:
    """The windows of these lengths, the shortest first, that end at `end_ms`."""
    counts, number, is_whole, place = NOTHING, 0, True, len(buckets)
    for length in lengths:
        first_ms = end_ms - length * BUCKET_MS
        while place and buckets[place - 1].start_ms >= first_ms:
            place -= 1
            one = buckets[place]
            counts = list(map(add_up, counts, one.counts))
            number += 1
            is_whole = is_whole and one.is_whole
        yield Window(counts, number, is_whole and number == length)
