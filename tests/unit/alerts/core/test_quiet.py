"""Quiet hours in their time zone: past midnight, over changes of the clocks, and never for ever."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.alerts.core.quiet import Quiet, QuietSpan, QuietWrong, check, until_ms

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Quiet(time_zone="Europe/Berlin", spans=[QuietSpan(from_minute=22 * 60, to_minute=7 * 60)])


def ms(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=BERLIN).timestamp() * 1_000)  # type: ignore[arg-type, misc]


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
