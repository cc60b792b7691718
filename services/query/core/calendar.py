"""Ranges of time, and the buckets of a series in a time zone. Pure; times are ms since 1970."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Final, Literal
from zoneinfo import ZoneInfo, available_timezones

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

    def before(self, zone: ZoneInfo) -> "Range":
        """The range just before: of whole days as many days, else as long."""
        if (days := self.whole_days(zone)) is None:
            return Range(2 * self.from_ms - self.to_ms, self.from_ms)
        first = _local(self.from_ms, zone).date() - timedelta(days=days)
        return Range(_start_ms(first, zone), self.from_ms)

    def beside(self, from_ms: int, zone: ZoneInfo) -> "Range":
        """The range from a moment on that this one is compared with: from the beginning of a day as many days, else as long."""
        days, day = self.whole_days(zone), _local(from_ms, zone).date()
        if days is None or _start_ms(day, zone) != from_ms:
            return Range(from_ms, from_ms + self.to_ms - self.from_ms)
        return Range(from_ms, _start_ms(day + timedelta(days=days), zone))

    def whole_days(self, zone: ZoneInfo) -> int | None:
        """How many days of the zone's calendar it is; None if it is not whole ones."""
        first, end = (_local(at_ms, zone).date() for at_ms in (self.from_ms, self.to_ms))
        if (_start_ms(first, zone), _start_ms(end, zone)) != (self.from_ms, self.to_ms):
            return None
        return (end - first).days

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
    """The buckets of a range, whole. `keys[i]` is what a statement computes of every view in bucket `i`; None: it has no view."""

    bucket: Bucket
    range: Range
    starts_ms: tuple[int, ...]
    ends_ms: tuple[int, ...]
    keys: tuple[int | None, ...]
    offsets: tuple[Offset, ...]
    zone: ZoneInfo

    def of(self, other: Range) -> "Buckets":
        """The buckets of another range that stand beside these, as many, each in its place.

        Beside whole days are as many others: a bucket stands beside the one that the zone's clocks say. Of an hour that comes twice
        there the first is meant; beside one that comes twice here the only one stands twice. One that clocks skip there is empty,
        at the moment at which they go forward. Of any other range a bucket stands beside what is as far from its beginning and
        as long.
        """
        days = self.range.whole_days(self.zone)
        if days is None or days != other.whole_days(self.zone):
            return self._moved(other, other.from_ms - self.range.from_ms)
        back = _local(self.range.from_ms, self.zone).date() - _local(other.from_ms, self.zone).date()
        if self.bucket in WIDTHS_MS:
            return self._by_clock(other, back)
        starts, ends = (
            tuple(_start_ms(_local(at_ms, self.zone).date() - back, self.zone) for at_ms in of)
            for of in (self.starts_ms, self.ends_ms)
        )
        ahead = tuple(Offset(one.from_ms, one.offset_ms + back.days * DAY_MS) for one in zone_offsets(other, self.zone))
        return replace(self, range=other, starts_ms=starts, ends_ms=ends, offsets=ahead)

    @property
    def is_of_hours(self) -> bool:
        """Whether whole hours make up each."""
        return self.range.is_of_hours and all(start % HOUR_MS == 0 for start in self.starts_ms)

    def ranges(self) -> Iterator[Range]:
        """Each bucket, cut to the range."""
        for start, end in zip(self.starts_ms, self.ends_ms, strict=True):
            yield Range(max(start, self.range.from_ms), min(end, self.range.to_ms))

    def is_partial(self, number: int) -> bool:
        """Whether the range has not all of a bucket."""
        return self.starts_ms[number] < self.range.from_ms or self.ends_ms[number] > self.range.to_ms

    def _moved(self, other: Range, by_ms: int) -> "Buckets":
        starts, ends = (tuple(at_ms + by_ms for at_ms in of) for of in (self.starts_ms, self.ends_ms))
        offsets = tuple(Offset(one.from_ms + by_ms, one.offset_ms - by_ms) for one in self.offsets)
        return replace(self, range=other, starts_ms=starts, ends_ms=ends, offsets=offsets)

    def _by_clock(self, other: Range, back: timedelta) -> "Buckets":
        width, ahead_ms = WIDTHS_MS[self.bucket], offset_ms(other.from_ms, self.zone)
        keys: list[int | None] = []
        starts, ends = [], []
        for start_ms in self.starts_ms:
            there = _local(start_ms, self.zone).replace(tzinfo=None) - back
            if (forward_ms := _skipped_ms(there, self.zone)) is not None:
                key, first, end = None, forward_ms, forward_ms
            else:
                key = (_moment_ms(there, self.zone) + ahead_ms) // width
                first = key * width - ahead_ms
                end = first + width
            keys.append(key)
            starts.append(first)
            ends.append(end)
        offsets = (Offset(other.from_ms, ahead_ms),)
        return replace(
            self, range=other, starts_ms=tuple(starts), ends_ms=tuple(ends), keys=tuple(keys), offsets=offsets
        )


