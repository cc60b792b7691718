"""The predictive tests: against sums of the distributions, term by term, from their definitions."""

from math import comb, gamma, inf

import pytest

from shared.statistics.tails import count_beyond, share_at_least


def beta(a: float, b: float) -> float:
    return gamma(a) * gamma(b) / gamma(a + b)


def beta_binomial(k: int, n: int, a: float, b: float) -> float:
    return comb(n, k) * beta(k + a, n - k + b) / beta(a, b)


def negative_binomial(k: int, shape: float, rate: float) -> float:
    p = rate / (rate + 1)
    return gamma(k + shape) / (gamma(shape) * gamma(k + 1)) * p**shape * (1 - p) ** k


@pytest.mark.parametrize(("hits", "of"), [(9, 20), (1, 3), (20, 20)])
def test_a_share_as_of_a_beta_binomial(hits: int, of: int) -> None:
    wanted = sum(beta_binomial(k, of, 5.5, 45.5) for k in range(hits, of + 1))
    assert share_at_least(hits, of, past_hits=5, past_of=50, trust=inf) == pytest.approx(wanted)


def test_what_is_expected_is_no_wonder() -> None:
    assert share_at_least(2, 20, past_hits=5, past_of=50, trust=inf) == 1.0
    assert share_at_least(0, 20, past_hits=5, past_of=50, trust=inf) == 1.0


def test_a_past_of_very_many_calls_is_trusted_as_one_of_fewer() -> None:
    few = share_at_least(300, 1_000, past_hits=2_000, past_of=10_000, trust=1_000)
    assert few > 1e3 * share_at_least(300, 1_000, past_hits=2_000, past_of=10_000, trust=inf)
    wanted = share_at_least(300, 1_000, past_hits=200, past_of=1_000, trust=inf)
    assert few == pytest.approx(wanted, rel=0.2)


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 20])
def test_a_count_as_of_a_negative_binomial(count: int) -> None:
    shape, rate = 24.5, 6.0
    tail = range(count, 80) if count > shape / rate else range(count + 1)
    wanted = sum(negative_binomial(k, shape, rate) for k in tail)
    assert count_beyond(count, past=24, windows=6, trust=inf) == pytest.approx(wanted)


def test_large_numbers_take_no_time_and_do_not_overflow() -> None:
    assert 0 <= share_at_least(600_000, 1_000_000, past_hits=10, past_of=10**7, trust=1_000) < 1e-100
    assert 0.1 < share_at_least(500_100, 1_000_000, past_hits=5 * 10**6, past_of=10**7, trust=1_000) < 0.6
    assert 0 <= count_beyond(0, past=10**9, windows=10, trust=400.0) < 1e-100
    assert count_beyond(3 * 10**8, past=10**9, windows=10, trust=400.0) < 1e-100
