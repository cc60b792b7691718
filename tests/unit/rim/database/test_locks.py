"""Advisory locks of all services are in one database: each has a number of its own, in one module."""

import re
from pathlib import Path

from services.rim.database import locks
from tests.unit.test_tree import ROOT

NUMBERS = {name: number for name, number in vars(locks).items() if isinstance(number, int)}
#: A lock that is taken by a number in the text.
LITERAL = re.compile(r"advisory_\w*\(\s*([\d_]+)")


def test_no_two_locks_share_a_number() -> None:
    assert len(NUMBERS) > 1
    assert len(set(NUMBERS.values())) == len(NUMBERS)


def test_no_other_module_has_a_number_of_its_own() -> None:
    taken: dict[str, set[int]] = {".py": set(), ".sql": set()}
    copies = []
    for path in (ROOT / "services").rglob("*"):
        if path.suffix not in taken or path == Path(locks.__file__):
            continue
        text = path.read_text()
        taken[path.suffix] |= {int(found) for found in LITERAL.findall(text)}
        if path.suffix == ".py" and any(str(number) in text.replace("_", "") for number in NUMBERS.values()):
            copies.append(path)
    assert copies == []
    # A migration is as it was released.
    assert taken == {".py": set(), ".sql": {locks.VIEWS}}
