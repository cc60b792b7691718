"""CPU and memory of a process with children, some of which are gone by the time they are looked at."""

import os
import subprocess
import sys

import pytest

from bench.processor import measure


def test_a_child_that_ends_while_it_is_looked_at_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    # Other tests of this process may have left children of its own.
    monkeypatch.setattr(measure, "_children", lambda _pid: [])
    alone = measure.cpu_seconds(os.getpid())
    monkeypatch.setattr(measure, "_children", lambda pid: [gone.pid] if pid == os.getpid() else [])
    assert measure.cpu_seconds(os.getpid()) >= alone
    assert measure.rss_bytes(os.getpid()) > 0
