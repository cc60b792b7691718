"""Quiet hours: times of the week, in a time zone, without notifications. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

SPANS_MAX: Final = 14
_DAY_MINUTES: Final = 24 * 60
#: Quiet hours that never end do not count: after a week at the latest somebody is notified.
_DAYS_MAX: Final = 8


class QuietWrong(ValueError):
    """The quiet hours are not valid; the text says why."""


class QuietSpan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From a minute of the day to another (`from_minute` > `to_minute`: past midnight), on these days, 0 is Monday."""

    from_minute: int
    to_minute: int
    days: list[int] = msgspec.field(default_factory=lambda: list(range(7)))


class Quiet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Quiet hours. `time_zone` is a name of the IANA database; a span past midnight is of the day on which it begins."""

    time_zone: str = "UTC"
    spans: list[QuietSpan] = []


def check(quiet: Quiet) -> None:
    """Raises `QuietWrong`."""
    _zone(quiet)
    if len(quiet.spans) > SPANS_MAX:
        raise QuietWrong(f"quiet hours have at most {SPANS_MAX} spans")
    for span in quiet.spans:
        if not (0 <= span.from_minute < _DAY_MINUTES and 0 <= span.to_minute <= _DAY_MINUTES):
            raise QuietWrong("minutes of a day are 0 to 1440")
        if span.from_minute == span.to_minute:
            raise QuietWrong("a span ends at another minute than it begins")
        if not span.days or not set(span.days) <= set(range(7)):
            raise QuietWrong("days are 0 (Monday) to 6")


def until_ms(quiet: Quiet, at_ms: int) -> int:
    """When the quiet hours end that hold `at_ms`; `at_ms` itself where none do."""
    zone = _zone(quiet)
    now = at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    while now - at < timedelta(days=_DAYS_MAX):
        ends = [end for span in quiet.spans if (end := _end(span, now.astimezone(zone))) is not None]
        if not ends:
            break
        now = max(ends).astimezone(UTC)
    return at_ms if now == at else round(now.timestamp() * 1_000)


def _end(span: QuietSpan, local: datetime) -> datetime | None:
    """When the span ends that holds a local time."""
    minute = local.hour * 60 + local.minute
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    length = (span.to_minute - span.from_minute) % _DAY_MINUTES or _DAY_MINUTES
    for back in (0, 1):
        day = midnight - timedelta(days=back)
        since = minute + back * _DAY_MINUTES - span.from_minute
        if day.weekday() in span.days and 0 <= since < length:
            # Wall-clock arithmetic: an hour that a change of the clocks takes or adds is quiet as well.
            end = day.replace(fold=0) + timedelta(minutes=span.from_minute + length)
            # What comes twice ends where it comes again, for who is already there.
            return end if end.astimezone(UTC) > local.astimezone(UTC) else end.replace(fold=1)
    return None


def _zone(quiet: Quiet) -> ZoneInfo:
    try:
        return ZoneInfo(quiet.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QuietWrong(f"{quiet.time_zone[:60]!r} is no time zone") from None
