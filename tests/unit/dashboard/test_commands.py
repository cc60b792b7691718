"""The dashboard's commands about accounts: which there are, what they print, and their exit codes."""

import pytest

from services.dashboard import commands
from services.dashboard.settings import DashboardSettings

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
SETTINGS = DashboardSettings(postgres_dsn=NOWHERE, accounts_dsn=NOWHERE)


@pytest.mark.parametrize(("command", "begins_again"), [("login-link", False), ("begin-again", True)])
def test_a_link_is_printed_for_who_has_an_account(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, begins_again: bool
) -> None:
    asked = []

    def link(dsn: str, email: str, *, begins_again: bool = False) -> str | None:
        asked.append((dsn, email, begins_again))
        return "phl_link" if email == "ann@example.com" else None

    monkeypatch.setattr(commands, "login_link", link)
    assert commands.run(SETTINGS, [command, "ann@example.com"]) == 0
    assert capsys.readouterr().out.endswith("/login#phl_link\n")
    assert commands.run(SETTINGS, [command, "bob@example.com"]) == 1
    assert capsys.readouterr().out.startswith("bob@example.com has no account")
    assert asked == [(SETTINGS.accounts_address, f"{name}@example.com", begins_again) for name in ("ann", "bob")]


def test_what_is_no_command_names_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(SETTINGS, ["begin-again"]) == commands.EXIT_SETTINGS
    assert "begin-again ADDRESS" in capsys.readouterr().err
