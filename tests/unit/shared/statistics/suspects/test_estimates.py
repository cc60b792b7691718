"""What cohorts show of chance, of clumps and of natural change is what they were drawn with."""

import numpy as np
import pytest

from shared.statistics.suspects.estimates import apart_by_themselves
from shared.statistics.suspects.likelihood import AMONG_COHORTS, OVER_TIME, PRIOR_EVENTS, Apart, Quad

COHORTS = 4_000
RATE = 0.05


def drawn(*, clump: int = 1, natural: float = 0.0, spread: float = 0.0, largest: float = 20_000.0) -> list[Quad]:
    """Cohorts of 5 to `largest` events: in clumps of so many, with rates that differ and that change."""
    chance = np.random.default_rng(3)
    exposure = np.exp(chance.uniform(np.log(6), np.log(largest), COHORTS)) / RATE
    rates = RATE * np.exp(chance.normal(0, spread, COHORTS))
    changed = rates * np.exp(chance.normal(0, natural, COHORTS))
    events = clump * chance.poisson(exposure * changed / clump)
    usual = clump * chance.poisson(3 * exposure * rates / clump)
    return [Quad(events.astype(float), exposure, usual.astype(float), 3 * exposure)]


def found(tables: list[Quad], apart: Apart = OVER_TIME) -> Apart:
    return apart_by_themselves(apart, tables, RATE)


@pytest.mark.parametrize("clump", [1, 2, 4])
def test_clumps_are_measured_from_small_cohorts(clump: int) -> None:
    assert found(drawn(clump=clump)).clumping == pytest.approx(clump, rel=0.15)
    assert found(drawn(clump=clump, natural=0.08)).clumping == pytest.approx(clump, rel=0.2)


@pytest.mark.parametrize(("natural", "measured"), [(0.0, 0.05), (0.07, 0.07), (0.09, 0.09), (0.3, 0.1)])
def test_natural_change_is_measured_from_large_ones_within_bounds(natural: float, measured: float) -> None:
    assert found(drawn(natural=natural)).natural == pytest.approx(measured, rel=0.12)


def test_without_large_cohorts_natural_change_is_what_is_usual() -> None:
    assert found(drawn(natural=0.3, largest=60.0)).natural == OVER_TIME.natural
    assert found([]) == Apart(OVER_TIME.natural, OVER_TIME.factor_min, 1.0, PRIOR_EVENTS[0])


def test_beside_the_rest_all_variation_is_one_number() -> None:
    assert found(drawn(natural=0.1), AMONG_COHORTS).natural == 0
    assert found(drawn(natural=0.1), AMONG_COHORTS).clumping > found(drawn(), AMONG_COHORTS).clumping


def test_a_prior_is_worth_more_the_less_rates_differ() -> None:
    worth = [found(drawn(spread=spread)).prior_events for spread in (1.5, 0.4, 0.2, 0.0)]

    assert worth == sorted(worth)
    assert worth[1] == pytest.approx(1 / 0.4**2, rel=0.5)
    assert (worth[0], worth[-1]) == PRIOR_EVENTS
