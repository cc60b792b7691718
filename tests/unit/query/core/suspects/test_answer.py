"""An answer made of what was found: suspects are ranked by what was asked for."""

from typing import Any, cast

import pytest

from services.query.core.answer import About, Span
from services.query.core.suspects.answer import Looked, Outcome, Suspects, composed, said_of
from services.query.core.suspects.statements import together
from shared.statistics.suspects.suspect import Basis, Judged, Searched, Suspect
from tests.unit.query.core.suspects.test_question import question

ABOUT = About(Span(0, 1), ["acme"], [], 1, is_exact=True, has_hot_rows=True)
#: CDN, excess and surprise, in the order in which they are found.
FOUND = (("sure", 10.0, 90.0), ("large", 500.0, 20.0), ("middle", 40.0, 30.0))


def answered(*possible: int, **given: str) -> Suspects:
    """The last of `FOUND` are possible, at these places."""
    basis = cast(Basis, None)
    found = [
        Suspect((("cdn", cdn),), 20, 100, 5, 100, excess, 2.0, surprise, surprise, basis)
        for cdn, excess, surprise in FOUND
    ]
    said = [Judged(surprise, surprise, excess, 2.0) for _, excess, surprise in FOUND]
    of_all = {"events": 90, "exposure": 900, "views": 900}
    of_cohorts = {f"{name}_{place}": value // 10 for place in range(len(FOUND)) for name, value in of_all.items()}
    row: dict[str, Any] = of_all | of_cohorts
    certain = [place for place in range(len(FOUND)) if place not in possible]
    outcome = Outcome(Searched(found[: len(certain)], found[len(certain) :]), (row, row), said, certain, possible)
    return composed(question(against="usual", **given), outcome, Looked(900, 900), ABOUT)


@pytest.mark.parametrize(
    ("given", "ranked"),
    [
        ({}, ["large", "middle", "sure"]),
        ({"order_by": "excess"}, ["large", "middle", "sure"]),
        ({"order_by": "surprise"}, ["sure", "middle", "large"]),
    ],
)
def test_suspects_are_ranked_by_what_was_asked_for(given: dict[str, str], ranked: list[str]) -> None:
    found = answered(**given).suspects

    assert [one.conditions[0].value for one in found] == ranked
    assert {(one.conditions[0].value, one.excess, one.surprise) for one in found} == set(FOUND)


def test_what_is_possible_is_listed_apart_the_likeliest_first() -> None:
    found = answered(2, 1)

    assert [one.conditions[0].value for one in found.suspects] == ["sure"]
    assert [one.conditions[0].value for one in found.possible] == ["middle", "large"]


def test_cohorts_have_views_in_common_where_a_row_is_of_both_and_is_not_left_out() -> None:
    # Cohort 0 was found: no other one has its views. Of the others 1 and 2 meet, 3 is by itself.
    rows = [{"mask": mask} for mask in (0b0001, 0b0011, 0b1001, 0b0110, 0b1000)]

    assert together(rows, [0, 1, 1, 1]) == [0b1010, 0b0100, 0b0010, 0]


def test_of_a_sum_the_excess_is_that_of_all_events_also_of_those_that_the_search_cut() -> None:
    basis = cast(Basis, None)
    found = Suspect((("cdn", "own"),), 20, 100, 5, 100, 10.0, 2.0, 90.0, 91.0, basis)
    asked = question(metric="rebuffer_fraction", against="usual")

    (said,) = said_of(asked, Searched([found], []), ({"events_0": 60}, {"events_0": 5}))

    assert not asked.measured.is_count
    assert said == Judged(91.0, 90.0, 30.0, 2.0)
