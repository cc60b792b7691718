"""The tests' tree is as CONTRIBUTING says: a folder of unit tests has the stories of the folder of code with the same path."""

from pathlib import Path
from typing import Final

from deploy.local.paths import ROOT

UNIT: Final = Path(__file__).parent
INTEGRATION: Final = UNIT.parent / "integration"


def test_each_folder_of_unit_tests_is_one_of_the_code() -> None:
    folders = {file.parent.relative_to(UNIT) for file in UNIT.rglob("test_*.py")} - {Path()}
    stray = [str(one) for one in folders if not any((ROOT / top / one).is_dir() for top in ("services", ""))]
    assert len(folders) >= 50
    assert stray == []


def test_each_folder_of_the_tests_is_described() -> None:
    described = (ROOT / "CONTRIBUTING.md").read_text().partition("## The tests' tree\n")[2].partition("\n## ")[0]
    folders = {file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").rglob("test_*.py")}
    folders |= {part for file in INTEGRATION.rglob("test_*.py") for part in file.relative_to(INTEGRATION).parts[:-1]}
    missing = [one for one in sorted(folders) if f"`{one}/`" not in described]
    assert missing == []
