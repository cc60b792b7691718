"""The template process of `tests.suite.prefork`: `forking.py MODULE FD RUN` imports the module, then forks by request.

Requests come by connections to the socket FD. It ends with the process that has the socket RUN.

It imports what the folder that it runs in has, which may be another build. So it uses nothing of this project itself.
"""

import array
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import io
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any, Final

_BYTES_MAX: Final = 1 << 20
#: `PR_SET_PDEATHSIG` of Linux's prctl(2).
_SET_SIGNAL_OF_PARENTS_DEATH: Final = 1
#: What tests have groups of (`tests/suite/control_groups.py`), and where.
_GROUPED: Final = frozenset({"cpu", "cpuacct"})
_GROUPS: Final = Path("/sys/fs/cgroup")


class _Server:
    """Answers what clients ask, each at its own connection."""

    def __init__(self, listener: socket.socket, run: socket.socket) -> None:
        self._listener = listener
        self._run = run
        self._clients: dict[int, socket.socket] = {}
        #: Of forks that run, by process id: their numbers. An id may be given out again, a number is not.
        self._running: dict[int, int] = {}
        #: Of forks that have ended, by number.
        self._codes: dict[int, int] = {}
        self._count = 0

    def serve(self) -> dict[str, Any]:
        """Returns in a fork alone, with the request that it is for. Ends this process with the run."""
        while True:
            ready, _, _ = select.select([self._run, self._listener, *self._clients.values()], (), ())
            if self._run in ready:
                os._exit(0)
            if self._listener in ready:
                client, _ = self._listener.accept()
                self._clients[client.fileno()] = client
                continue
            # One after the other, so that a fork has no request of another client in its hands.
            client = ready[0]
            # A client may end at any moment, as in a test that kills one.
            with contextlib.suppress(ConnectionError):
                message, control, _, _ = client.recvmsg(_BYTES_MAX, socket.CMSG_SPACE(4))
                if message:
                    request = json.loads(message)
                    answer = self._answered(request, control, client)
                    if answer is None:
                        return dict(request)
                    client.send(json.dumps({**answer, "number": request["number"]}).encode())
                    continue
            del self._clients[client.fileno()]
            client.close()

    def _answered(
        self, request: dict[str, Any], control: list[tuple[int, int, bytes]], client: socket.socket
    ) -> dict[str, Any] | None:
        """None in a fork."""
        self._collect()
        if "poll" in request:
            return {"code": self._codes.get(request["poll"])}
        if "signal" in request:
            for pid, number in self._running.items():
                if number == request["fork"]:
                    os.kill(pid, request["signal"])
            return {}
        (output,) = [number for _, _, data in control for number in array.array("i", data)]
        template = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(output)
            return {"error": str(error)}
        if pid == 0:
            _end_with(template)
            request["output"] = output
            _join_groups(_pid_of(client))
            for one in (self._run, self._listener, *self._clients.values()):
                one.close()
            return None
        os.close(output)
        self._count += 1
        self._running[pid] = self._count
        return {"pid": pid, "fork": self._count}

    def _collect(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._codes[self._running.pop(pid)] = os.waitstatus_to_exitcode(status)


def _end_with(template: int) -> None:
    """In a fork: it ends with the template, which ends with the tests. Nothing is left behind by a run that is killed."""
    ctypes.CDLL(None).prctl(_SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != template:
        # It has ended meanwhile.
        os._exit(1)


def _pid_of(client: socket.socket) -> int:
    """Who has connected (`SO_PEERCRED`, unix(7))."""
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid


def _join_groups(pid: int) -> None:
    """Joins the control groups (cgroup v1) of a process, as its child would be in them: the template is in others."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        # In a container the path is that of the host; tests make their groups at the top.
        name = group.rpartition("/")[2]
        for one in set(controllers.split(",")) & _GROUPED:
            with contextlib.suppress(OSError):
                (_GROUPS / one / name / "cgroup.procs").write_text("0")


def _become(module: str, request: dict[str, Any]) -> None:
    """Turns a fork into what `python -m module` is just before it runs the module."""
    os.setsid()
    os.chdir(request["folder"])
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (request["output"], 1), (request["output"], 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(request["output"])
    os.environ.clear()
    os.environ.update(request["env"])
    if isinstance(sys.stdout, io.TextIOWrapper):
        # To a file output goes out by the block else.
        sys.stdout.reconfigure(line_buffering="PYTHONUNBUFFERED" in os.environ)
    time.tzset()
    sys.argv = [module, *request["arguments"]]
    sys.path[0] = request["folder"]


def main() -> None:
    """Imports the module's parts, then forks by request from the socket FD while there is RUN."""
    module, descriptor, of_run = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    run = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    run.connect(of_run)
    # In place of the folder of this file.
    sys.path[0] = str(Path.cwd())
    found = importlib.util.find_spec(module)
    program = f"{module}.__main__" if found is not None and found.submodule_search_locations else module
    importlib.import_module(program)
    del sys.modules[program]
    if "pyarrow" in sys.modules:
        # Where pandas is installed, the first array imports it.
        sys.modules["pyarrow"].array([])
    gc.collect()
    gc.freeze()
    request = _Server(socket.socket(fileno=descriptor), run).serve()
    gc.unfreeze()
    _become(module, request)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
