"""Gives the workers of a run their shares of the cores, however many processes each has started.

By default the kernel shares the cores among sessions, and each broker and each service is one. So the tests with Spark, whose work
is that of one JVM, would get little of them. They are the longest group (`tests/suite/scheduling.py`): a run would end with them
alone, and one core would have nothing to do. It needs root and cgroup v1.
"""

import contextlib
from pathlib import Path
from typing import Final

import pytest

from tests.suite import control_groups, scheduling

_CONTROLLER: Final = "cpu"
#: The kernel's default of a group.
USUAL: Final = 1024
#: Of two cores with five workers this is what the longest group can use: one core.
OF_LONGEST: Final = 4 * USUAL


class Shares:
    """The plugin of a worker."""

    def __init__(self, group: Path) -> None:
        self._shares = group / "cpu.shares"
        self._give(USUAL)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        wanted = OF_LONGEST if scheduling.is_of_longest(item.nodeid) else USUAL
        if wanted != self._given:
            self._give(wanted)

    def _give(self, shares: int) -> None:
        self._shares.write_text(str(shares))
        self._given = shares


def register(config: pytest.Config) -> None:
    """In a worker. Without the rights to do so the kernel shares as by default."""
    if control_groups.may_join(_CONTROLLER):
        with contextlib.suppress(OSError):
            config.pluginmanager.register(Shares(control_groups.join(_CONTROLLER)))


def begin() -> None:
    """Removes what earlier runs have left."""
    control_groups.remove_empty(_CONTROLLER)
