"""Sums by several dimensions together: those by one or two that are added up of them are those of the rows."""

import itertools
import math
import random

import numpy as np
import pytest

from shared.statistics.suspects.cells import cells_of
from shared.statistics.suspects.counts import OTHER, Side
from shared.statistics.suspects.joint import IN_TURN_MAX, PAIRS_MAX, in_turn, with_all_pairs
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.rows import Cohort, Rows, in_one_line

CARDS = [[4], [3, 5], [6, 12, 202, 6, 7, 6, 5, 14, 4, 251, 22], [251] * 12, [2] * 12, [251, 1, 251, 2]]


@pytest.mark.parametrize("cards", CARDS)
def test_every_two_dimensions_are_together_somewhere_and_no_more_than_there_is_room_for(cards: list[int]) -> None:
    found = with_all_pairs(cards)

    together = {pair for joint in found for pair in itertools.combinations(joint.dimensions, 2)}
    assert together == set(itertools.combinations(range(len(cards)), 2))
    assert {one for joint in found for one in joint.dimensions} == set(range(len(cards)))
    for joint in found:
        assert joint.shape == tuple(cards[one] for one in joint.dimensions)
        assert list(joint.dimensions) == sorted(set(joint.dimensions))
        assert joint.size <= PAIRS_MAX or len(joint.dimensions) == 2


def test_dimensions_of_few_values_need_few_sums() -> None:
    assert len(with_all_pairs([2] * 12)) == 1
    assert len(with_all_pairs([6, 12, 202, 6, 7, 6, 5, 14, 4, 251, 22])) < 55 / 3


@pytest.mark.parametrize("cards", CARDS)
def test_in_turn_each_dimension_comes_once_and_in_order(cards: list[int]) -> None:
    found = in_turn(cards)

    assert [one for joint in found for one in joint.dimensions] == list(range(len(cards)))
    for joint in found:
        assert joint.size <= IN_TURN_MAX or len(joint.dimensions) == 1


@pytest.mark.parametrize("cards", CARDS)
@pytest.mark.parametrize("count", [0, 1, 500])
def test_rows_have_the_sums_of_one_and_two_dimensions(cards: list[int], count: int) -> None:
    chance = np.random.default_rng(7)
    codes = np.stack([chance.integers(0, card, count, dtype=np.uint8) for card in cards])
    events, exposure = chance.integers(0, 3, count).astype(float), chance.integers(1, 9, count).astype(float)
    rows = Rows(Side(codes, events, exposure), cards, 1.0)
    some = np.sort(np.array(random.Random(7).sample(range(count), count // 3), np.intp))

    by_dimensions = [{dims: sums for dims, *sums in rows.tables(its)} for its in (None, some)]
    for chosen, tables in zip((np.arange(count), some), by_dimensions, strict=True):
        assert len(tables) == len(cards) + math.comb(len(cards), 2)
        for dimensions, found in tables.items():
            for sums, weights in zip(found, (events, exposure), strict=True):
                wanted = np.zeros([cards[one] for one in dimensions])
                np.add.at(wanted, tuple(codes[one][chosen] for one in dimensions), weights[chosen])
                assert np.array_equal(sums, wanted.ravel())


@pytest.mark.parametrize("cards", CARDS)
def test_cohorts_have_their_sums_by_the_values_of_all_dimensions(cards: list[int]) -> None:
    chance = np.random.default_rng(8)
    codes = np.stack([chance.integers(0, card, 300, dtype=np.uint8) for card in cards])
    rows = Rows(Side(codes, chance.integers(0, 3, 300).astype(float), chance.random(300)), cards, 1.0)
    cohorts: list[Cohort] = [(), ((0, 1),), ((0, 0), (len(cards) - 1, 1))]

    starts = in_one_line(cards)
    events, exposure = rows.by_value(cohorts)
    for number, cohort in enumerate(cohorts):
        for dims, *sums in rows.tables(rows.of(cohort)):
            if len(dims) == 1:
                start, end = starts[dims[0] : dims[0] + 2]
                assert np.array_equal([events[number, start:end], exposure[number, start:end]], sums)


def test_sums_with_events_are_found_by_their_values_and_none_of_others() -> None:
    cards = [3, 4, 2]
    cells, starts = cells_of(cards), in_one_line(cards)
    shapes = {dims: [cards[one] for one in dims] for dims in cells.tables}
    tables = {
        dims: Quad(*(np.arange(math.prod(shape), dtype=float) * factor for factor in (1, 10, 100, 1_000)))
        for dims, shape in shapes.items()
    }

    places, numbers, quad = cells.with_events(tables, 3.0)

    found = [
        (cells.tables[number], int(cells.first[place]), int(cells.second[place]), float(events))
        for place, number, events in zip(places, numbers, quad.events, strict=True)
    ]
    wanted = []
    for dims, shape in shapes.items():
        for at, codes in enumerate(itertools.product(*map(range, shape))):
            if at >= 3 and OTHER not in codes:
                values = [int(starts[dim]) + code for dim, code in zip(dims, codes, strict=True)]
                wanted.append((dims, values[0], values[-1], float(at)))
    assert found == wanted
    assert all(
        np.array_equal(part, quad.events * factor) for part, factor in zip(quad.parts, (1, 10, 100, 1_000), strict=True)
    )
