"""The last line of a process is its own."""

import subprocess
import sys

_PROGRAM = """
import structlog
from services.rim.telemetry import logs
from shared.settings import Settings

logs.configure("test", Settings(log_format="json"))
structlog.get_logger("thread").info("before")
logs.only("process")
structlog.get_logger("process").error("failed")
structlog.get_logger("thread").warning("after")
structlog.get_logger("process.part").warning("after")
"""


def test_a_process_that_ends_is_heard_alone() -> None:
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert [line.split('"event": "')[1].split('"')[0] for line in ended.stderr.splitlines()] == ["before", "failed"]