def buckets(within: Range, bucket: Bucket, zone: ZoneInfo) -> Buckets:
    """The buckets that a range touches, in the zone's calendar."""
    if bucket in WIDTHS_MS:
        width = WIDTHS_MS[bucket]
        offset = offset_ms(within.from_ms, zone)
        first, end = (within.from_ms + offset) // width, -(-(within.to_ms + offset) // width)
        numbers = tuple(range(first, end))
        starts = tuple(key * width - offset for key in numbers)
        ends = tuple(start + width for start in starts)
        return Buckets(bucket, within, starts, ends, numbers, (Offset(within.from_ms, offset),), zone)
    starts_ms, keys = [], []
    day = _first_day(_local(within.from_ms, zone).date(), bucket)
    while (start_ms := _start_ms(day, zone)) < within.to_ms:
        starts_ms.append(start_ms)
        keys.append(key_of(day, bucket))
        day = _next(day, bucket)
    ends_ms = (*starts_ms[1:], start_ms)
    return Buckets(bucket, within, tuple(starts_ms), ends_ms, tuple(keys), zone_offsets(within, zone), zone)


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


@cache
def zones() -> frozenset[str]:
    """The names of time zones. Of files beside them, as `Factory` and `posix/Europe/Berlin`, what writes exports knows nothing."""
    return frozenset(available_timezones()) - {"Factory", "localtime"}


def zone_offsets(within: Range, zone: ZoneInfo) -> tuple[Offset, ...]:
    """The zone's offsets over a range, each from where it begins."""
    found = [Offset(within.from_ms, offset_ms(within.from_ms, zone))]
    step = within.from_ms
    while step < within.to_ms:
        step += DAY_MS
        if (ahead := offset_ms(step, zone)) != found[-1].offset_ms:
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
    ahead = offset_ms(after_ms, zone)
    low, high = before_ms // MINUTE_MS, after_ms // MINUTE_MS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset_ms(middle * MINUTE_MS, zone) == ahead else (middle, high)
    return high * MINUTE_MS


def _skipped_ms(there: datetime, zone: ZoneInfo) -> int | None:
    """The moment at which the zone's clocks go forward over a local time; None where they show it."""
    # Of a time that does not exist, the offset of before leads behind the moment, and that of after (`fold`) before it: PEP 495.
    after_ms = _moment_ms(there, zone)
    if _local(after_ms, zone).replace(tzinfo=None) == there:
        return None
    return _change_ms(_moment_ms(there.replace(fold=1), zone), after_ms, zone)


def _moment_ms(there: datetime, zone: ZoneInfo) -> int:
    return round(there.replace(tzinfo=zone).timestamp()) * 1_000


def _local(at_ms: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(zone)


def offset_ms(at_ms: int, zone: ZoneInfo) -> int:
    """How far the zone's clocks are ahead of UTC at a moment."""
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
