"""What is usual of a rate: cold start, seasons, former incidents, and how often chance alone looks unlikely."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.statistics.rates import (
    UNLEARNED_MINUTES_MAX,
    Learning,
    begin_hour,
    end_hour,
    learn_minute,
    learn_short,
    likelihood,
    rate_of,
)
from shared.statistics.seasons import Hour, Rate, expected, remember
from shared.statistics.tails import dispersed_count_beyond, dispersed_share_at_least
from shared.statistics.weeks import HOUR_MS, hour_of_week

SHARE = Rate(is_share=True, is_above=True)
COUNT = Rate(is_share=False, is_above=False)
WEEK_MS = 7 * 24 * HOUR_MS
T0 = 2_955 * WEEK_MS + 4 * 24 * HOUR_MS


def hour(start_ms: int, hits: int = 600, of: int = 30_000) -> Hour:
    return Hour(start_ms, 60, hits, of, 240, 300.0, 60, 80.0)


def past_of(*hours: Hour):  # type: ignore[no-untyped-def]
    def past(like: int) -> Sequence[Hour]:
        return [one for one in hours if hour_of_week(one.start_ms) == like]

    return past


def test_in_the_first_hour_nothing_is_known() -> None:
    assert expected(SHARE, T0, past_of()) is None
    assert likelihood(SHARE, Learning(Hour(T0)), 50, 100) is None


def test_then_the_last_hours_the_hour_of_the_day_and_the_hour_of_the_week() -> None:
    day_ms = 24 * HOUR_MS
    before = [hour(T0 - HOUR_MS)]
    assert expected(SHARE, T0, past_of(*before)).season == "recent"  # type: ignore[union-attr]
    days = [hour(T0 - day_ms, 900), hour(T0 - 2 * day_ms, 900)]
    found = expected(SHARE, T0, past_of(*before, *days))
    assert found is not None
    assert (found.season, round(found.rate, 3)) == ("hour_of_day", 0.03)
    weeks = [hour(T0 - WEEK_MS, 1_200), hour(T0 - 2 * WEEK_MS, 1_200)]
    found = expected(SHARE, T0, past_of(*before, *days, *weeks))
    assert found is not None
    assert (found.season, round(found.rate, 3)) == ("hour_of_week", 0.04)
    # It is known from so many, also where none of them was hit.
    assert found.of == 60_000
    none = expected(SHARE, T0, past_of(*(hour(T0 - number * WEEK_MS, 0) for number in (1, 2))))
    assert none is not None
    assert (none.hits, none.of) == (0, 60_000)


def test_a_former_incident_does_not_become_usual() -> None:
    weeks = [hour(T0 - number * WEEK_MS, 600) for number in range(2, 6)]
    quiet = expected(SHARE, T0, past_of(*weeks))
    hit = expected(SHARE, T0, past_of(*weeks, hour(T0 - WEEK_MS, 6_000)))
    assert quiet is not None
    assert hit is not None
    assert hit.rate == pytest.approx(quiet.rate, rel=0.02)


def test_a_minute_that_is_too_unlikely_is_not_learned_until_it_has_been_so_for_a_day() -> None:
    learning = begin_hour(None, SHARE, T0, past_of(hour(T0 - WEEK_MS), hour(T0 - 2 * WEEK_MS)))
    before = rate_of(learning)
    for _ in range(UNLEARNED_MINUTES_MAX):
        learn_minute(SHARE, learning, 60, 500)
    assert rate_of(learning) == before
    assert learning.hour.minutes == 0
    learn_minute(SHARE, learning, 60, 500)
    assert learning.hour.minutes == 1


def learned_hour(kind: Rate, past: list[Hour], start_ms: int, hits: int, of: int) -> Hour:
    """An hour whose minutes are all alike, learned after `past`."""
    learning = begin_hour(None, kind, start_ms, past_of(*past))
    for _ in range(60):
        learn_minute(kind, learning, hits, of)
    return end_hour(learning)


def test_a_match_on_the_first_day_is_not_what_is_usual_for_ever() -> None:
    """After it no minute of that hour is likely, so none is learned; after some days it is the match that was unusual."""
    day_ms, past = 24 * HOUR_MS, [hour(T0 - number * 24 * HOUR_MS, 240_000, 720) for number in (2, 1)]
    for day in range(3):
        assert expected(COUNT, T0 + day * day_ms, past_of(*past)).rate > 300  # type: ignore[union-attr]
        past.append(learned_hour(COUNT, past, T0 + day * day_ms, 600, 12))
        assert past[-1].is_doubtful
    assert expected(COUNT, T0 + 3 * day_ms, past_of(*past)).rate < 200  # type: ignore[union-attr]
    assert not learned_hour(COUNT, past[2:], T0 + 3 * day_ms, 600, 12).is_doubtful


def test_an_incident_that_fills_an_hour_is_remembered_and_not_believed() -> None:
    past = [hour(T0 - WEEK_MS), hour(T0 - 2 * WEEK_MS)]
    hit = learned_hour(SHARE, past, T0, 60, 500)
    assert (hit.is_doubtful, hit.minutes, hit.hits, hit.of) == (True, 60, 3_600, 30_000)
    before, after = expected(SHARE, T0, past_of(*past)), expected(SHARE, T0 + WEEK_MS, past_of(*past, hit))
    assert before == after


def test_in_a_minute_where_more_is_usual_more_is_not_unlikely_and_does_not_raise_the_level() -> None:
    learning = begin_hour(None, SHARE, T0, past_of(hour(T0 - WEEK_MS), hour(T0 - 2 * WEEK_MS)))
    # Of 500 viewers 10 rebuffer usually, in this minute 16.
    for _ in range(10):
        learn_minute(SHARE, learning, 16 * 12, 500 * 12, usually=1.6)
    assert rate_of(learning) == pytest.approx(0.02, rel=0.01)
    plain, known = (likelihood(SHARE, learning, 16 * 12, 500 * 12, times=times) for times in (1.0, 1.6))
    assert plain is not None
    assert known is not None
    assert plain[0] < 1e-4
    assert known == (1.0, pytest.approx(0.032, rel=0.01))


def test_the_level_of_the_last_minutes_stays_when_the_last_hours_measure_it_anew() -> None:
    learning = begin_hour(None, SHARE, T0, past_of(hour(T0 - HOUR_MS, 600)))
    for _ in range(30):
        learn_minute(SHARE, learning, 13, 500)
    before = rate_of(learning)
    assert before == pytest.approx(0.026, rel=0.05)
    begin_hour(learning, SHARE, T0 + HOUR_MS, past_of(hour(T0 - HOUR_MS, 600), hour(T0, 780)))
    assert rate_of(learning) == pytest.approx(before, rel=0.05)


def test_what_changes_slowly_is_the_rates_own_and_not_of_the_windows() -> None:
    """The dispersion of short windows is that of neighbours, so it is the same however many viewers there are."""
    found = {}
    for viewers in (500, 5_000):
        rng = np.random.default_rng(3)
        learning = begin_hour(
            None, SHARE, T0, past_of(hour(T0 - WEEK_MS, 1_800, 60_000), hour(T0 - 2 * WEEK_MS, 1_800, 60_000))
        )
        for minute in range(60):
            hits = rng.binomial(3 * viewers, 0.03 * (1 + 0.3 * np.sin(minute / 5)), 4)
            for one in hits:
                learn_short(SHARE, learning, int(one), 3 * viewers)
            learn_minute(SHARE, learning, int(hits.sum()), 12 * viewers)
        of_hour = learning.hour
        found[viewers] = of_hour.short_squares / of_hour.short_windows, of_hour.long_squares / of_hour.long_windows
    assert found[5_000][0] == pytest.approx(found[500][0], rel=0.3) == pytest.approx(1.0, rel=0.35)
    assert found[5_000][1] > 3 * found[500][1]


def test_a_season_that_varied_by_chance_is_tempered_by_all_other_hours() -> None:
    """Minutes of one hour are few and alike: how much a rate varies is known from all hours."""
    varied = [Hour(T0 - week * WEEK_MS, 60, 6_000, 300_000, 240, 300.0, 60, 600.0) for week in (1, 2)]
    found = []
    for squares in (600.0, 80.0):
        learning = Learning(Hour(T0))
        for number in range(48):
            learning.hour = Hour(T0, 60, 6_000, 300_000, 240, 300.0, 60, squares)
            begin_hour(learning, SHARE, T0 - (48 - number) * HOUR_MS, past_of())
        learning = begin_hour(learning, SHARE, T0, past_of(*varied))
        found.append(likelihood(SHARE, learning, 150, 5_000))
    often, seldom = found
    assert often is not None
    assert seldom is not None
    assert seldom[0] < often[0] / 3


def test_the_level_rises_slowly_and_falls_quickly() -> None:
    # Its minutes differ so much that each is learned.
    weeks = [Hour(T0 - week * WEEK_MS, 60, 18_000, 900_000, 240, 300.0, 60, 3_000.0) for week in (1, 2)]
    learning = begin_hour(None, SHARE, T0, past_of(*weeks))

    def level_after(minutes: int, hits: int) -> float:
        for _ in range(minutes):
            learn_minute(SHARE, learning, hits, 15_000)
        rate = rate_of(learning)
        assert rate is not None
        return rate / 0.02

    assert level_after(30, 300) == pytest.approx(1.0, rel=0.01)
    # Twice as much counts as 1.2 times, and what chance may add.
    assert level_after(3, 600) == pytest.approx(1.07, abs=0.02)
    assert level_after(60, 450) > 1.4
    assert level_after(5, 300) < 1.25


def test_an_hour_of_few_minutes_tells_nothing() -> None:
    assert remember([], Hour(T0, 5, 1, 100)) == []
    assert len(remember([hour(T0 - number * WEEK_MS) for number in range(8, 0, -1)], hour(T0))) == 8


@given(hits=st.integers(0, 300), of=st.integers(0, 5_000))
@settings(deadline=None)
def test_more_is_never_likelier(hits: int, of: int) -> None:
    learning = begin_hour(None, SHARE, T0, past_of(hour(T0 - WEEK_MS), hour(T0 - 2 * WEEK_MS)))
    one, more = (likelihood(SHARE, learning, min(number, of), of) for number in (hits, hits + 1))
    if of == 0:
        assert one is None
    else:
        assert one is not None
        assert more is not None
        assert 0 <= more[0] <= one[0] <= 1


@pytest.mark.thorough
def test_chance_looks_as_unlikely_as_often_as_it_should() -> None:
    """Of 20,000 draws of the distribution itself, the fraction below a probability is that probability, or less."""
    rng = np.random.default_rng(5)
    share, of, dispersion = 0.02, 1_500, 1.8
    together = (of - 1) / (dispersion - 1) - 1
    draws = rng.binomial(of, rng.beta(share * together, (1 - share) * together, 20_000))
    found = [dispersed_share_at_least(int(hits), of, share=share, dispersion=dispersion) for hits in draws]
    for level in (0.1, 0.01):
        assert np.mean([one <= level for one in found]) <= level * 1.25
    rate = 1 / (dispersion - 1)
    counts = rng.poisson(rng.gamma(40 * rate, 1 / rate, 20_000))
    below = [dispersed_count_beyond(int(one), expected=40, dispersion=dispersion) for one in counts if one < 40]
    assert np.sum([one <= 0.01 for one in below]) / 20_000 <= 0.0125


def test_silence_is_unlikely_where_much_is_usual_and_not_where_little_is() -> None:
    much = begin_hour(None, COUNT, T0, past_of(hour(T0 - WEEK_MS, 72_000, 720), hour(T0 - 2 * WEEK_MS, 72_000, 720)))
    little = begin_hour(None, COUNT, T0, past_of(hour(T0 - WEEK_MS, 60, 720), hour(T0 - 2 * WEEK_MS, 60, 720)))
    assert likelihood(COUNT, much, 0, 3)[0] < 1e-9  # type: ignore[index]
    assert likelihood(COUNT, little, 0, 12)[0] > 0.1  # type: ignore[index]
