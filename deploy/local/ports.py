"""Free loopback ports for local processes.

Between the moment a port is found and the moment a service listens, another process may take it. Parallel runs, such as tests,
therefore give each process its own range in `PLAYHEAD_LOCAL_PORTS` ("15000-20000").
"""

import os
import random
import socket
from typing import Final

#: Below the range from which Linux takes ports for outgoing connections. Otherwise such a connection could take a port that was
#: found free, before its service listens on it.
PORT_MIN: Final = 15_000
PORT_MAX: Final = 32_000
RANGE_VARIABLE: Final = "PLAYHEAD_LOCAL_PORTS"
_TRIES_MAX: Final = 200

_random = random.SystemRandom()
#: The ports that this process has returned: a service may not listen yet.
_given: set[int] = set()


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a process could listen on `port` of `host` now."""
    with socket.socket() as probe:
        # As servers do: a port whose last connections linger in TIME_WAIT is free, one that is listened on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def port_range() -> tuple[int, int]:
    """The lowest and highest port to take; raises `ValueError` when the variable is no range."""
    lowest, _, highest = os.environ.get(RANGE_VARIABLE, f"{PORT_MIN}-{PORT_MAX}").partition("-")
    return int(lowest), int(highest)


def free_port() -> int:
    """A port on which nothing listens, and another one each time; raises `OSError` when none is found."""
    lowest, highest = port_range()
    for _ in range(_TRIES_MAX):
        port = _random.randint(lowest, highest)
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no free port found between {lowest} and {highest}")


def preferred_or_free(port: int) -> int:
    """`port` when it is free, else another one that is."""
    return port if is_free(port) and is_free(port, "0.0.0.0") else free_port()
