"""A child process gets one stop signal, for any number of calls."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local import ports
from deploy.local.process import Child


def test_a_child_gets_one_stop_signal_in_its_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = subprocess.Popen.send_signal

    def noted(process: "subprocess.Popen[bytes]", number: int) -> None:
        sent.append(number)
        send(process, number)

    monkeypatch.setattr(subprocess.Popen, "send_signal", noted)
    child = Child("sleeper", [sys.executable, "-c", "import signal; signal.pause()"], log_file=tmp_path / "log")
    for _ in range(2):
        child.start()
        child.ask_to_stop()
        child.ask_to_stop()
        assert child.stop(60) == -signal.SIGTERM
    assert sent == [signal.SIGTERM] * 2


def test_ports_are_taken_from_the_range_that_was_given_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Below all that other tests take.
    monkeypatch.setenv(ports.RANGE_VARIABLE, "14000-14003")
    assert {ports.free_port() for _ in range(3)} < set(range(14_000, 14_004))
    monkeypatch.setenv(ports.RANGE_VARIABLE, "14004-14004")
    assert ports.free_port() == 14_004
    with pytest.raises(OSError, match="no free port found between 14004 and 14004"):
        ports.free_port()
    monkeypatch.setenv(ports.RANGE_VARIABLE, "many")
    with pytest.raises(ValueError, match="invalid literal"):
        ports.free_port()
