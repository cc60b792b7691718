"""Rows of figures by cohort: what they add up to, in any order of the cohorts."""

import itertools

import pytest

from services.query.core.suspects.statements import FIGURES, figures_by_cohort, reordered, together

#: Views that are in no cohort, in each of three, and in some of them together.
ROWS = [dict(zip(FIGURES, (mask, 2.0 * mask + 1, 10.0 + mask, mask + 5, mask + 7), strict=True)) for mask in range(8)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_cohorts_in_another_order_have_the_same_figures(order: tuple[int, ...]) -> None:
    as_read, again = figures_by_cohort(ROWS, [0, 0, 0]), figures_by_cohort(reordered(ROWS, order), [0, 0, 0])

    for new, old in enumerate(order):
        assert [again[f"{name}_{new}"] for name in FIGURES[1:]] == [as_read[f"{name}_{old}"] for name in FIGURES[1:]]
    assert [again[name] for name in FIGURES[1:]] == [as_read[name] for name in FIGURES[1:]]


def test_what_a_cohort_leaves_out_and_has_in_common_is_told_by_its_new_place() -> None:
    rows = reordered([row for row in ROWS if row["mask"] in {0b001, 0b011, 0b100}], (1, 0, 2))

    assert together(rows, [0, 0, 0]) == [0b010, 0b001, 0]
    assert figures_by_cohort(rows, [0, 0b001, 0])["views_1"] == 0b001 + 5
