"""What the list of CPU seconds says: sums of files, the largest first, and what the tests' own processes took."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.paths import ROOT
from tests.suite import control_groups, cpu_seconds
from tests.suite.cpu_seconds import Counted, table

_BURNS = """
import subprocess, sys

def test_whose_process_takes_a_second_and_is_never_waited_for():
    code = "import time; print(flush=True); [0 for _ in iter(lambda: time.process_time() < 1, False)]; print(flush=True)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.readline(), process.stdout.readline()
"""


def test_files_are_listed_by_what_their_tests_take_together() -> None:
    counted = [Counted("", 3.0, 0.0), Counted("a.py::one", 1.0, 4.0), Counted("b.py::one", 2.0, 1.0)]
    rows = table([*counted, Counted("a.py::two[x::y]", 4.5, 0.5)], rows_max=2).splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["5.5", "4.5", "2", "a.py"],
        ["3.0", "0.0", "1", "(imports", "and", "collection)"],
        ["10.5", "5.5", "4", "all"],
    ]


@pytest.mark.thorough
def test_what_a_test_starts_is_counted_though_nobody_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "test_burns.py").write_text(_BURNS)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "-p",
        "tests.suite.cpu_seconds",
    ]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(tmp_path / "test_burns.py")],
        cwd=ROOT,
        env=environ | {cpu_seconds.VARIABLE: str(tmp_path / "counted"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    said = cpu_seconds.report(tmp_path / "counted")
    if control_groups.may_join("cpuacct"):
        (row,) = (line.split() for line in said.splitlines() if line.endswith("test_burns.py"))
        assert float(row[0]) >= 1
        assert row[2] == "1"
    else:
        assert "CPU seconds are not counted" in said
