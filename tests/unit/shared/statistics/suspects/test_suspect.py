"""Cohorts that a sample names are judged once more, by the counts of all views."""

from dataclasses import replace

import numpy as np
import pytest

from shared.statistics.suspects.likelihood import OVER_TIME, Quad
from shared.statistics.suspects.search import NEAR_MAX
from shared.statistics.suspects.suspect import (
    COUNTED,
    LINE,
    NEAR,
    POSSIBLE_MAX,
    Basis,
    Searched,
    Suspect,
    confirmed,
    judged,
    judgements,
    possible,
)

BASIS = Basis(0.03, OVER_TIME, cost=10.0, event=1.0, mix=(1.0, 1.0), mix_of_all=(1.0, 1.0))


def quad(*counts: float) -> Quad:
    return Quad(*(np.array(one) for one in counts))


TOTAL = quad(30_000, 1_000_000, 90_000, 3_000_000)
#: Below the line, but near it.
WEAK, WEAKER = quad(430, 10_000, 900, 30_000), quad(100, 2_000, 180, 6_000)
WORSE, WORST, CALM = quad(600, 10_000, 900, 30_000), quad(1_200, 10_000, 900, 30_000), quad(310, 10_000, 900, 30_000)


def a_suspect(cdn: str, basis: Basis = BASIS) -> Suspect:
    return Suspect((("cdn", cdn),), 1, 1, 1, 1, 1, 1.0, 1.0, 1.0, basis)


def searched(found: str, near: str, denied: str = "") -> Searched:
    return Searched(*([*map(a_suspect, names)] for names in (found, near, denied)))


def confirmed_by(found: Searched, quads: list[Quad], total: Quad, together: list[int] | None = None) -> list[int]:
    """Where nothing else is said, those near the line have all their views in common."""
    number = len(found.listed)
    near = (1 << number) - (1 << len(found.found))
    of_each = [0 if place < len(found.found) else near & ~(1 << place) for place in range(number)]
    return confirmed(found, judgements(found, quads, total), of_each if together is None else together)


def possible_of(
    found: Searched, quads: list[Quad], together: list[int], places: list[int] | None = None, most: int = POSSIBLE_MAX
) -> list[int]:
    return possible(found, judgements(found, quads, TOTAL), places or [], together, most)


def test_what_all_views_do_not_confirm_is_no_suspect() -> None:
    assert confirmed_by(searched("abc", ""), [WORSE, CALM, WORST], TOTAL) == [0, 2]
    assert confirmed_by(searched("a", ""), [CALM], TOTAL) == []
    assert searched("abc", "").to_be_counted_again([0, 2]) == searched("ac", "", "b")
    assert searched("ab", "c").to_be_counted_again([0, 1, 2]) is None


def test_what_is_denied_once_is_never_found_again() -> None:
    """Else two could take each other's place for ever."""
    again = searched("ab", "cd").to_be_counted_again([1, 3])
    assert again == searched("bd", "c", "a")
    assert confirmed_by(again, [WORSE, WORSE, CALM, WORST], TOTAL) == [0, 1]
    assert again.to_be_counted_again([0]) == searched("b", "c", "ad")


def test_of_those_near_the_line_the_best_is_a_suspect() -> None:
    assert confirmed_by(searched("a", "bcd"), [WORSE, WORSE, WORST, CALM], TOTAL) == [0, 2]
    assert confirmed_by(searched("", "bc"), [CALM, WORSE], TOTAL) == [1]
    assert confirmed_by(searched("a", "bc"), [WORSE, CALM, CALM], TOTAL) == [0]
    assert confirmed_by(searched("", ""), [], TOTAL) == []


def test_of_those_near_the_line_another_is_a_suspect_too_if_it_has_no_view_in_common_with_the_best() -> None:
    quads = [WORSE, WORST, WORSE]
    assert confirmed_by(searched("", "abc"), quads, TOTAL, [0b010, 0b001, 0]) == [1, 2]
    assert confirmed_by(searched("", "abc"), quads, TOTAL, [0, 0, 0]) == [1, 0, 2]


def test_how_far_below_the_line_a_cohort_is_possible_and_counted() -> None:
    """As docs/suspects.md says it."""
    assert (LINE, NEAR, COUNTED, NEAR_MAX) == (3.0, -5.0, -10.0, 12)


def test_what_is_near_the_line_is_possible_the_best_explanation_first() -> None:
    said = judgements(searched("", "abcd"), [WEAKER, WEAK, CALM, WORSE], TOTAL)
    assert NEAR < said[0].surprise < said[1].surprise <= LINE < said[3].surprise
    assert said[2].surprise < NEAR

    apart = [0] * 4
    assert possible_of(searched("", "abcd"), [WEAKER, WEAK, CALM, WORSE], apart) == [1, 0]
    assert possible_of(searched("", "abcd"), [WEAKER, WEAK, WEAK, WEAK], apart) == [1, 2, 3]
    assert possible_of(searched("", "abcd"), [WEAKER, WEAK, WEAK, WEAK], apart, most=1) == [1]


def test_what_is_possible_has_no_view_in_common_with_another_one_or_with_a_suspect() -> None:
    assert possible_of(searched("", "ab"), [WEAKER, WEAK], [0b10, 0b01]) == [1]
    assert possible_of(searched("", "abc"), [WEAKER, WEAK, WORSE], [0, 0b100, 0b010], [2]) == [0]


def test_what_a_sample_found_and_all_views_deny_is_possible_if_it_is_near_the_line() -> None:
    assert possible_of(searched("", "a", "b"), [WEAKER, WEAK], [0, 0]) == [1, 0]
    assert possible_of(searched("a", ""), [WEAK], [0]) == []


def test_it_is_judged_in_the_terms_of_the_search() -> None:
    """Its mix, the cost of its description, and how large an event is."""
    others = [
        replace(BASIS, cost=1_000.0),
        replace(BASIS, mix=(2.0, 1.0)),
        replace(BASIS, event=100.0),
        replace(BASIS, prior_rate=0.1, apart=replace(OVER_TIME, prior_events=1e6)),
    ]
    for basis in others:
        assert confirmed_by(Searched([a_suspect("a", basis)], []), [WORSE], TOTAL) == []
        assert judged(basis, WORSE, TOTAL).surprise < judged(BASIS, WORSE, TOTAL).surprise


def test_views_of_a_suspect_are_no_rest_of_those_after_it() -> None:
    """A large incident would hide a small one: beside all views the small one did not become worse."""
    large, small = quad(60_000, 300_000, 9_000, 900_000), WORSE
    total = quad(90_000, 1_000_000, 90_000, 3_000_000)

    assert not judged(BASIS, small, total).is_suspect
    assert confirmed_by(searched("ab", ""), [large, small], total) == [0, 1]
    assert confirmed_by(searched("a", "b"), [large, small], total) == [0, 1]


def test_what_is_said_of_a_suspect_is_in_the_metrics_unit() -> None:
    of_counts = judged(BASIS, WORSE, TOTAL)
    scaled = [
        quad(*(float(one) * by for one, by in zip(of.parts, (50, 1, 50, 1), strict=True))) for of in (WORSE, TOTAL)
    ]
    of_sums = judged(replace(BASIS, event=50.0), *scaled)

    assert of_counts.surprise > LINE
    assert of_counts.excess == pytest.approx(300, rel=0.05)
    assert of_counts.factor == pytest.approx(2, rel=0.05)
    assert (of_sums.surprise, of_sums.factor) == pytest.approx((of_counts.surprise, of_counts.factor))
    assert of_sums.excess == pytest.approx(50 * of_counts.excess)
