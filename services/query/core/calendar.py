"""Ranges of time, and the buckets of a series in a time zone. Pure; times are ms since 1970."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000

Bucket = Literal["minute", "5minutes", "15minutes", "hour", "day", "week", "month"]
#: Those of one length. Days, weeks and months follow the zone's calendar.
WIDTHS_MS: Final[dict[Bucket, int]] = {
    "minute": MINUTE_MS,
    "5minutes": 5 * MINUTE_MS,
    "15minutes": 15 * MINUTE_MS,
    "hour": HOUR_MS,
}
#: Monday 5 January 1970: weeks are counted from the one before.
_DAYS_TO_MONDAY: Final = 3


@dataclass(frozen=True)
class Range:
    """From the first ms to before the last."""

    from_ms: int
    to_ms: int

    @property
    def first_hour(self) -> int:
        """The first hour since 1970 that it touches."""
        return self.from_ms // HOUR_MS

    @property
    def end_hour(self) -> int:
        """The first hour after it."""
        return -(-self.to_ms // HOUR_MS)

    @property
    def is_of_hours(self) -> bool:
        """Whether it holds whole hours alone."""
        return self.from_ms % HOUR_MS == 0 and self.to_ms % HOUR_MS == 0

    def before(self) -> "Range":
        """The range of the same length just before."""
        return Range(2 * self.from_ms - self.to_ms, self.from_ms)

    def with_other(self, other: "Range") -> "Range":
        """The shortest range that has both."""
        return Range(min(self.from_ms, other.from_ms), max(self.to_ms, other.to_ms))

    def hours_between(self, other: "Range") -> "Range | None":
        """The whole hours after one of the two and before the other; None without any."""
        first, last = sorted((self, other), key=lambda one: one.from_ms)
        found = Range(first.end_hour * HOUR_MS, last.first_hour * HOUR_MS)
        return found if found.from_ms < found.to_ms else None


@dataclass(frozen=True)
class Offset:
    """From `from_ms` on the zone's clocks are `offset_ms` ahead of UTC."""

    from_ms: int
    offset_ms: int


@dataclass(frozen=True)
class Buckets:
    """The buckets of a range. `keys[i]` is what a statement computes of every view in the bucket from `starts_ms[i]` on."""

    bucket: Bucket
    range: Range
    starts_ms: tuple[int, ...]
    keys: tuple[int, ...]
    offsets: tuple[Offset, ...]
    zone: ZoneInfo

    def of(self, other: Range) -> "Buckets":
        """The same buckets of another range."""
        return buckets(other, self.bucket, self.zone)

    @property
    def is_of_hours(self) -> bool:
        """Whether whole hours make up each."""
        return self.range.is_of_hours and all(start % HOUR_MS == 0 for start in self.starts_ms)

    def ranges(self) -> Iterator[Range]:
        """Each bucket, cut to the range."""
        ends = (*self.starts_ms[1:], self.range.to_ms)
        for start, end in zip(self.starts_ms, ends, strict=True):
            yield Range(max(start, self.range.from_ms), end)


def buckets(within: Range, bucket: Bucket, zone: ZoneInfo) -> Buckets:
    """The buckets that a range touches, in the zone's calendar."""
    if bucket in WIDTHS_MS:
        width = WIDTHS_MS[bucket]
        offset = _offset_ms(within.from_ms, zone)
        first, end = (within.from_ms + offset) // width, -(-(within.to_ms + offset) // width)
        starts = tuple(key * width - offset for key in range(first, end))
        return Buckets(bucket, within, starts, tuple(range(first, end)), (Offset(within.from_ms, offset),), zone)
    starts_ms, keys = [], []
    day = _first_day(_local(within.from_ms, zone).date(), bucket)
    while (start_ms := _start_ms(day, zone)) < within.to_ms:
        starts_ms.append(start_ms)
        keys.append(key_of(day, bucket))
        day = _next(day, bucket)
    return Buckets(bucket, within, tuple(starts_ms), tuple(keys), offsets(within, zone), zone)


def count(within: Range, bucket: Bucket) -> int:
    """About how many buckets a range has: cheap for any range."""
    width = WIDTHS_MS.get(bucket) or {"day": 1, "week": 7, "month": 28}[bucket] * DAY_MS
    return (within.to_ms - within.from_ms) // width + 2


def fitting(within: Range) -> Bucket:
    """A bucket by which a range has some dozens to hundreds of points."""
    length = within.to_ms - within.from_ms
    limits: tuple[tuple[int, Bucket], ...] = (
        (3 * HOUR_MS, "minute"),
        (12 * HOUR_MS, "5minutes"),
        (36 * HOUR_MS, "15minutes"),
        (15 * DAY_MS, "hour"),
    )
    return next((bucket for most, bucket in limits if length <= most), "day")


def offsets(within: Range, zone: ZoneInfo) -> tuple[Offset, ...]:
    """The zone's offsets over a range, each from where it begins."""
    found = [Offset(within.from_ms, _offset_ms(within.from_ms, zone))]
    step = within.from_ms
    while step < within.to_ms:
        step += DAY_MS
        if (ahead := _offset_ms(step, zone)) != found[-1].offset_ms:
            found.append(Offset(_change_ms(step - DAY_MS, step, zone), ahead))
    return tuple(found)


def key_of(day: date, bucket: Bucket) -> int:
    """What names the bucket in which a local day lies."""
    if bucket == "month":
        return day.year * 12 + day.month - 1
    number = (day - date(1970, 1, 1)).days
    return (number + _DAYS_TO_MONDAY) // 7 if bucket == "week" else number


def _change_ms(before_ms: int, after_ms: int, zone: ZoneInfo) -> int:
    """The moment within a day at which the offset becomes that of `after_ms`; minutes are as fine as zones are."""
    ahead = _offset_ms(after_ms, zone)
    low, high = before_ms // MINUTE_MS, after_ms // MINUTE_MS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset_ms(middle * MINUTE_MS, zone) == ahead else (middle, high)
    return high * MINUTE_MS


def _local(at_ms: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(zone)


def _offset_ms(at_ms: int, zone: ZoneInfo) -> int:
    offset = _local(at_ms, zone).utcoffset()
    assert offset is not None
    return round(offset.total_seconds()) * 1_000


def _start_ms(day: date, zone: ZoneInfo) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * 1_000


def _first_day(day: date, bucket: Bucket) -> date:
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if bucket == "month" else day


def _next(day: date, bucket: Bucket) -> date:
    if bucket == "month":
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    return day + timedelta(days=7 if bucket == "week" else 1)
