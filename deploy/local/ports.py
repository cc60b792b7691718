"""Free loopback ports for local processes."""

import random
import socket
from typing import Final

#: Below the range from which Linux takes ports for outgoing connections, so that none of those steals a port between
#: the moment it was found free and the moment its service listens on it.
_PORT_MIN: Final = 15_000
_PORT_MAX: Final = 32_000
_TRIES_MAX: Final = 200

_random = random.SystemRandom()


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


def free_port() -> int:
    """A port on which nothing listens; raises `OSError` when none is found."""
    for _ in range(_TRIES_MAX):
        port = _random.randint(_PORT_MIN, _PORT_MAX)
        if is_free(port):
            return port
    raise OSError(f"no free port found between {_PORT_MIN} and {_PORT_MAX}")


def preferred_or_free(port: int) -> int:
    """`port` when it is free, else another one that is."""
    return port if is_free(port) and is_free(port, "0.0.0.0") else free_port()
