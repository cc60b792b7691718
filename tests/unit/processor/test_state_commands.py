"""Commands on state: which arguments go together, and that each line of docs/state.md is understood."""

import argparse
import shlex

import pytest

from services.processor import commands, state_commands
from services.processor.state_commands import time_ms
from tests.documents import all_blocks

_DOC = "docs/state.md"
PREFIX = ["python", "-m", "services.processor"]


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    state_commands.add_to(parser.add_subparsers(dest="command"))
    asked = parser.parse_args(arguments)
    state_commands.check(parser, asked)
    return asked


def lines() -> list[list[str]]:
    """The commands that the page shows, without variables before them."""
    found = []
    for block in all_blocks():
        if block.document == _DOC:
            for line in block.text.splitlines():
                words = shlex.split(line, comments=True)
                found.append([word for word in words if "=" not in word])
    return [words for words in found if words[:3] == PREFIX]


def test_every_command_that_the_page_shows_is_understood() -> None:
    shown = [parsed(*words[3:]) for words in lines()]
    assert {asked.act for asked in shown} == {"export", "import", "reset", "skip", "replay", "read", "delete"}
    assert {asked.act for asked in shown if getattr(asked, "dry_run", False)} == {
        "export",
        "import",
        "reset",
        "skip",
        "delete",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        "state",
        "state export",
        "state import --from /tmp/saved",
        "state reset --inputs elsewhere",
        "state skip beacons",
        "state skip beacons --to-offset 5",
        "state skip beacons --to-offset 5 --partition 1 --partition 2",
        "state skip beacons --to-beginning",
        "state replay beacons --to-time 2026-11-23T04:00:00",
        "state replay beacons --to-beginning --to-offset 5",
        "state read",
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.run(arguments.split())
    assert ended.value.code == 2
    assert "usage: python -m services.processor" in capsys.readouterr().err


def test_a_time_has_a_time_zone() -> None:
    assert time_ms("1970-01-01T00:00:01Z") == 1_000
    with pytest.raises(argparse.ArgumentTypeError, match="no time zone"):
        time_ms("1970-01-01T00:00:01")
