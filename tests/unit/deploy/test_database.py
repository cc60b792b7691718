"""The command that makes the database says why it could not."""

import pytest

from deploy import database


def test_a_database_that_cannot_be_reached_is_no_wrong_database(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Nobody listens on port 1.
    monkeypatch.setenv("DATABASE_DSN", "postgresql://someone:secret@127.0.0.1:1/playhead")
    monkeypatch.setenv("DATABASE_FINALIZER_PASSWORD", "f" * 16)
    assert database.main() == 1
    said = capsys.readouterr().err
    assert "cannot connect to the database, or not log in" in said
    assert not {"someone", "secret", "127.0.0.1", "must be:"} & set(said.replace(":", ": ").split())
