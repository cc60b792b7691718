"""The processor runs the application that its settings name."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest
import structlog

from services.processor import program as processor
from services.processor.engine.application.application import Application
from services.processor.settings import ApplicationName
from shared.settings import SettingsError


def test_every_application_that_can_be_named_is_there_under_its_name() -> None:
    assert set(processor.APPLICATIONS) == set(get_args(ApplicationName))
    assert {name: make({}).name for name, make in processor.APPLICATIONS.items()} == {
        name: name for name in processor.APPLICATIONS
    }


def test_the_application_that_the_settings_name_is_made_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(environ: Mapping[str, str]) -> Application:
        raise SettingsError(f"made for {environ['PROCESSOR_SLOT']}")

    # No build is chosen here, also where the tests run on the compiled one.
    monkeypatch.setenv("PROCESSOR_COMPILED", "auto")
    monkeypatch.setenv("PROCESSOR_APPLICATION", "video_views")
    monkeypatch.setenv("PROCESSOR_SLOT", "test/0")
    monkeypatch.setitem(processor.APPLICATIONS, "video_views", refuse)

    assert processor.main() == 2
    assert capsys.readouterr().err == "processor: made for test/0\n"


#: A slot whose topics are as `wrong` says, and whose clients still log when it has ended.
SLOT = """
import logging, sys
from services.processor import program as slot

def verify(*_):
    if len(sys.argv) > 1:
        raise slot.TopicsWrong(sys.argv[1])

slot.verify_topics = verify
code = slot.main()
logging.getLogger("librdkafka").error("connection refused")
slot.leave(code)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("wrong", "event"), [((), "cannot_listen"), (("beacons is missing",), "topics_wrong")])
def test_a_slot_that_cannot_begin_says_so_in_its_last_line(tmp_path: Path, wrong: tuple[str, ...], event: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {
            "PROCESSOR_APPLICATION": "video_views",
            "PROCESSOR_SLOT": "test/0",
            "PROCESSOR_COMPILED": "auto",
            "PROCESSOR_STATE_DIR": str(tmp_path),
            "PROCESSOR_ADMIN_HOST": "127.0.0.1",
            "PROCESSOR_ADMIN_PORT": str(taken.getsockname()[1]),
        }
        command, out = [sys.executable, "-c", SLOT, *wrong], subprocess.PIPE
        ended = subprocess.run(
            command, env=os.environ | settings, stdout=out, stderr=subprocess.STDOUT, text=True, check=False
        )
    last = ended.stdout.splitlines()[-1]
    assert ended.returncode == 3, ended.stdout
    assert event in last
    assert (wrong[0] if wrong else "already in use") in last


def test_a_server_that_cannot_be_stopped_keeps_no_other_from_it_and_is_said() -> None:
    stopped: list[str] = []

    def breaks() -> None:
        raise RuntimeError("no thread")

    with structlog.testing.capture_logs() as said:
        processor._stop_each(structlog.get_logger(), breaks, lambda: stopped.append("admin"))
    assert stopped == ["admin"]
    assert [one["event"] for one in said] == ["stop_failed"]


def test_an_application_that_nobody_knows_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROCESSOR_APPLICATION", "nonsense")

    assert processor.main() == 2
    assert "PROCESSOR_APPLICATION" in capsys.readouterr().err
