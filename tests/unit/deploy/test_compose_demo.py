"""What `make compose-demo` refuses before it starts or deletes anything."""

from pathlib import Path

import pytest

from deploy.images import demo


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
