"""What both ranges have together is what their rows say, before a suspect takes some and afterwards."""

from dataclasses import replace

import numpy as np
import pytest

from shared.statistics.suspects.counts import KNOWN, Counts, Floats, Side, beside_rest
from shared.statistics.suspects.ranges import Ranges, ranges
from shared.statistics.suspects.rows import Cohort, in_one_line

CARDS = (3, 4, 2)
ROWS = 400


def side(seed: int) -> Side:
    chance = np.random.default_rng(seed)
    codes = np.stack([chance.integers(0, card, ROWS, dtype=np.uint8) for card in CARDS])
    return Side(codes, chance.integers(0, 3, ROWS).astype(float), chance.integers(1, 9, ROWS).astype(float))


COUNTS = Counts(("a", "b", "c"), tuple(tuple(map(str, range(card))) for card in CARDS), side(1), side(2), 2.0)


def without(of: Side, cohort: Cohort) -> Side:
    """Its rows without those of a cohort."""
    left = ~np.all([of.codes[place] == code for place, code in cohort], axis=0)
    return Side(of.codes[:, left], of.events[left], of.exposure[left])


def parts(of: Ranges, dimension: int) -> list[Floats]:
    """The sums by one dimension."""
    return list(dict(of.tables())[(dimension,)].parts)


def test_beside_the_rest_each_row_is_expected_to_have_the_rate_of_all() -> None:
    now, found = COUNTS.now, ranges(beside_rest(COUNTS))
    rate = now.events.sum() / COUNTS.event / now.exposure.sum()

    for dimension, card in enumerate(CARDS):
        events, exposure = (np.bincount(now.codes[dimension], of, card) for of in (now.events, now.exposure))
        wanted = [events / COUNTS.event, exposure, KNOWN * rate * exposure, KNOWN * exposure]
        assert np.allclose(parts(found, dimension), wanted)
    assert found.mix() == found.mix(((0, 1),)) == (1.0, 1.0)
    its = float(now.exposure[now.codes[0] == 1].sum())
    assert found.exposure(((0, 1),)) == (its, KNOWN * its)


def test_nothing_of_another_range_is_read_beside_the_rest() -> None:
    other = replace(COUNTS, usual=side(3))

    one, two = (ranges(beside_rest(counts)) for counts in (COUNTS, other))
    assert np.array_equal(parts(one, 1), parts(two, 1))


@pytest.mark.parametrize("is_beside_rest", [False, True])
def test_what_a_suspect_takes_is_in_no_sum_any_more(is_beside_rest: bool) -> None:
    counts = replace(COUNTS, is_beside_rest=is_beside_rest)
    found, cohort = ranges(counts), ((0, 1), (2, 0))
    tables = dict(found.tables())
    found.take(cohort, tables)

    left, line = found.by_value([cohort, ()]), in_one_line(CARDS)
    assert np.all(left[:, 0] == 0)
    for dimension in range(len(CARDS)):
        assert np.allclose(left[:, 1, line[dimension] : line[dimension + 1]], tables[(dimension,)].parts)
    wanted = without(COUNTS.now, cohort)
    assert tables[(1,)].events.sum() == pytest.approx(wanted.events.sum() / COUNTS.event)
    if is_beside_rest:
        assert tables[(1,)].exposure.sum() == wanted.exposure.sum()
        # Rounded once: equal rows have equal sums.
        assert np.array_equal(tables[(0, 1)].usual_exposure, KNOWN * tables[(0, 1)].exposure)


@pytest.mark.parametrize("is_beside_rest", [False, True])
def test_sums_that_are_kept_lose_what_suspects_take(is_beside_rest: bool) -> None:
    counts = replace(COUNTS, is_beside_rest=is_beside_rest)
    kept, fresh = ranges(counts), ranges(counts)
    asked: list[Cohort] = [(), ((1, 2),), ((0, 1), (1, 3)), ((0, 2),)]
    for cohort in (((0, 1), (2, 0)), ((1, 3),)):
        kept.by_value(asked)
        for one in (kept, fresh):
            one.take(cohort, dict(one.tables()))
    # Exactly: two descriptions of the same rows differ in nothing else.
    assert np.array_equal(kept.by_value(asked), fresh.by_value(asked))
    assert np.any(kept.by_value(asked))
