"""The file of a compose stack's secrets: made once, then only added to."""

from pathlib import Path

import pytest

from deploy.images.environment import DATABASE_USERS, complete, made, main
from deploy.local.paths import ROOT
from services.rim.http.credentials import entry


def of(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if line and not line.startswith("#"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "compose.env"


def test_the_first_run_makes_every_secret_for_its_owner_alone(file: Path) -> None:
    assert main([str(file)]) == 0
    assert of(file).keys() == made().keys()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in file.parent.iterdir()] == ["compose.env"]


def test_a_second_run_changes_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(file)])
    before = file.read_bytes(), file.stat().st_ino
    assert main([str(file)]) == 0
    assert (file.read_bytes(), file.stat().st_ino) == before
    assert capsys.readouterr().out.endswith("nothing was changed\n")


def test_a_file_of_an_earlier_version_keeps_its_values_and_gets_what_is_new(file: Path) -> None:
    before = made()
    operator = entry("support", ["lookups"], "a token of the operator's own")
    earlier = {
        name: value for name, value in before.items() if name not in {"COLLECTOR_PASSWORD", "QUERY_LOOKUP_TOKEN"}
    }
    earlier["LOOKUP_CREDENTIALS"] = f"{operator} {before['LOOKUP_CREDENTIALS'].split()[0]}"
    lines = ["# of our machine", "COLLECTOR_0_PORT=18080", "QUERY_PASSWORD=", *(f"{k}={v}" for k, v in earlier.items())]
    lines.remove(f"QUERY_PASSWORD={earlier.pop('QUERY_PASSWORD')}")
    file.write_text("\n".join(lines))
    assert set(complete(file)) == {
        "COLLECTOR_PASSWORD", "QUERY_LOOKUP_TOKEN", "QUERY_PASSWORD", "LOOKUP_CREDENTIALS"
    }  # fmt: skip
    after = of(file)
    credentials = earlier.pop("LOOKUP_CREDENTIALS")
    assert earlier.items() <= after.items()
    assert after["COLLECTOR_0_PORT"] == "18080"
    assert file.read_text().startswith("# of our machine\n")
    assert all(len(after[f"{user}_PASSWORD"]) == 32 for user in DATABASE_USERS)
    query = entry("query", ["lookups"], after["QUERY_LOOKUP_TOKEN"])
    assert after["LOOKUP_CREDENTIALS"].split() == [*credentials.split(), query]
    assert len(file.read_text().splitlines()) == len(after) + 1
    assert complete(file) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none" / "compose.env")]) == 1
    assert "compose.env.new: No such file or directory" in capsys.readouterr().err


def test_the_file_of_the_document_is_neither_in_git_nor_removed_by_make_clean() -> None:
    assert "/compose.env" in (ROOT / ".gitignore").read_text().splitlines()
    document = (ROOT / "docs/images.md").read_text()
    assert "deploy.images.environment compose.env\n" in document
    assert ".local/compose.env" not in document
