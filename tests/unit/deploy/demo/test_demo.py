"""The demo command's exit code: only a difference is reported as one."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import KafkaError, KafkaException
from deltalake.exceptions import DeltaError

from deploy.demo import __main__ as demo
from deploy.demo import run
from deploy.local.process import ProcessDied


class FakeDemo:
    """A run that ends with `outcome`: an exit code, or the error raised."""

    def __init__(self, outcome: int | Exception) -> None:
        self._outcome = outcome
        self.stopped = False

    def run(self, *, keep: bool) -> int:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def stop(self) -> bool:
        self.stopped = True
        return True


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """The command sets handlers for its whole process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (run.EXIT_OK, run.EXIT_OK),
        (run.EXIT_DIFFERS, run.EXIT_DIFFERS),
        (ProcessDied("processor-0 ended with exit code -9"), run.EXIT_DIED),
        (psycopg.OperationalError("connection refused"), run.EXIT_DIED),
        (DeltaError("no such file"), run.EXIT_DIED),
        (OSError("no space left on device"), run.EXIT_DIED),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT)), run.EXIT_DIED),
    ],
)
def test_an_error_is_no_difference_and_everything_is_stopped(
    outcome: int | Exception, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = FakeDemo(outcome)
    monkeypatch.setattr(run, "Demo", lambda *_: fake)

    assert demo.main(["--folder", str(tmp_path / "demo")]) == code
    assert fake.stopped


def test_a_folder_that_cannot_be_made_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()

    assert demo.main(["--folder", str(tmp_path / "file" / "demo")]) == run.EXIT_DIED
    assert "FileExistsError" in capsys.readouterr().err
