"""The port that players connect to. Several processes may share it, and a process leaves it without resetting a connection.

The kernel completes handshakes for a listening socket and queues the connections until they are accepted. If the socket is closed,
it resets connections that are still in a handshake or in the queue. So a process that leaves takes part in no new handshake,
completes those that have begun, accepts all connections, and then closes.
"""

import asyncio
import ctypes
import socket
import struct
from typing import Final

import structlog
from aiohttp import web

from services.collector.http.connections import ConnectionLimits, Connections

log = structlog.get_logger(__name__)

#: Connections that the kernel holds for a process that is busy.
BACKLOG: Final = 1_024
#: How long a handshake that has begun may take to complete once the process leaves its port. Clients repeat the first packet of an
#: unanswered handshake after one second (RFC 6298). This time is shorter, so that they then reach another process.
HANDSHAKE_SECONDS: Final = 0.5

#: A classic BPF program over a TCP segment, from its header on (Documentation/networking/filter.rst of the kernel's sources,
#: RFC 9293 §3.1). It looks at the flags SYN (2) and ACK (16) in octet 13. It drops a segment with SYN alone, which begins a
#: handshake, and keeps all others whole. Each instruction: code, how far to jump if true and if false, operand.
NEW_HANDSHAKES_DROPPED: Final = (
    (0x30, 0, 0, 13),  # load the octet
    (0x54, 0, 0, 0x12),  # and
    (0x15, 0, 1, 0x02),  # jump if equal
    (0x06, 0, 0, 0),  # return: keep nothing
    (0x06, 0, 0, 0xFFFFFFFF),  # return: keep everything
)
#: Of asm-generic/socket.h; Python's `socket` does not name it.
_SO_ATTACH_FILTER: Final = 26


def drop_new_handshakes(listening: socket.socket) -> None:
    """From now on no new handshake begins; clients repeat their first packet, which then reaches another process.

    Raises `OSError` where the kernel knows no such filters.
    """
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in NEW_HANDSHAKES_DROPPED)
    instructions = ctypes.create_string_buffer(program, len(program))
    length_and_address = struct.pack("HP", len(NEW_HANDSHAKES_DROPPED), ctypes.addressof(instructions))
    listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, length_and_address)


class Listener:
    """Serves an application on one port, which other processes may share. Raises `OSError` when the port is not available.

    `handshake_seconds` is how long it sees handshakes through when it leaves.
    """

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        limits: ConnectionLimits,
        handshake_seconds: float = HANDSHAKE_SECONDS,
    ) -> None:
        self._runner = runner
        self._limits = limits
        self._handshake_seconds = handshake_seconds
        self._socket = _bound(host, port)
        self._connections: Connections | None = None
        self._server: asyncio.AbstractServer | None = None

    @property
    def port(self) -> int:
        """Its port: the given one, or any free one where that was 0."""
        port: int = self._socket.getsockname()[1]
        return port

    async def start(self) -> None:
        """Begins to accept."""
        await self._runner.setup()
        self._connections = Connections(self._runner, self._limits)
        self._server = await asyncio.get_running_loop().create_server(
            self._connections, sock=self._socket.dup(), backlog=BACKLOG
        )

    async def close(self) -> None:
        """Accepts no more, answers the requests that have arrived, and ends. No connection that the kernel queued for it is
        reset."""
        if self._server is not None and self._connections is not None:
            server, self._server = self._server, None
            await self._leave_port()
            server.close()
            await self._let_in(self._connections)
            await self._connections.first_requests()
        self._socket.close()
        await self._runner.cleanup()
        if self._connections is not None:
            # Not before: a client that does not read its answer would keep the last request for the whole time.
            self._connections.close()

    async def _leave_port(self) -> None:
        """Begins no new handshake and completes those that have begun; their connections are served meanwhile."""
        try:
            drop_new_handshakes(self._socket)
        except OSError as error:
            # Not Linux. A connection between the last accept and the close is reset, and the client sends again.
            log.warning("handshakes_not_dropped", problem=str(error))
            return
        await asyncio.sleep(self._handshake_seconds)

    async def _let_in(self, connections: Connections) -> None:
        """Accepts the connections that still wait at the socket: the kernel would reset them at the close.

        The loop's listener is gone, and this second handle has kept the socket open. It is closed as soon as no connection waits.
        """
        accepted: list[socket.socket] = []
        self._socket.setblocking(False)
        while True:
            try:
                accepted.append(self._socket.accept()[0])
            except ConnectionAbortedError:
                continue
            except OSError:
                # No connection waits any more, or no file descriptor is left for one.
                break
        self._socket.close()
        loop = asyncio.get_running_loop()
        for one in accepted:
            await loop.connect_accepted_socket(connections, one)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens on an address that other processes may listen on too. Raises `OSError`."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening
