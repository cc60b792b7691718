"""What `make unit` runs of the unit tests, so that a change waits less than a minute for them: `--quick`.

It leaves out tests marked `thorough`, and runs few of the cases of a test that has many. `make test` runs them all.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, TypeVar

import pytest

OPTION: Final = "--quick"
#: The profile of Hypothesis that goes with it.
PROFILE: Final = "quick"
#: Of a test that takes more than a fifth of a second of CPU time, or waits for more than one and a half. Of thousands, these some
#: hundred take more than half of all.
MARK: Final = "thorough"
CASES_MAX: Final = 4

Case = TypeVar("Case")


def chosen(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of a quick run, and the others, each in their order."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(MARK) is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = {item for of_test in cases.values() for item in spread(of_test)}
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def spread(cases: Sequence[Case], cases_max: int = CASES_MAX) -> list[Case]:
    """So many of the cases at most: the first, the last, and others between at even distances."""
    if len(cases) <= cases_max:
        return list(cases)
    return [cases[number * (len(cases) - 1) // (cases_max - 1)] for number in range(cases_max)]
