"""Series: the last minute of one slice in buckets of 5 s, and what is being learned of it. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from services.alerts.core.metrics import FIELDS
from shared.schemas.live import BUCKET_MS
from shared.statistics.rates import Learning

#: Buckets that are kept of a series.
BUCKETS_MAX: Final = 12


class Bucket(msgspec.Struct, array_like=True):
    """The sums over all partitions that reported; `is_whole` where all did that were expected to."""

    start_ms: int
    counts: list[int]
    is_whole: bool


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
    counts, number, is_whole = [0] * len(FIELDS), 0, True
    for one in reversed(buckets):
        if one.start_ms < first_ms:
            break
        counts = [a + b for a, b in zip(counts, one.counts, strict=True)]
        number += 1
        is_whole = is_whole and one.is_whole
    return Window(counts, number, is_whole and number == length)
