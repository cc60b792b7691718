"""Log buckets keep every value within 1 %, and quantiles are those of the values themselves."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.statistics.histogram import BUCKET_OF_ZERO, bucket_of, quantile, value_of


@given(st.floats(min_value=1e-6, max_value=1e15))
def test_a_buckets_value_is_within_one_percent_of_all_that_falls_into_it(value: float) -> None:
    assert value_of(bucket_of(value)) == pytest.approx(value, rel=0.01)


@given(st.floats(min_value=1e-6, max_value=1e12), st.floats(min_value=1.03, max_value=100))
def test_a_larger_value_never_falls_into_a_lower_bucket(value: float, factor: float) -> None:
    assert bucket_of(value * factor) > bucket_of(value)


def test_zero_and_less_have_a_bucket_of_their_own() -> None:
    assert {bucket_of(0), bucket_of(-5)} == {BUCKET_OF_ZERO}
    assert value_of(BUCKET_OF_ZERO) == 0
    assert quantile({BUCKET_OF_ZERO: 9, bucket_of(100): 1}, 0.9) == 0


@pytest.mark.parametrize("q", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_a_quantile_of_merged_hours_is_within_one_percent_of_the_exact_one(q: float) -> None:
    values = [random.Random(i).lognormvariate(6, 1.5) for i in range(1_000)]
    merged = Counter(map(bucket_of, values[:300])) + Counter(map(bucket_of, values[300:]))

    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]

    assert quantile(merged, q) == pytest.approx(exact, rel=0.01)


def test_nothing_counted_has_no_quantile() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({3: 0}, 0.5) is None


@pytest.mark.parametrize(("q", "rank"), [(0.0, 1), (0.1, 1), (0.34, 2), (0.5, 2), (0.67, 3), (0.9, 3), (1.0, 3)])
def test_a_rank_between_two_values_is_the_upper_one(q: float, rank: int) -> None:
    assert quantile({10: 1, 20: 1, 30: 1}, q) == value_of(10 * rank)


@pytest.mark.parametrize("q", [-0.001, 1.001, 2, 95])
def test_a_quantile_beyond_zero_to_one_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        quantile({1: 1}, q)
