"""What processes of a local run get of the caller's environment, and where they find its Postgres."""

import os
import tempfile
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from deploy.local import postgres
from deploy.local.postgres import Postgres
from deploy.local.supervisor import environment
from deploy.settings_doc import GROUPS


def test_no_setting_of_the_callers_environment_reaches_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for group in GROUPS.values():
        monkeypatch.setenv(f"{group.PREFIX}ADMIN_PORT", "1")
    monkeypatch.setenv("OF_THE_CALLER", "stays")
    found = environment({"QUERY_PORT": "8093"})
    assert {name for name in found if name.endswith("ADMIN_PORT")} == set()
    assert (found["OF_THE_CALLER"], found["QUERY_PORT"]) == ("stays", "8093")


def test_a_folder_of_temporary_files_with_a_blank_is_one_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "of mine"))
    found = conninfo_to_dict(Postgres(tmp_path).dsn_of("playhead"))
    assert Path(str(found["host"])).parent == tmp_path / "of mine"
    assert found["dbname"] == "playhead"


def test_what_root_starts_as_nobody_is_reached_outside_of_roots_own_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    host = conninfo_to_dict(Postgres(tmp_path).dsn)["host"]
    assert Path(str(host)).parent == postgres._ROOT_HOME
