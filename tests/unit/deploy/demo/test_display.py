"""The demo's table: what it says of each line."""

import io

import pytest
from rich.console import Console

from deploy.demo.comparing.compare import Line
from deploy.demo.display import table


@pytest.mark.parametrize(
    ("line", "settled", "verdict"),
    [
        (Line("views", "3", "3", True), True, "ok"),
        (Line("views", "2", "3", False), True, "DIFFERS"),
        # It may still come.
        (Line("views", "2", "3", False), False, "under way"),
        (Line("first suspect of Now", "none", "cdn=fastly", None), True, "too few"),
        (Line("row to rollups", "1.00 s / 2.00 s", "", None), True, ""),
        (Line("beacons answered 2xx", "", "3", None), True, ""),
    ],
)
def test_each_line_says_whether_it_is_right_or_why_nothing_is_said(line: Line, settled: bool, verdict: str) -> None:
    drawn = Console(file=io.StringIO(), width=120, record=True)
    drawn.print(table([line], settled=settled))
    head, *rows = drawn.export_text().splitlines()
    (row,) = rows
    assert head.split() == ["what", "observed", "truth"]
    assert row.removeprefix(line.name).split() == [
        *(line.observed or "-").split(),
        *line.truth.split(),
        *verdict.split(),
    ]
