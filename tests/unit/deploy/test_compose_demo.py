"""What `make compose-demo` refuses before it starts or deletes anything, and what it removes first."""

import signal
from pathlib import Path

import pytest

from deploy.demo.display import Display
from deploy.demo.run import EXIT_DIED
from deploy.demo.viewers.crowd import Players
from deploy.images import demo
from deploy.images.stack import ComposeFailed, Stack


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--views", "0"], "--views is 1 to 2000"),
        (["--views", "2001"], "--views is 1 to 2000"),
        (["--seconds", "5"], "--seconds is 20 to 600"),
    ],
)
def test_what_no_run_can_be_is_refused(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        demo.main(["--folder", str(tmp_path / "demo"), *arguments])

    assert refused.value.code == 2
    assert expected in capsys.readouterr().err


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos").write_text("mine")

    with pytest.raises(SystemExit):
        demo.main(["--folder", str(tmp_path)])

    assert "holds something else" in capsys.readouterr().err
    assert (tmp_path / "photos").read_text() == "mine"


class Recorded(Stack):
    """A stack without docker, which does not come up."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "none")
        self.done: list[str] = []

    def up(self, *services: str) -> None:
        self.done.append("up")
        raise ComposeFailed("no docker here")

    def down(self) -> None:
        assert (self.folder / "overrides.json").exists()
        self.done.append("down")


def test_what_a_killed_run_has_left_is_removed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    stack = Recorded(tmp_path)
    assert demo.drive(stack, Players(1, 20, 7), Display()) == EXIT_DIED
    assert stack.done == ["down", "up", "down"]
