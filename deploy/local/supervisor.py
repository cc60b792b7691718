"""Starts the services of one machine as processes, watches them, and stops them in reverse order.

It ends only processes that it started, by pid. A process that ends unexpectedly is an error that stops all processes.
"""

import http.client
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, get_args

from deploy.local.leftovers import Leftovers
from deploy.local.process import Child, DeadlinePassed, ProcessDied
from services.processor.settings import ApplicationName
from shared.metrics import ServiceName

READY_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 30.0
_PROBE_SECONDS_MAX: Final = 2.0
_POLL_SECONDS: Final = 0.1
#: How the JVM ends on SIGTERM, which is a clean stop of the broker.
_ENDED_BY_SIGTERM: Final = 143

#: Playhead's settings in the caller's environment must not reach the processes: settings are passed explicitly.
_OUR_PREFIXES: Final = tuple(
    f"{name.upper()}_" for name in ("playhead", "database", *get_args(ServiceName), *get_args(ApplicationName))
)


@dataclass(frozen=True)
class Service:
    """One process to run: `python <arguments>` with `env` on top of the caller's environment."""

    name: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: The address of `/readyz`; None: ready as soon as it runs.
    admin_port: int | None = None
    ready_seconds: float = READY_SECONDS_MAX
    #: How long it may take to drain before it is killed.
    stop_seconds: float = STOP_SECONDS_MAX
    #: Whether the process has an end of its own: exit code 0 is then expected, any other still an error.
    ends: bool = False


@dataclass(frozen=True)
class Ending:
    """How one process ended when it was stopped. `clean`: by itself, in time, with nothing left behind."""

    name: str
    exit_code: int | None
    seconds: float
    clean: bool


@dataclass
class _Running:
    child: Child
    stop: Callable[[float], object]
    stop_seconds: float
    service: Service | None
    clean_codes: frozenset[int]
    #: Being ended on purpose: its end is no surprise.
    expected_to_end: bool = False


class Supervisor:
    """The processes of one run, in the order of their start. Logs go to `folder/logs/NAME.log`."""

    def __init__(self, folder: Path, *, cwd: Path | None = None) -> None:
        self._logs = folder / "logs"
        self._cwd = cwd
        self._running: dict[str, _Running] = {}
        self._leftovers = Leftovers(folder / "processes.json")

    @property
    def names(self) -> list[str]:
        """The processes in the order of their start."""
        return list(self._running)

    def pid(self, name: str) -> int | None:
        """The pid of a process."""
        return self._running[name].child.pid

    def log_file(self, name: str) -> Path:
        """Where a process's output goes."""
        return self._running[name].child.log_file

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process; None while it runs."""
        return self._running[name].child.exit_code

    def start(self, service: Service) -> None:
        """Starts the process and does not wait for it to be ready."""
        if service.name in self._running:
            raise ValueError(f"{service.name} is started already")
        child = Child(
            service.name,
            (sys.executable, *service.arguments),
            log_file=self._logs / f"{service.name}.log",
            env=environment(service.env),
            folder=self._cwd,
        )
        child.start()
        self._add(_Running(child, child.stop, service.stop_seconds, service, frozenset({0})))

    def adopt(self, child: Child, stop: Callable[[float], object], stop_seconds: float = STOP_SECONDS_MAX) -> None:
        """Takes over the watching and stopping of a process that runs already and is ready (broker, Postgres)."""
        self._add(_Running(child, stop, stop_seconds, None, frozenset({0, _ENDED_BY_SIGTERM})))

    def wait_ready(self, *names: str) -> None:
        """Returns when all of `names` are ready; raises `ProcessDied` or `DeadlinePassed`."""
        for name in names:
            service = self._running[name].service
            if service is not None and service.admin_port is not None:
                self.wait(partial(is_ready, service.admin_port), service.ready_seconds, f"{name} ready", about=name)

    def wait(
        self,
        condition: Callable[[], bool],
        seconds: float,
        what: str,
        *,
        about: str | None = None,
        every: float = _POLL_SECONDS,
    ) -> None:
        """Returns when `condition` holds, which is asked `every` so many seconds. Raises `ProcessDied` when any process ends
        unexpectedly meanwhile, `DeadlinePassed` naming `what` (and the last words of process `about`) after `seconds`."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() >= deadline:
                last = "" if about is None else f"; the end of its log:\n{self._running[about].child.log_tail()}"
                raise DeadlinePassed(f"{what}: not within {seconds:g} s{last}")
            time.sleep(every)

    def check(self) -> None:
        """Raises `ProcessDied` with name, exit code and last log lines when a process ended that should run."""
        for running in self._running.values():
            code = running.child.exit_code
            done = running.service is not None and running.service.ends and code == 0
            if code is not None and not running.expected_to_end and not done:
                raise ProcessDied(running.child.obituary())

    def kill(self, name: str) -> None:
        """SIGKILL of one process, on purpose."""
        running = self._running[name]
        running.expected_to_end = True
        running.child.kill()

    def stop_one(self, name: str) -> Ending:
        """Stops one process cleanly, on purpose; kills it past its deadline."""
        return self._stop(name, self._running[name])

    def restart(self, name: str) -> None:
        """Starts a process again that was killed or stopped; stops it first when it runs."""
        running = self._running[name]
        if running.child.is_running:
            self._stop(name, running)
        running.child.start()
        running.expected_to_end = False
        self._record()

    def stop(self) -> list[Ending]:
        """Stops everything in reverse order, each under its deadline; how each ended. Safe to call twice."""
        endings = []
        while self._running:
            name, running = self._running.popitem()
            endings.append(self._stop(name, running))
        self._leftovers.clear()
        return endings

    def _add(self, running: _Running) -> None:
        self._running[running.child.name] = running
        self._record()

    def _record(self) -> None:
        self._leftovers.record({name: running.child.pid for name, running in self._running.items()})

    def _stop(self, name: str, running: _Running) -> Ending:
        died_before = running.child.exit_code is not None and not running.expected_to_end
        running.expected_to_end = True
        began = time.monotonic()
        running.stop(running.stop_seconds)
        code = running.child.exit_code
        done = running.service is not None and running.service.ends
        clean = code in running.clean_codes and (done or not died_before)
        return Ending(name, code, time.monotonic() - began, clean)


def is_ready(admin_port: int) -> bool:
    """Whether the service with this admin port on this machine answers `/readyz` with 200."""
    with closing(http.client.HTTPConnection("127.0.0.1", admin_port, timeout=_PROBE_SECONDS_MAX)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without any setting of Playhead's, and `ours`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OUR_PREFIXES)}
    return inherited | {"PYTHONUNBUFFERED": "1"} | dict(ours)
