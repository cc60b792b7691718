"""How many views of a range are searched, and that a sample has the rates of all."""

import numpy as np
import pytest

from shared.statistics.suspects.sampling import FEW_OF, Sampling, one_of, sampling


def test_views_with_events_are_kept_longest() -> None:
    assert sampling(1_000, 900, bad_max=1_000, good_max=2_000) == Sampling(1, 1)
    assert sampling(2_000, 1_900, bad_max=1_000, good_max=2_000) == Sampling(1, 1)
    few = sampling(10_000, 900, bad_max=1_000, good_max=2_000)
    many = sampling(10_000, 4_500, bad_max=1_000, good_max=2_000)

    assert (few.bad_of, few.good_of) == (1, 5)
    assert (many.bad_of, many.good_of) == (5, 5)


def test_a_sample_of_fewer_views_is_among_the_few_if_it_is_nearly_as_large() -> None:
    assert sampling(8_300_000, 900_000, bad_max=80_000, good_max=80_000) == Sampling(12, 13 * FEW_OF)
    assert [one_of(views, 10) for views in (0, 10, 11, 70, 71, 81, 150, 170, 210, 940)] == [
        *(1, 1, 2, 7, FEW_OF, 9),
        *(2 * FEW_OF, 2 * FEW_OF, 21, 12 * FEW_OF),
    ]


@pytest.mark.parametrize("bad", [1_000, 60_000])
def test_a_sample_has_the_rate_of_all_views(bad: int) -> None:
    views = 400_000
    events = (np.arange(views) < bad).astype(float)
    how = sampling(views, bad, bad_max=20_000, good_max=50_000)
    number = np.random.default_rng(1).integers(0, 1 << 30, views)
    chosen = number % np.where(events > 0, how.bad_of, how.good_of) == 0

    exposure = how.exposure(events[chosen], np.ones(int(chosen.sum())))

    assert events[chosen].sum() / exposure.sum() == pytest.approx(bad / views, rel=0.02)


def test_a_view_without_events_stands_for_as_many_as_were_left_out() -> None:
    assert Sampling(2, 12).weight == 6
    assert Sampling(1, 1).weight == 0
    assert list(Sampling(1, 1).exposure(np.array([0.0, 1.0]), np.array([3.0, 3.0]))) == [3, 3]
