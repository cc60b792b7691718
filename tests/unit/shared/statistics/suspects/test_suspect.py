"""Cohorts that a sample names are judged once more, by the counts of all views."""

from dataclasses import replace

import numpy as np

from shared.statistics.suspects.likelihood import OVER_TIME, Quad
from shared.statistics.suspects.suspect import Basis, Searched, Suspect, confirmed, surprise_of

BASIS = Basis(0.03, OVER_TIME, cost=10.0, event=1.0, mix=(1.0, 1.0), mix_of_all=(1.0, 1.0))


def quad(*counts: float) -> Quad:
    return Quad(*(np.array(one) for one in counts))


TOTAL = quad(30_000, 1_000_000, 90_000, 3_000_000)
WORSE, WORST, CALM = quad(600, 10_000, 900, 30_000), quad(1_200, 10_000, 900, 30_000), quad(310, 10_000, 900, 30_000)


def a_suspect(cdn: str, basis: Basis = BASIS) -> Suspect:
    return Suspect((("cdn", cdn),), 1, 1, 1, 1, 1, 1.0, 1.0, 1.0, basis)


def searched(found: str, near: str) -> Searched:
    return Searched([*map(a_suspect, found)], [*map(a_suspect, near)])


def test_what_all_views_do_not_confirm_is_no_suspect() -> None:
    assert confirmed(searched("abc", ""), [WORSE, CALM, WORST], TOTAL) == [0, 2]
    assert confirmed(searched("a", ""), [CALM], TOTAL) == []


def test_of_those_near_the_line_the_best_is_a_suspect() -> None:
    assert confirmed(searched("a", "bcd"), [WORSE, WORSE, WORST, CALM], TOTAL) == [0, 2]
    assert confirmed(searched("", "bc"), [CALM, WORSE], TOTAL) == [1]
    assert confirmed(searched("a", "bc"), [WORSE, CALM, CALM], TOTAL) == [0]
    assert confirmed(searched("", ""), [], TOTAL) == []


def test_it_is_judged_in_the_terms_of_the_search() -> None:
    """Its mix, the cost of its description, and how large an event is."""
    others = [
        replace(BASIS, cost=1_000.0),
        replace(BASIS, mix=(2.0, 1.0)),
        replace(BASIS, event=100.0),
        replace(BASIS, prior_rate=0.1, apart=replace(OVER_TIME, prior_events=1e6)),
    ]
    for basis in others:
        assert confirmed(Searched([a_suspect("a", basis)], []), [WORSE], TOTAL) == []
        assert surprise_of(basis, WORSE, TOTAL) < surprise_of(BASIS, WORSE, TOTAL)
