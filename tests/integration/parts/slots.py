"""Processor slots as processes of their own, for tests that kill them."""

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from deploy.local import process
from deploy.local.ports import free_port
from tests.chaos import logs
from tests.integration.parts.installed import variables

ROOT = Path(__file__).parents[3]
PROCESSOR = ("services.processor",)


def wait_until(condition: Callable[[], bool], what: str | Callable[[], str], seconds: float = 120.0) -> None:
    """Waits for a condition; fails with `what` when it does not come true in time: generous, for a busy machine."""
    began_at = time.monotonic()
    while not condition():
        waited = time.monotonic() - began_at
        assert waited < seconds, f"not within {seconds} s: {what if isinstance(what, str) else what()}"
        time.sleep(process.pause_after(waited))


class Slot:
    """One processor process. `environ` overrides its settings; `program` is what runs in place of the processor itself.

    `address` is where it is reached, `command` what its own command is an argument of, and `build` the folder of its code.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        number: int,
        *,
        program: tuple[str, ...] = PROCESSOR,
        address: str = "127.0.0.1",
        command: tuple[str, ...] = (),
        build: Path = ROOT,
        **environ: str,
    ) -> None:
        #: Of its next start.
        self.build = build
        self._address = address
        self._command = command
        self.bootstrap = bootstrap
        self.folder = folder
        self.number = number
        self._program = program
        self.admin_port = free_port()
        self.log_file = folder / f"slot-{number}.log"
        self.state_dir = folder / f"state-{number}"
        self._environ = {
            **os.environ,
            **variables(bootstrap),
            "PROCESSOR_SLOT": f"test/{number}",
            "PROCESSOR_STATE_DIR": str(self.state_dir),
            "PROCESSOR_ADMIN_HOST": address,
            "PROCESSOR_ADMIN_PORT": str(self.admin_port),
            "PROCESSOR_FLUSH_INTERVAL_MS": "500",
            **environ,
        }
        self._process: process.Running | None = None

    def start(self) -> None:
        """Starts the process."""
        with self.log_file.open("ab") as log:
            argv = [*self._command, sys.executable, "-m", *self._program]
            self._process = process.launch(argv, log.fileno(), self._environ, self.build, None)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_ready(self) -> bool:
        """Whether /readyz says yes."""
        try:
            with urllib.request.urlopen(f"http://{self._address}:{self.admin_port}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert self.is_running, f"slot {self.number} ended: {self.log_tail()}"
            return False

    def working(self) -> int:
        """How many partitions the slot works, as it says itself; 0 while it takes some.

        Its log says which it has ever taken: a group that divides in steps gives it some that it does not keep.
        """
        if not self.is_ready():
            return 0
        try:
            with urllib.request.urlopen(f"http://{self._address}:{self.admin_port}/readyz", timeout=5) as answer:
                status: str = answer.read().decode()
        except OSError:
            # It was ready a moment ago, and takes one since.
            return 0
        return int(status.split()[1]) if status.startswith("working") else 0

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        # To end takes CPU time, too.
        self._process.wait(60)

    def pause(self) -> None:
        """SIGSTOP: a virtual machine that stalls."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    def reached(self, point: str) -> bool:
        """Whether it came to the armed crash point (the last line before it kills or stops itself)."""
        return any(event["point"] == point for event in self.events("crash_point"))

    def arm(self, **environ: str) -> None:
        """Settings for the next start; an empty one is taken back."""
        self._environ = {name: value for name, value in (self._environ | environ).items() if value}

    def ended(self, seconds: float = 120.0) -> int:
        """Waits until it ends by itself; the exit code (negative: the signal's number)."""
        assert self._process is not None
        return self._process.wait(seconds)

    def stores_dir(self) -> Path:
        """Where the stores of its partitions lie, by partition number."""
        return self.folder / f"state-{self.number}" / "video_views" / f"test-{self.number}.0"

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(90)

    def end(self) -> None:
        """Makes sure that it is gone, in any state."""
        if self.is_running:
            self.kill()

    def events(self, name: str) -> list[dict[str, object]]:
        """What it logged under this event name, in whole lines: it may be writing one, and a kill cuts one in two."""
        return logs.events(self.log_file, name)

    def last_line(self) -> str:
        """The last line of its log."""
        return self.log_file.read_text().splitlines()[-1]

    def log_tail(self) -> str:
        """The end of its log."""
        return self.log_file.read_text()[-3000:]
