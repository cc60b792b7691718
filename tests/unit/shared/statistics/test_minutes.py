"""What is usual of a minute of the hour: an ad break that comes in each hour is known after a day, and an incident is not."""

import pytest

from shared.statistics.minutes import MINUTES, Minutes, learn, minute_of, times_before, times_of
from shared.statistics.weeks import HOUR_MS

T0 = 2_955 * 7 * 24 * HOUR_MS


def after(hours: int, times: float, minutes: Minutes | None = None) -> Minutes:
    """Hours with 200 hits forecast of each minute, and so many times as many in the first minute of the hour."""
    found = minutes or Minutes()
    for _ in range(hours):
        for minute in range(MINUTES):
            learn(found, minute, round(200 * (times if minute == 0 else 1.0)), 200.0)
    return found


def test_at_first_all_minutes_are_alike() -> None:
    assert [times_of(Minutes(), minute) for minute in range(MINUTES)] == [1.0] * MINUTES


def test_what_comes_in_each_hour_is_known_after_a_day() -> None:
    found = after(24, 1.3)
    assert 1.2 < times_of(found, 0) < 1.3
    assert {times_of(found, minute) for minute in range(1, MINUTES)} == {1.0}


def test_one_hour_does_not_make_it_usual_and_a_week_without_it_ends_it() -> None:
    assert times_of(after(1, 4.0), 0) < 1.2
    usual = after(7 * 24, 1.0)
    assert times_of(after(1, 4.0, usual), 0) < 1.015
    assert times_of(after(7 * 24, 1.0, after(24, 1.3)), 0) < 1.05


def test_a_window_in_two_minutes_has_of_each_its_part() -> None:
    found = after(24, 1.5)
    of_first = times_of(found, 0)
    assert minute_of(T0 + 59_999) == 0
    # 20 s into the hour, and 30 s after its first minute.
    assert times_before(found, T0 + 20_000, [5_000, 20_000, 60_000]) == pytest.approx(
        [of_first, of_first, (of_first + 2) / 3]
    )
    assert times_before(found, T0 + 90_000, [5_000, 30_000, 60_000]) == pytest.approx([1, 1, (1 + of_first) / 2])
