"""Series: the last minute of one slice in buckets of 5 s, and what is being learned of it. Pure."""

from collections.abc import Sequence
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
    first_ms = end_ms - length * BUCKET_MS
    found = [one for one in buckets if one.start_ms >= first_ms]
    counts = list(map(sum, zip(*(one.counts for one in found), strict=True))) if found else NOTHING
    return Window(counts, len(found), len(found) == length and all(one.is_whole for one in found))
