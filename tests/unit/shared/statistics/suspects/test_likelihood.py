"""What counts of a cohort are evidence of, beside clumps of events and natural change."""

from dataclasses import replace

import numpy as np
import pytest

from shared.statistics.suspects.likelihood import OVER_TIME, Quad, evidence, in_clumps


def quad(events: float, exposure: float, usual_events: float, usual_exposure: float) -> Quad:
    return Quad(*(np.array([part]) for part in (events, exposure, usual_events, usual_exposure)))


TOTAL = quad(3_000, 100_000, 6_000, 200_000)
RATE = np.array([0.03])


@pytest.mark.parametrize("clumping", [1.01, 1.2, 1.5, 1.9])
def test_a_small_change_says_less_by_the_clumping_and_a_large_one_by_up_to_two(clumping: float) -> None:
    said = in_clumps(np.array([1.0, 1.2, 2.0, 10.0, 1e6]), clumping)

    assert said[0] == pytest.approx(clumping, rel=0.01)
    assert list(said) == sorted(said)
    assert said[-1] < 2


@pytest.mark.parametrize("clumping", [1.0, 2.0, 2.5])
def test_counts_of_ones_and_of_larger_clumps_say_the_same_of_any_change(clumping: float) -> None:
    assert in_clumps(np.array([1.1, 50.0]), clumping) == pytest.approx([clumping, clumping])


def test_what_changes_less_than_the_least_factor_is_beyond_nothing_but_still_evidence() -> None:
    """A wide cohort is looked into though it is no suspect: the effect of a narrow one shows in it, diluted."""
    found = evidence(quad(360, 10_000, 600, 20_000), TOTAL, RATE)

    assert 1 < found.factor[0] < OVER_TIME.factor_min
    assert found.gain[0] > 0
    assert found.beyond[0] == -np.inf


def test_natural_change_weighs_where_chance_does_not() -> None:
    """With events in clumps chance is larger, and natural change is as it was."""
    small, large = quad(60, 1_000, 60, 2_000), quad(1_800, 30_000, 1_800, 60_000)
    plain, still = OVER_TIME, replace(OVER_TIME, natural=0.0)

    shares = [
        float(evidence(of, TOTAL, RATE, plain).beyond[0] / evidence(of, TOTAL, RATE, still).beyond[0])
        for of in (small, large)
    ]
    assert shares[0] > 0.85
    assert shares[1] < 0.35
    clumped = replace(plain, clumping=1.9)
    share = (
        evidence(large, TOTAL, RATE, clumped).beyond / evidence(large, TOTAL, RATE, replace(clumped, natural=0)).beyond
    )
    assert share[0] > shares[1]


def test_what_a_sample_does_not_know_is_no_evidence() -> None:
    """Of a cohort no view without events was drawn: that none is there is not said by that."""
    none, few, many = quad(10, 10, 10, 300), quad(60, 700, 60, 2_000), quad(900, 15_000, 900, 30_000)
    sampled = replace(OVER_TIME, sampled=(10.0, 0.0))

    shares = [
        float(evidence(of, TOTAL, RATE, sampled).beyond[0] / evidence(of, TOTAL, RATE).beyond[0])
        for of in (none, few, many)
    ]
    assert shares[0] < 0.5
    assert shares == sorted(shares)
    assert 0.9 < shares[2] < 1
    assert evidence(none, TOTAL, RATE, sampled).gain == evidence(none, TOTAL, RATE).gain
    of_usual = replace(OVER_TIME, sampled=(0.0, 10.0))
    assert evidence(few, TOTAL, RATE, of_usual).beyond < evidence(few, TOTAL, RATE).beyond
