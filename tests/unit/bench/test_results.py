"""The results of benchmarks are kept by name, are read by name, and a wrong result ends the run before any figure."""

from pathlib import Path

import pytest

from bench.finalizer.timing import Took, Wrong, best, cost_ratio, expect
from bench.report import results
from bench.report.results import Part, against, keep, kept


def _part(name: str) -> Part:
    return Part(name=name, title=name, command="", checked="", compared=[], lines=[])


def test_all_figures_of_a_part_are_shown_and_none_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "HOME", tmp_path)
    assert kept("finalizer") == []
    for name in ("finalizer-whole", "finalizer-merges", "finalizers", "e2e"):
        keep(_part(name))
    keep(_part("finalizer-whole"))

    assert [part.name for part in kept("finalizer")] == ["finalizer-merges", "finalizer-whole"]
    assert [part.name for part in kept("e2e")] == ["e2e"]


def test_ratios_are_of_the_cpu_time_that_other_work_does_not_touch() -> None:
    busy = [Took(9.0, 2.0), Took(4.0, 3.0)]
    free = [Took(1.0, 1.0), Took(2.0, 1.5)]
    assert best(busy) == (4.0, 2.0)
    growth = cost_ratio(busy, free)
    assert growth == 2.0
    assert [against("", growth, 1.5, at_most=True).is_met, against("", growth, 1.5).is_met] == [False, True]


def test_what_is_not_as_it_must_be_ends_the_run() -> None:
    expect("views", 3, 3)
    with pytest.raises(Wrong, match="views: 2, must be 3"):
        expect("views", 2, 3)
