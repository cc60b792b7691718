"""Quiet hours in their time zone: past midnight, over changes of the clocks, and never for ever."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.alerts.core.quiet_hours import Quiet, QuietSpan, QuietWrong, check, until_ms

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Quiet(time_zone="Europe/Berlin", spans=[QuietSpan(from_minute=22 * 60, to_minute=7 * 60)])


def ms(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=BERLIN).timestamp() * 1_000)  # type: ignore[arg-type, misc]


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ((2026, 11, 24, 21, 59), (2026, 11, 24, 21, 59)),
        ((2026, 11, 24, 22, 0), (2026, 11, 25, 7, 0)),
        ((2026, 11, 25, 3, 0), (2026, 11, 25, 7, 0)),
        ((2026, 11, 25, 7, 0), (2026, 11, 25, 7, 0)),
        # The night in which the clocks go back has an hour more.
        ((2026, 10, 24, 23, 0), (2026, 10, 25, 7, 0)),
    ],
)
def test_a_night(at: tuple[int, ...], until: tuple[int, ...]) -> None:
    assert until_ms(NIGHT, ms(*at)) == ms(*until)


def test_a_span_past_midnight_is_of_the_day_on_which_it_begins() -> None:
    friday = Quiet(time_zone="UTC", spans=[QuietSpan(from_minute=20 * 60, to_minute=6 * 60, days=[4])])
    saturday_3 = round(datetime(2026, 11, 28, 3, tzinfo=ZoneInfo("UTC")).timestamp() * 1_000)
    assert until_ms(friday, saturday_3) == saturday_3 + 3 * 3_600_000
    assert until_ms(friday, saturday_3 - 86_400_000) == saturday_3 - 86_400_000


def test_spans_that_follow_each_other_are_one() -> None:
    weekend = Quiet(spans=[QuietSpan(from_minute=0, to_minute=1_440, days=[5, 6])])
    saturday = round(datetime(2026, 11, 28, 12, tzinfo=ZoneInfo("UTC")).timestamp() * 1_000)
    assert until_ms(weekend, saturday) == saturday + 36 * 3_600_000


@given(st.integers(0, 4_000_000_000_000))
def test_quiet_for_ever_ends(at_ms: int) -> None:
    always = Quiet(spans=[QuietSpan(from_minute=0, to_minute=1_440)])
    assert at_ms < until_ms(always, at_ms) <= at_ms + 9 * 86_400_000


@pytest.mark.parametrize(
    "wrong",
    [
        Quiet(time_zone="Mars/Olympus"),
        Quiet(time_zone="../../etc/passwd"),
        Quiet(spans=[QuietSpan(from_minute=5, to_minute=5)]),
        Quiet(spans=[QuietSpan(from_minute=0, to_minute=2_000)]),
        Quiet(spans=[QuietSpan(from_minute=0, to_minute=60, days=[7])]),
        Quiet(spans=[QuietSpan(from_minute=0, to_minute=60, days=[])]),
        Quiet(spans=[QuietSpan(from_minute=0, to_minute=60)] * 15),
    ],
)
def test_what_is_no_quiet_time_is_refused(wrong: Quiet) -> None:
    with pytest.raises(QuietWrong):
        check(wrong)


def test_of_an_hour_that_comes_twice_both_are_quiet_until_their_own_end() -> None:
    """Clocks in Berlin are set back from 3:00 to 2:00 at 01:00 UTC."""
    quiet = Quiet(time_zone="Europe/Berlin", spans=[QuietSpan(from_minute=22 * 60, to_minute=2 * 60 + 30)])
    ends = {one: until_ms(quiet, at(f"2026-10-25T{one}:00+00:00")) for one in ("00:15", "00:45", "01:15", "01:45")}
    assert ends == {
        "00:15": at("2026-10-25T00:30:00+00:00"),
        "00:45": at("2026-10-25T00:45:00+00:00"),
        "01:15": at("2026-10-25T01:30:00+00:00"),
        "01:45": at("2026-10-25T01:45:00+00:00"),
    }


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"])
def test_no_end_is_in_the_past_nor_within_the_quiet_hours_where_clocks_change(zone: str) -> None:
    spans = [QuietSpan(from_minute=22 * 60, to_minute=2 * 60 + 30), QuietSpan(from_minute=60, to_minute=150)]
    quiet = Quiet(time_zone=zone, spans=spans)
    begin = datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC"))
    days = [begin + timedelta(days=number) for number in range(365)]
    offsets = [one.astimezone(ZoneInfo(zone)).utcoffset() for one in days]
    changes = [one for one, before, after in zip(days[1:], offsets, offsets[1:], strict=False) if before != after]
    assert len(changes) == 2
    for change in changes:
        for minutes in range(-24 * 60, 24 * 60, 10):
            at_ms = round((change + timedelta(minutes=minutes)).timestamp() * 1_000)
            end_ms = until_ms(quiet, at_ms)
            assert at_ms <= end_ms <= at_ms + 6 * 3_600_000
            assert until_ms(quiet, end_ms) == end_ms
