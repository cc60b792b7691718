"""Log-bucket histograms: the bucket formulas in Python. Quantiles are within 1 % of the true value at any size.

The same formulas in SQL: `services/query/core/distributions.py`, and the migration of hot rows.

A value x > 0 is in bucket floor(ln x / ln GAMMA); every other value is in `BUCKET_OF_ZERO`, which means 0. Counts of buckets add up
and subtract exactly, in any order and any engine.
"""

import math
from collections.abc import Mapping
from typing import Final

#: Ratio of a bucket's bounds. It never changes: stored counts would mean other values.
GAMMA: Final = 1.02
BUCKET_OF_ZERO: Final = -2_147_483_648


def bucket_of(value: float) -> int:
    """The bucket of `value`."""
    return math.floor(math.log(value) / math.log(GAMMA)) if value > 0 else BUCKET_OF_ZERO


def value_of(bucket: int) -> float:
    """The representative value of a bucket: every value in the bucket is at most 1 % away."""
    return 0.0 if bucket == BUCKET_OF_ZERO else 2 * math.pow(GAMMA, bucket + 1) / (1 + GAMMA)


def quantile(counts: Mapping[int, int], q: float) -> float | None:
    """The `q` quantile (0..1, nearest rank) of the values counted per bucket; None without a value."""
    bucket = bucket_at(counts, q)
    return None if bucket is None else value_of(bucket)


def bucket_at(counts: Mapping[int, int], q: float) -> int | None:
    """The bucket in which that quantile is, of buckets of any kind whose numbers rise with their values."""
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile is 0 to 1, not {q}")
    total = sum(counts.values())
    if total == 0:
        return None
    rank = max(1, math.ceil(q * total))
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            return bucket
    raise ValueError("counts must not be negative")


def add(counts: dict[int, int], value: float, count: int = 1) -> None:
    """Counts `value` so many times more."""
    bucket = bucket_of(value)
    counts[bucket] = counts.get(bucket, 0) + count


def merge(counts: dict[int, int], others: Mapping[int, int]) -> None:
    """Adds what others have counted: the same as if all had been counted here."""
    for bucket, count in others.items():
        counts[bucket] = counts.get(bucket, 0) + count
