"""What `make test` does with failures: a second attempt, alone, says which tests are unsteady; a strict run has failed."""

import json
import sys
from pathlib import Path

import pytest

from tests.suite import whole

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
