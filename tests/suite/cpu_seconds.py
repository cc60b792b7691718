"""Counts the CPU seconds of each file of tests, with all processes that it starts: `python -m tests.suite.cpu_seconds FILES`.

`python -m tests.suite.whole --cpu-seconds` counts those of a whole run.

Wall time says little on a machine with other work, and the times of child processes lack those that are never waited for. So each
worker of pytest joins a control group of its own, which its processes inherit, and reads the group's account around each test. It
needs root and the controller `cpuacct` of cgroup v1; without them nothing is counted, and the last line says so.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from deploy.local.paths import LOCAL
from tests.suite import control_groups

#: Names the folder of what is counted.
VARIABLE: Final = "PLAYHEAD_CPU_SECONDS_DIR"
FOLDER: Final = Path(os.environ.get(VARIABLE, LOCAL / "cpu-seconds"))
_CONTROLLER: Final = "cpuacct"
_ROWS_MAX: Final = 40


@dataclass(frozen=True)
class Counted:
    """What one test took, its fixtures included, or the collection of all (`name` is empty then)."""

    name: str
    cpu_seconds: float
    wall_seconds: float

    @property
    def file(self) -> str:
        return self.name.partition("::")[0] or "(imports and collection)"


def table(counted: Iterable[Counted], rows_max: int = _ROWS_MAX) -> str:
    """The files with the most CPU seconds, and what all took."""
    files: dict[str, list[Counted]] = defaultdict(list)
    for one in counted:
        files[one.file].append(one)
    sums = {
        file: (sum(one.cpu_seconds for one in ones), sum(one.wall_seconds for one in ones))
        for file, ones in files.items()
    }
    rows = [f"{'CPU s':>8}{'wall s':>8}{'tests':>7}  file"]
    for file, (cpu, wall) in sorted(sums.items(), key=lambda row: -row[1][0])[:rows_max]:
        rows.append(f"{cpu:>8.1f}{wall:>8.1f}{len(files[file]):>7}  {file}")
    cpu, wall = (sum(pair[at] for pair in sums.values()) for at in (0, 1))
    return "\n".join([*rows, f"{cpu:>8.1f}{wall:>8.1f}{sum(map(len, files.values())):>7}  all"])


def begin() -> None:
    """Forgets what earlier runs counted."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    control_groups.remove_empty(_CONTROLLER)


def report(folder: Path = FOLDER) -> str:
    """The table of this run."""
    counted = [Counted(**json.loads(line)) for file in folder.glob("*") for line in file.read_text().splitlines()]
    return table(counted) if counted else f"CPU seconds are not counted: no cgroup v1 of {_CONTROLLER}, or not ours"


class _Account:
    """The plugin of a worker: its group, and what its tests took."""

    def __init__(self, worker: str) -> None:
        self._usage = control_groups.join(_CONTROLLER) / "cpuacct.usage"
        self._before = self._seconds()
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._file = FOLDER / f"{worker}-{os.getpid()}"

    def _seconds(self) -> float:
        return int(self._usage.read_text()) / 1e9

    def _note(self, name: str, cpu_seconds: float, wall_seconds: float) -> None:
        one = {"name": name, "cpu_seconds": round(cpu_seconds, 3), "wall_seconds": round(wall_seconds, 3)}
        with self._file.open("a") as file:
            file.write(json.dumps(one) + "\n")

    def pytest_collection_finish(self) -> None:
        self._note("", self._seconds() - self._before, 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        cpu, wall = self._seconds(), time.monotonic()
        result = yield
        self._note(item.nodeid, self._seconds() - cpu, time.monotonic() - wall)
        return result


def pytest_configure(config: pytest.Config) -> None:
    """Counts in each process that runs tests."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    is_controller = not worker and bool(getattr(config.option, "numprocesses", None))
    if not is_controller and control_groups.may_join(_CONTROLLER):
        config.pluginmanager.register(_Account(worker or "alone"))


def main(arguments: list[str]) -> int:
    """Runs pytest with these arguments, then prints the table; pytest's exit code."""
    begin()
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.suite.cpu_seconds", *arguments], check=False
    ).returncode
    print(report())
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
