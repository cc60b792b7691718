"""The pages of failures and of attacks name tests that exist."""

import re

import pytest

from deploy.local.paths import ROOT

#: A table of a page, the heading before it, and how many rows it has at least.
PAGES = [
    ("failures.md", "# Failures and their consequences", 50),
    ("security.md", "## Whose data: what holds it", 13),
    ("security.md", "## Hostile clients: what holds them", 55),
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
