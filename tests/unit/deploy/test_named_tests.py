"""The pages of failures, of attacks and of what others have name tests that exist."""

import re

import pytest

from deploy.local.paths import ROOT
from services.query.core.dimensions import DIMENSIONS

#: A table of a page, the heading before it, and how many rows it has at least.
PAGES = [
    ("failures.md", "# Failures and their consequences", 50),
    ("security.md", "## Whose data: what holds it", 13),
    ("security.md", "## Hostile clients: what holds them", 55),
    ("comparison.md", "## What shows each ✔", 19),
]


def rows(page: str, heading: str) -> list[str]:
    """The table's rows without its head."""
    text = (ROOT / "docs" / page).read_text().partition(heading)[2].partition("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| ")][1:]


def files_of_tests() -> dict[str, str]:
    """The text of all test files of a name: packages may have files of one name."""
    files: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        files[path.name] = files.get(path.name, "") + path.read_text()
    return files


@pytest.mark.parametrize(("page", "heading", "rows_min"), PAGES)
def test_each_row_names_tests_that_exist(page: str, heading: str, rows_min: int) -> None:
    files = files_of_tests()
    table = rows(page, heading)
    assert len(table) >= rows_min
    for row in table:
        named = re.findall(r"`(test_\w+\.py)::(\w+)`", row)
        assert named or "`make chaos" in row, row
        missing = [one for one in named if not re.search(rf"def {one[1]}\(", files.get(one[0], ""))]
        assert missing == [], row


def test_each_tick_of_the_comparison_has_its_tests_and_the_number_of_dimensions_is_right() -> None:
    table = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows("comparison.md", "# Beside Mux Data")]
    shown = [row.split("|")[1].strip() for row in rows("comparison.md", "## What shows each ✔")]

    # Each of our cells has a tick, or a reason.
    assert all(ours for _, ours, *_ in table)
    assert [name for name, ours, *_ in table if ours.startswith("✔")] == shown
    assert ["dimensions", f"✔ {len(DIMENSIONS)}, and any of the customer's own"] in [row[:2] for row in table]
