"""What the benchmark of suspects makes: incidents within their bounds, none said twice, and only what is certain is detectable."""

import numpy as np
import pytest

from bench.suspects import __main__ as bench
from bench.suspects.incidents import SHARES, STRENGTHS, case
from bench.suspects.world import DIMENSIONS, World

VIEWS = 20_000
CASES = [case(World(3), seed, views=VIEWS, usual_views=2 * VIEWS, is_calm=False) for seed in range(8)]


def test_an_incident_makes_its_cohort_worse_and_nobody_else() -> None:
    for made in CASES:
        assert made.incident is not None
        calm = case(World(3), 10**6, views=VIEWS, usual_views=VIEWS, is_calm=True)
        assert calm.incident is None
        assert SHARES[0] <= made.incident.share <= SHARES[1]
        assert STRENGTHS[0] <= made.incident.strength <= STRENGTHS[1]
        inside = made.incident.within(made.now.columns)
        assert inside.mean() == pytest.approx(made.incident.share, rel=0.5)


def test_each_condition_of_an_incident_leaves_views_out() -> None:
    for made in CASES:
        assert made.incident is not None
        inside = made.incident.within(made.now.columns).sum()
        for left_out in range(len(made.incident.values)):
            others = [one for number, one in enumerate(made.incident.values) if number != left_out]
            wider = np.all([made.now.columns[place] == code for place, code in others], axis=0) if others else None
            assert wider is None or wider.sum() > 1.1 * inside


def test_networks_say_their_country_and_titles_are_live_or_not() -> None:
    columns = dict(zip(DIMENSIONS, CASES[0].now.columns, strict=True))
    for narrow, wide in (("asn", "country"), ("title", "stream_type"), ("player_version", "player_version")):
        pairs = set(zip(columns[narrow].tolist(), columns[wide].tolist(), strict=True))
        assert len(pairs) == len(set(columns[narrow].tolist()))


def test_the_same_seed_is_the_same_case() -> None:
    again = case(World(3), 0, views=VIEWS, usual_views=2 * VIEWS, is_calm=False)
    assert again.incident == CASES[0].incident
    assert np.array_equal(again.now.columns, CASES[0].now.columns)


@pytest.mark.thorough
def test_a_case_is_searched_by_every_method_and_a_calm_hour_by_ours() -> None:
    found = bench.run(0, views=VIEWS, usual=2 * VIEWS)
    calm = bench.run(bench._FIRST_CALM, views=VIEWS, usual=2 * VIEWS)

    assert set(found.places) == set(bench.METHODS)
    assert (set(calm.places), calm.order, calm.is_detectable) == ({"Playhead"}, 0, False)
