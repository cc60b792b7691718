"""The template process of `tests.prefork`: `python tests/forking.py MODULE FD` imports the module, then forks by request.

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
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final

_BYTES_MAX: Final = 1 << 20
#: `PR_SET_PDEATHSIG` of Linux's prctl(2).
_SET_SIGNAL_OF_PARENTS_DEATH: Final = 1


def _serve(module: str, requests: socket.socket) -> dict[str, Any]:
    """Answers requests; returns in a fork, with the request that it is for."""
    codes: dict[int, int | None] = {}
    while True:
        message, control, _, _ = requests.recvmsg(_BYTES_MAX, socket.CMSG_SPACE(4))
        if not message:
            os._exit(0)
        request = json.loads(message)
        _collect(codes)
        if "poll" in request:
            answer: dict[str, Any] = {"code": codes.get(request["poll"])}
        elif "signal" in request:
            if codes.get(request["pid"], 0) is None:
                os.kill(request["pid"], request["signal"])
            answer = {}
        else:
            ((_, _, data),) = control
            (output,) = array.array("i", data)
            pid = os.fork()
            if pid == 0:
                requests.close()
                request["output"] = output
                return dict(request)
            os.close(output)
            codes[pid] = None
            answer = {"pid": pid}
        requests.send(json.dumps({**answer, "number": request["number"]}).encode())


def _collect(codes: dict[int, int | None]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            codes[pid] = os.waitstatus_to_exitcode(status)


def _become(module: str, request: dict[str, Any]) -> None:
    """Turns a fork into what `python -m module` is just before it runs the module."""
    os.setsid()
    # Ends with the template, which ends with the tests: nothing is left behind by a run that is killed.
    ctypes.CDLL(None).prctl(_SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
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
    """Imports the module's parts, then forks by request from the socket FD."""
    module, descriptor = sys.argv[1], int(sys.argv[2])
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
    request = _serve(module, socket.socket(fileno=descriptor))
    gc.unfreeze()
    _become(module, request)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
