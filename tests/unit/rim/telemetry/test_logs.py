"""The last line of a process is its own."""

import json
import subprocess
import sys
from typing import Final

import pytest

_PROGRAM: Final = """
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

#: A thread's line waits for the handler while the process says its last one.
_LATE: Final = """
import logging, threading
import structlog
from services.rim.telemetry import logs
from shared.settings import Settings

logs.configure("test", Settings(log_format="json"))
(handler,) = logging.getLogger().handlers
acquire, waits, is_over = handler.acquire, threading.Event(), threading.Event()

def late():
    if threading.current_thread() is thread:
        waits.set()
        is_over.wait()
    acquire()

handler.acquire = late
thread = threading.Thread(target=lambda: structlog.get_logger("thread").warning("after"))
thread.start()
waits.wait()
logs.only("process")
structlog.get_logger("process").error("failed")
is_over.set()
thread.join()
"""


def events(program: str) -> list[str]:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line)["event"] for line in ended.stderr.splitlines()]


@pytest.mark.thorough
def test_a_process_that_ends_is_heard_alone() -> None:
    assert events(_PROGRAM) == ["before", "failed"]


@pytest.mark.thorough
def test_a_line_that_waits_for_the_handler_comes_no_more_after_the_last_one() -> None:
    assert events(_LATE) == ["failed"]
