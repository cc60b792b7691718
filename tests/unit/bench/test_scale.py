"""The model of what slots and partitions cost: known factors are found again, and none is below 0."""

import pytest

from bench.report.figures import FULL, Results
from bench.report.results import Part
from bench.scale.extrapolated import protocol, table
from bench.scale.model import BROKER_TERMS, Point, broker_terms, error, fitted, slot_terms
from bench.scale.running import spent

POINTS = [
    Point(slots, partitions, beats_read, looking, commits, 0.0, 0.0)
    for slots, partitions, beats_read, looking, commits in [
        (8, 64, 0, 0, 0.0),
        (24, 64, 0, 0, 0.0),
        (48, 256, 0, 0, 0.0),
        (8, 64, 320.0, 0, 0.0),
        (48, 64, 11_520.0, 0, 0.0),
        (8, 64, 0, 8, 0.0),
        (48, 64, 0, 48, 0.0),
        (2, 64, 0, 0, 320.0),
        (2, 256, 0, 0, 900.0),
    ]
]


def test_factors_that_made_the_figures_are_found() -> None:
    rows = [broker_terms(point) for point in POINTS]
    wanted = [0.1, 0.004, 0.0002, 0.000002, 0.0003, 0.00002, 0.00001]
    values = [sum(size * factor for size, factor in zip(row, wanted, strict=True)) for row in rows]
    found = fitted(rows, values)
    assert found == pytest.approx(wanted)
    assert error(rows, values, found) == pytest.approx(0.0, abs=1e-9)


def test_a_term_that_would_be_below_zero_is_left_out() -> None:
    rows = [slot_terms(point) for point in POINTS]
    # Less with lookups than without.
    values = [0.02 * point.slots - 0.00001 * point.looking**2 for point in POINTS]
    found = fitted(rows, values)
    assert min(found) == 0.0
    assert found[0] == pytest.approx(0.02, rel=0.05)
    assert 0.0 < error(rows, values, found) < 0.1


def part(*lines: str) -> Part:
    return Part(name="made up", title="", command="", checked="", compared=[], lines=list(lines))


def results(*, folded_a_second: int, views_a_second: int) -> Results:
    return {
        "processor": part(f"| {FULL} | {folded_a_second} | 0 | 1.00 | 0 | 0 | 90 B, 1.00 records |"),
        "handover": part("| 1,000,000 | 4.0 | 200,000 | 0.6 |"),
        "sizes": part("| topic beacons | 7,000 | 1 |"),
        "finalizer-whole": part(
            f"| views of a day: bronze | 1 | 1 | 1 | {100 * views_a_second} |",
            f"| views of an hour: all of it | 1 | 1 | 1 | {views_a_second} |",
        ),
        "finalizer-hour": part("| of the hour | 1 | 1 | 1 | 100,000 |"),
        "memory": part("| a backlog of 1 | 800 |"),
        "scale": part(
            "| largest: 30 slots, 300 partitions | 1.0 |",
            *(f"| {term} | 1,000.00 | 2,000.00 |" for term in BROKER_TERMS),
        ),
    }


def test_the_bound_that_is_met_at_the_fewest_open_views_is_named_first() -> None:
    folds_slowly = table(results(folded_a_second=1_000, views_a_second=1_000_000))
    assert "The first bound that is met: a slot folds on one thread" in folds_slowly[-1]
    assert "at most 10,000 open views: 1 million on 100 slots" in folds_slowly[-1]
    assert any(line.startswith("| a slot folds") and "| 10000% | 1 million |" in line for line in folds_slowly)
    lands_slowly = table(results(folded_a_second=1_000_000, views_a_second=100))
    assert "The first bound that is met: the finalizer on one host" in lands_slowly[-1]


def test_the_cost_of_the_protocol_is_the_sum_of_its_terms() -> None:
    lines = protocol(results(folded_a_second=1, views_a_second=1))
    cells = [[float(cell) for cell in line.split("|")[2:4]] for line in lines[2:-2]]
    assert cells[-1] == pytest.approx([sum(column) for column in zip(*cells[:-1], strict=True)], abs=0.05)
    assert "30 slots, 300 partitions" in lines[-1]


def test_a_thread_that_has_ended_takes_nothing_from_what_the_others_waited() -> None:
    before = {"1": (100, 10), "2": (9_000, 900)}
    after = {"1": (150, 30), "3": (7, 1)}
    assert spent(before, after) == (57, 21)
