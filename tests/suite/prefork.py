"""Starts programs of this project in processes whose imports are done.

A slot imports 800 modules, which costs more CPU time than what most tests make it do. A process a program and build, the template
(`tests/suite/forking.py`), imports them once in a run; each start is then a fork of it. A fork has memory, signals, environment,
files and an id of its own, as any process. It is in the control groups of the process that has asked for it. The template has one
thread and has run nothing but imports. Only `python -m` of a module of this project, or of another build of it, is started so.

All processes of a run share the templates: the first that needs one starts it. It ends, and its forks with it, when the process
ends that has begun the run.

The template is the parent: it collects exit codes, and it sends signals, so that an id that was given out again is never hit.
"""

import array
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deploy.local.process import Running, new_process

_ROOT: Final = Path(__file__).parents[2]
#: Read by the interpreter, the linker, the C library, or with the imports, so that a fork would not see a change.
READ_AT_START: Final = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_", "LANG", "PROCESSOR_COMPILED", "COLLECTOR_COMPILED")
#: The one of these names that a fork heeds (`tests/suite/forking.py`).
_UNBUFFERED: Final = "PYTHONUNBUFFERED"
#: Packages whose modules may be imported before they are run.
_OURS: Final = ("services", "deploy", "loadtest", "tests")
_BYTES_MAX: Final = 1 << 20
_POLL_SECONDS: Final = 0.02
#: Names the folder of the sockets of the run's templates.
VARIABLE: Final = "TEMPLATES_DIR"
#: The socket that only the process has which has begun the run: a template is connected to it, and so notices its end.
_RUN: Final = "run"
_CLIENTS_MAX: Final = 512
#: By process, for a fork must not read what its parent has asked for, and by the name of the template.
_templates: dict[tuple[int, str], "Template"] = {}
_one_at_a_time = threading.Lock()
#: What this process has started.
_started: list[subprocess.Popen[bytes]] = []


class Forked:
    """A started process, with the methods of `subprocess.Popen` that the tests use."""

    def __init__(self, template: "Template", pid: int, fork: int) -> None:
        self._template = template
        self._fork = fork
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended (negative: the signal's number); None while it runs."""
        if self.returncode is None:
            self.returncode = self._template.ask({"poll": self._fork})["code"]
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises `subprocess.TimeoutExpired` after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout or 0.0)
            time.sleep(_POLL_SECONDS)
        return code

    def send_signal(self, sig: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.returncode is None:
            self._template.ask({"signal": int(sig), "fork": self._fork})

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Template:
    """The process that has imported `module` of the build in a folder, seen from the tests."""

    def __init__(self, module: str, build: Path, name: str) -> None:
        self._module = module
        self._socket, self._log_file = _connected(module, build, name)
        self._one_at_a_time = threading.Lock()
        self._asked = 0
        self.has_ended = False

    def ask(self, request: Mapping[str, object], *files: int) -> dict[str, Any]:
        """One request, answered. Raises `RuntimeError` when the template has ended or could not do it."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        with self._one_at_a_time:
            self._asked += 1
            number = f"{os.getpid()}/{self._asked}"
            # Of a template that has ended; its socket is closed when that was seen.
            with suppress(OSError):
                self._socket.sendmsg([json.dumps({**request, "number": number}).encode()], rights)
                while answer := self._socket.recv(_BYTES_MAX):
                    found: dict[str, Any] = json.loads(answer)
                    # An earlier answer was not read where a signal had ended the wait for it.
                    if found["number"] == number:
                        if "error" in found:
                            raise RuntimeError(f"no fork of {self._module}: {found['error']}")
                        return found
            self.has_ended = True
            self._socket.close()
        raise RuntimeError(f"the template of {self._module} has ended: {self._log_file.read_text()[-2_000:]}")


def start(
    argv: Sequence[str], output: int, env: Mapping[str, str], folder: Path | None = None, user: int | None = None
) -> Running:
    """Starts `argv` with its output in the file `output`: as a fork where that is the same as a new interpreter."""
    module = argv[2] if user is None and list(argv[:2]) == [sys.executable, "-m"] else ""
    if not _forkable(module, env):
        return new_process(argv, output, env, folder, user)
    build = folder if folder is not None and _has_own(module, folder) else _ROOT
    template = template_of(module, build)
    request = {"arguments": argv[3:], "env": dict(env), "folder": str(folder or Path.cwd())}
    forked = template.ask(request, output)
    return Forked(template, forked["pid"], forked["fork"])


def template_of(module: str, build: Path = _ROOT) -> Template:
    """The template of a module, which is made at the first request of the run."""
    read = sorted((name, value) for name, value in os.environ.items() if name.startswith(READ_AT_START))
    name = hashlib.sha256(repr((module, str(build), read)).encode()).hexdigest()[:16]
    key = (os.getpid(), name)
    with _one_at_a_time:
        if key not in _templates or _templates[key].has_ended:
            _templates[key] = Template(module, build, name)
        return _templates[key]


class Run:
    """Begins a run, unless this process is of one; `end` ends its templates."""

    def __init__(self) -> None:
        self._folder = None if VARIABLE in os.environ else Path(tempfile.mkdtemp(prefix="templates-"))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self._folder is not None:
            self._socket.bind(str(self._folder / _RUN))
            # Who connects is never answered.
            self._socket.listen(_CLIENTS_MAX)
            os.environ[VARIABLE] = str(self._folder)

    def end(self) -> None:
        """Ends what this process has begun."""
        self._socket.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.environ.pop(VARIABLE, None)


def _connected(module: str, build: Path, name: str) -> tuple[socket.socket, Path]:
    """A connection to the template, which is started unless it runs, and its log."""
    folder = Path(os.environ[VARIABLE])
    address, log_file = folder / name, folder / f"{name}.log"
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            ours.connect(str(address))
        except (FileNotFoundError, ConnectionRefusedError):
            # What has ended, or was never started, may have left its address.
            address.unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as its, log_file.open("ab") as log:
                its.bind(str(address))
                its.listen(_CLIENTS_MAX)
                _started.append(
                    subprocess.Popen(
                        [
                            sys.executable,
                            str(_ROOT / "tests/suite/forking.py"),
                            module,
                            str(its.fileno()),
                            str(folder / _RUN),
                        ],
                        cwd=build,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        pass_fds=[its.fileno()],
                        start_new_session=True,
                    )
                )
                ours.connect(str(address))
    return ours, log_file


def _forkable(module: str, environ: Mapping[str, str]) -> bool:
    if module.partition(".")[0] not in _OURS:
        return False
    names = {name for name in environ.keys() | os.environ.keys() if name.startswith(READ_AT_START)} - {_UNBUFFERED}
    return all(environ.get(name) == os.environ.get(name) for name in names)


def _has_own(module: str, folder: Path) -> bool:
    """Whether the module is another one there: that of another build."""
    return folder != _ROOT and (folder / module.partition(".")[0]).exists()
