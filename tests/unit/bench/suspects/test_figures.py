"""The figures of searched cases: the rank of suspects alone beside the rank where possible ones come after them."""

from argparse import Namespace

from bench.suspects.figures import Result, part_of
from bench.suspects.methods import OURS

GIVEN = Namespace(incidents=4, calm=2, views=1_000, usual=3_000, alone=True)


def a_result(seed: int, place: int, place_listed: int, *, suspects: int = 1, possible: int = 0) -> Result:
    places, listed = {OURS: place}, {OURS: place_listed}
    return Result(seed, f"cdn={seed}", 1, True, places, listed, suspects, possible, {OURS: 0.1})


def test_possible_ones_count_in_a_figure_of_their_own_and_what_was_missed_is_shown() -> None:
    incidents = [a_result(0, 1, 1), a_result(1, 2, 2), a_result(2, 0, 3, suspects=0, possible=3), a_result(3, 0, 0)]
    calm = [a_result(10, 0, 0, suspects=0, possible=1), a_result(11, 0, 0, suspects=1)]
    part = part_of(incidents, calm, GIVEN)

    figures = {one.what: one.value for one in part.compared}
    assert figures["true cohort first, all incidents"] == "1 of 4"
    assert figures["true cohort among the first three, all incidents"] == "2 of 4"
    assert figures["true cohort first, all incidents, possible ones counted"] == "1 of 4"
    assert figures["true cohort among the first three, all incidents, possible ones counted"] == "3 of 4"
    assert figures["calm hours without a suspect"] == "1 of 2"
    assert "1 of 2 calm hours have some" in part.lines[0]
    for line in ("| 1: cdn=1 | yes | 2 | 2 |", "| 2: cdn=2 | yes | – | 3 |", "| 3: cdn=3 | yes | – | – |"):
        assert line in part.lines
    assert not any("0: cdn=0" in line for line in part.lines)
    assert part.lines[-1] == "Calm hours with suspects: 11."
