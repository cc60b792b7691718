"""What `make test` does with failures: a second attempt, alone, says which tests are unsteady; a strict run has failed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import whole

#: Stands for pytest: notes how it was called, leaves what failed as pytest does, ends with the next code of a list.
_STAND_IN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
calls = folder / "calls"
said = calls.read_text().splitlines() if calls.exists() else []
calls.write_text("\\n".join([*said, " ".join(sys.argv[2:])]))
code, failed = json.loads((folder / "plan").read_text())[len(said)]
if failed:
    (folder / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
sys.exit(code)
"""


def run(folder: Path, *plan: tuple[int, list[str]], is_strict: bool = False) -> tuple[int, list[str]]:
    """The exit code, and the arguments of each call."""
    (folder / "plan").write_text(json.dumps(plan))
    stand_in = (sys.executable, "-c", _STAND_IN, str(folder))
    code = whole.run(folder / "lastfailed", stand_in, is_strict=is_strict)
    return code, (folder / "calls").read_text().splitlines()


def test_what_passes_is_run_once(tmp_path: Path) -> None:
    (tmp_path / "lastfailed").write_text('{"of another run": true}')
    code, calls = run(tmp_path, (0, []))
    assert (code, len(calls)) == (0, 1)


@pytest.mark.parametrize("is_strict", [False, True])
def test_what_passes_only_alone_is_named_and_fails_a_strict_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], is_strict: bool
) -> None:
    code, calls = run(tmp_path, (1, ["tests/a.py::test_one"]), (0, []), is_strict=is_strict)
    assert (code, len(calls)) == (1 if is_strict else 0, 2)
    assert "-n" in calls[0].split()
    assert "-n" not in calls[1].split()
    assert "--last-failed" in calls[1].split()
    assert capfd.readouterr().out.endswith("to mend):\n  tests/a.py::test_one\n")


def test_of_several_that_failed_those_are_named_that_pass_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(tmp_path, (1, ["tests/a.py::test_one", "tests/b.py::test_two"]), (1, ["tests/b.py::test_two"]))
    assert code == 1
    assert capfd.readouterr().out.endswith("to mend):\n  tests/a.py::test_one\n")


def test_what_fails_twice_is_not_called_unsteady(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failed = ["tests/a.py::test_one"]
    code, calls = run(tmp_path, (1, failed), (1, failed))
    assert (code, len(calls)) == (1, 2)
    assert "UNSTEADY" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        pytest.param(1, [f"test_{number}.py::test" for number in range(whole.AGAIN_MAX + 1)], id="too many"),
        pytest.param(1, [], id="nobody knows which"),
        pytest.param(2, ["test_one"], id="interrupted"),
        pytest.param(3, ["test_one"], id="pytest itself"),
    ],
)
def test_nothing_else_gets_a_second_attempt(tmp_path: Path, code: int, failed: list[str]) -> None:
    assert run(tmp_path, (code, failed))[0] == code
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_all_tests_of_a_file_that_share_a_failure_get_a_second_attempt(tmp_path: Path) -> None:
    failed = [f"test_one.py::test_{number}" for number in range(whole.AGAIN_MAX + 1)]
    assert run(tmp_path, (1, failed), (0, []))[0] == 0
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


def test_what_tests_write_is_in_memory_until_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    on_disk = _temporary()
    with whole.temporary_files(tmp_path, bytes_min=1):
        folder = _temporary()
        assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
        (folder / "left").touch()
    assert (folder / "left").exists()
    assert _temporary() == on_disk
    # Of a run that is over, and of one that is not.
    former = folder.rename(tmp_path / f"playhead-{os.getuid()}-{_ended()}")
    beside = tmp_path / f"playhead-{os.getuid()}-{os.getppid()}"
    beside.mkdir()
    with whole.temporary_files(tmp_path, bytes_min=1):
        assert list(_temporary().iterdir()) == []
        assert (former.exists(), beside.exists()) == (False, True)
        # No second folder of one name.
        monkeypatch.delenv("TMPDIR")
        with whole.temporary_files(tmp_path, bytes_min=1):
            assert _temporary() == on_disk
        monkeypatch.setenv("TMPDIR", str(on_disk))


@pytest.mark.parametrize(("memory", "bytes_min"), [("", 1 << 60), ("missing", 1)])
def test_where_memory_has_no_room_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str, bytes_min: int
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    on_disk = _temporary()
    with whole.temporary_files(tmp_path / memory, bytes_min=bytes_min):
        assert _temporary() == on_disk


def test_who_has_said_where_temporary_files_go_has_them_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    with whole.temporary_files(tmp_path, bytes_min=1):
        assert _temporary() == tmp_path / "own"


def _ended() -> int:
    """The id of a process that is over."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def _temporary() -> Path:
    """Where a process that starts now has its temporary files."""
    program = "import tempfile; print(tempfile.gettempdir())"
    return Path(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout[:-1])
