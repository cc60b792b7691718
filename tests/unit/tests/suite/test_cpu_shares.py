"""The worker with the longest group of tests gets more of the cores while it has it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.local.paths import ROOT
from tests.suite import control_groups, cpu_shares, scheduling

LONGEST = f"tests/integration/{scheduling.SHARING_SPARK[0]}::test_one"
_JOINS = """
from pathlib import Path
from tests.suite import control_groups

group = control_groups.join("cpu")
print(group.name, f"/{group.name}\\n" in Path("/proc/self/cgroup").read_text(), (group / "cpu.shares").exists())
"""


def item(nodeid: str) -> Any:
    return SimpleNamespace(nodeid=nodeid)


def test_a_worker_has_the_larger_share_while_it_runs_the_longest_group(tmp_path: Path) -> None:
    given = tmp_path / "cpu.shares"
    shares = cpu_shares.Shares(tmp_path)
    shares.pytest_runtest_setup(item("tests/unit/test_tree.py::test_one"))
    assert given.read_text() == str(cpu_shares.USUAL)
    shares.pytest_runtest_setup(item(LONGEST))
    assert given.read_text() == str(cpu_shares.OF_LONGEST)
    shares.pytest_runtest_setup(item("tests/unit/test_tree.py::test_one"))
    assert given.read_text() == str(cpu_shares.USUAL)


def test_a_group_is_named_after_its_process_and_removed_when_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    group = control_groups.join("cpu", tmp_path)
    assert (group / "cgroup.procs").read_text() in group.name
    # The kernel's folder has no files of ours: it can be removed once no process is in it.
    control_groups.remove_empty("cpu", tmp_path)
    assert group.exists()
    (group / "cgroup.procs").unlink()
    control_groups.remove_empty("cpu", tmp_path)
    assert not group.exists()


def test_a_process_is_in_the_group_that_it_joined() -> None:
    if not control_groups.may_join("cpu"):
        assert not control_groups.may_join("no-controller")
        return
    ran = subprocess.run([sys.executable, "-c", _JOINS], cwd=ROOT, capture_output=True, text=True, check=True)
    name, *seen = ran.stdout.split()
    assert seen == ["True", "True"]
    control_groups.remove_empty("cpu")
    assert not (Path("/sys/fs/cgroup/cpu") / name).exists()


def test_without_rights_a_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "may_join", lambda _controller: False)
    cpu_shares.register(SimpleNamespace())  # type: ignore[arg-type]
