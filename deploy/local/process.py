"""One child process with its own log file: start, wait, stop by pid, and read its last output."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

TAIL_LINES: Final = 20
#: How much of the end of a log is read to find its last lines, bytes.
_TAIL_BYTES: Final = 64 * 1024
#: Between two looks at a condition: at first, and at the most. To look may cost more than what is waited for.
_POLL_SECONDS: Final = 0.05
_POLL_SECONDS_MAX: Final = 0.5
#: In between it is this share of the time waited so far, so that nothing is seen much later than it is there.
_POLL_SHARE: Final = 0.1


class ProcessDied(RuntimeError):
    """A process that should run has ended; the text says which, how, and the last lines of its log."""


class DeadlinePassed(RuntimeError):
    """What was waited for did not come in time; the text says what, and how long it was waited for."""


def pause_after(waited: float) -> float:
    """How long to pause before a condition is looked at again that was waited for so long, in seconds."""
    return min(_POLL_SECONDS_MAX, max(_POLL_SECONDS, _POLL_SHARE * waited))


def wait_until(condition: Callable[[], bool], seconds: float, what: str, *, every: float | None = None) -> None:
    """Returns as soon as `condition` holds; raises `DeadlinePassed` naming `what` after `seconds`.

    It looks `every` so many seconds; by default less often as time goes by (`pause_after`).
    """
    began_at = time.monotonic()
    while not condition():
        waited = time.monotonic() - began_at
        if waited >= seconds:
            raise DeadlinePassed(f"{what}: not within {seconds:g} s")
        time.sleep(pause_after(waited) if every is None else every)


class Running(Protocol):
    """What is needed of a `subprocess.Popen`."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


def new_process(
    argv: Sequence[str], output: int, env: Mapping[str, str], folder: Path | None, user: int | None
) -> Running:
    """Starts `argv` in a session of its own; its output goes to the open file `output`."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=folder,
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=None if user is None else (),
    )


#: How a `Child` starts; the tests replace it.
launch = new_process


class Child:
    """A child process. Its output is appended to `log_file`; it is ended only by its own pid.

    It gets a session of its own, so that Ctrl-C in a terminal reaches the starter alone, which stops its children in
    order.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log_file: Path,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        user: int | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.log_file = log_file
        self._env = dict(os.environ if env is None else env)
        self._folder = folder
        self._user = user
        self._stop_signal = stop_signal
        self._process: Running | None = None
        self._asked = False

    @property
    def pid(self) -> int | None:
        """The process id; None when it was never started."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How the process ended (negative: the signal's number); None while it runs or when it was never started."""
        return None if self._process is None else self._process.poll()

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the process; raises `RuntimeError` when it runs already, `OSError` when it cannot be started."""
        if self.is_running:
            raise RuntimeError(f"{self.name} runs already as pid {self.pid}")
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self._asked = False
        with self.log_file.open("ab") as log:
            self._process = launch(self.argv, log.fileno(), self._env, self._folder, self._user)

    def stop(self, seconds: float) -> int | None:
        """Asks the process to end, kills it after `seconds`; its exit code, or None when it was never started.

        Safe to call twice, and on a process that has ended already.
        """
        self.ask_to_stop()
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.exit_code

    def ask_to_stop(self) -> None:
        """Sends the stop signal and does not wait.

        Only once: a second one may meet an interpreter that is ending and handles signals no longer, and kill it.
        """
        if self._process is not None and not self._asked:
            self._asked = True
            self._process.send_signal(self._stop_signal)

    def kill(self) -> None:
        """SIGKILL, and waits until the process is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, for example SIGSTOP in a test."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait_until(
        self, condition: Callable[[], bool], seconds: float, what: str, *, every: float | None = None
    ) -> None:
        """Returns as soon as `condition` holds; `ProcessDied` when the process ends first, `DeadlinePassed` when late.

        It looks as the function of this name does.
        """

        def holds_while_running() -> bool:
            if condition():
                return True
            if not self.is_running:
                raise ProcessDied(self.obituary())
            return False

        try:
            wait_until(holds_while_running, seconds, f"{self.name}: {what}", every=every)
        except DeadlinePassed as late:
            raise DeadlinePassed(f"{late}; {self._last_words()}") from None

    def obituary(self) -> str:
        """How the process ended, and the end of its output."""
        return f"{self.name} ended with exit code {self.exit_code}; {self._last_words()}"

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of the log."""
        return tail(self.log_file, lines)

    def _last_words(self) -> str:
        return f"the end of {self.log_file}:\n{self.log_tail() or '(empty)'}"


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last `lines` lines of a text file; empty if the file does not exist."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])
