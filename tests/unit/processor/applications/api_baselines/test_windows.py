"""Windows add up in any order and grouping, and their quantiles are within 1 % of the true ones."""

from math import ceil
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.api_baselines.season import Season, baseline_at, learn
from services.processor.applications.api_baselines.window import DURATION_US_MAX, Window, figures_of, join, take_call
from shared.statistics.weeks import hour_of_week
from tests.unit.processor.applications.api_baselines.calls import T0, call

calls = st.lists(
    st.builds(
        lambda ms, status: call(1_000, ms=ms, status=status), st.integers(0, 10**6) | st.none(), st.integers(100, 599)
    ),
    max_size=30,
)
HOUR_MS = 3_600_000


def counted(*groups: list[object]) -> Window:
    """One window of each group, joined one after the other."""
    whole = Window()
    for group in groups:
        part = Window()
        for one in group:
            take_call(part, one)  # type: ignore[arg-type]
        join(whole, part)
    return whole


@given(calls, calls, calls)
def test_how_calls_are_ordered_and_grouped_does_not_matter(one: list, other: list, third: list) -> None:
    assert counted(one, other, third) == counted(third, one, other) == counted([*other, *third, *one])


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200))
def test_a_quantile_is_within_one_percent(durations_ms: list[int]) -> None:
    window = Window()
    for ms in durations_ms:
        take_call(window, call(0, ms=ms))
    figures = figures_of(window, 0)
    for found, q in ((figures.p50, 0.5), (figures.p95, 0.95), (figures.p99, 0.99)):
        exact = sorted(durations_ms)[max(1, ceil(q * len(durations_ms))) - 1] * 1000
        assert found == pytest.approx(min(exact, DURATION_US_MAX), rel=0.0101)


def test_hours_are_counted_from_monday() -> None:
    assert [hour_of_week(T0 + hour * HOUR_MS) for hour in (0, 1, 24, 167, 168)] == [0, 1, 24, 167, 0]


def test_a_season_remembers_the_newest_windows_and_its_sketch_fades() -> None:
    season = Season(0)
    for number in range(100):
        window = counted([call(0, ms=100 if number < 90 else 900)] * 8)
        learn(season, window, figures_of(window, number), windows_max=10)
    assert [figures.start_ms for figures in season.past] == list(range(90, 100))
    assert median(figures.p50 or 0 for figures in season.past) == pytest.approx(900_000, rel=0.01)
    total = sum(season.latency.values())
    assert 10 * 8 <= total <= 20 * 8
    newest = max(season.latency)
    assert season.latency[newest] / total > 0.4


def test_a_week_stands_in_for_the_hour_while_this_is_little_known() -> None:
    seasons = {}
    for day in range(3):
        seasons[day * 24 + 5] = season = Season(0)
        for number in range(4):
            learn(season, counted([call(0)]), figures_of(Window(calls=1), day * 10 + number), windows_max=10)
    assert baseline_at(6, seasons.get, windows_min=4, windows_max=10) is None
    assert baseline_at(5, seasons.get, windows_min=13, windows_max=20) is None
    own = baseline_at(5, seasons.get, windows_min=4, windows_max=10)
    week = baseline_at(5, seasons.get, windows_min=8, windows_max=10)
    assert own is not None
    assert week is not None
    assert (own.season, [figures.start_ms for figures in own.past]) == ("hour_of_week", [0, 1, 2, 3])
    assert (week.season, [figures.start_ms for figures in week.past]) == (
        "hour_of_day",
        [2, 3, 10, 11, 12, 13, 20, 21, 22, 23],
    )
    assert sum(week.latency.values()) == 12
