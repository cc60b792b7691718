"""The page of failures names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", (ROOT / "docs/failures.md").read_text())
    files: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        # Packages may have files of one name.
        files[path.name] = files.get(path.name, "") + path.read_text()
    assert len(named) >= 30
    assert [one for one in named if f"def {one[1]}(" not in files.get(one[0], "")] == []
