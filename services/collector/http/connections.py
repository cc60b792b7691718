"""Limits of the collector's connections: their number, the time and size of a request's head, and how long answers wait.

aiohttp parses, and limits a line, a header and their number. This module limits the rest: a head that never ends, requests behind
one that is being answered, answers that the client does not read, and more connections than the process can hold. When the limit is
reached, a new connection replaces the one that has waited longest for a request, or for its client to read. So a client that opens
connections and sends nothing, sends one byte a second, or reads nothing displaces no other client.
"""

import asyncio
import contextlib
import random
import resource
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import structlog
from aiohttp import web, web_protocol
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from services.collector.http import reading
from services.collector.http.reading import Charge, Reading
from services.rim.admin.guarded_runner import HTTP_LOG
from services.rim.http.writing import WRITE_SECONDS_MAX
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_CONNECTIONS, COLLECTOR_CONNECTIONS_CLOSED

log = structlog.get_logger(__name__)

#: Of a request's line and all its headers together, and of all heads that wait behind a request. Browsers send cookies of some ten
#: KiB.
HEAD_BYTES_MAX: Final = 65_536
#: Requests that wait behind one that is being answered; further ones wait in the socket. aiohttp reads 32, and takes no option.
QUEUED_REQUESTS_MAX: Final = 4
web_protocol.MAX_MSG_QUEUE_SIZE = QUEUED_REQUESTS_MAX
LINE_BYTES_MAX: Final = 8_190
HEADER_BYTES_MAX: Final = 32_768
HEADERS_MAX: Final = 128
#: How long a connection may stay idle: longer than the ten seconds between a player's batches.
KEEPALIVE_SECONDS: Final = 75.0
#: Files besides connections: Kafka's sockets, spool, logs, the admin endpoint.
FILES_RESERVED: Final = 256
#: How long a connection that was just accepted may take to send its first request when the process is about to go.
FIRST_REQUEST_SECONDS_MAX: Final = 1.0
_SWEEP_SECONDS: Final = 0.25
_RETRY_SECONDS: Final = (2, 10)

#: How the server below reads requests. Bodies are unpacked by the intake, so that what it rejects is kept as it came.
_OPTIONS: Final[dict[str, Any]] = {
    "access_log": None,
    "logger": HTTP_LOG,
    "auto_decompress": False,
    "keepalive_timeout": KEEPALIVE_SECONDS,
    "max_line_size": LINE_BYTES_MAX,
    "max_field_size": HEADER_BYTES_MAX,
    "max_headers": HEADERS_MAX,
}


@dataclass(frozen=True)
class ConnectionLimits:
    """The connection limits of one process."""

    connections_max: int = 10_000
    #: From a head's first byte to its last.
    head_seconds_max: float = 10.0
    #: From an answer that has no room on its way to the client, until the client has read.
    unread_seconds_max: float = WRITE_SECONDS_MAX


class Connections:
    """Makes the protocol of each new connection, and keeps count. Make it on the event loop, once the runner is set up."""

    def __init__(self, runner: web.AppRunner, limits: ConnectionLimits) -> None:
        server = runner.server
        assert server is not None
        self._server = server
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self.open = 0
        #: Those that wait for a request or are in the middle of its head, the longest without an answer first.
        self.waiting: dict[_Connection, None] = {}
        #: Those in the middle of a head, by the loop's time of its first byte, the oldest first.
        self.heads: dict[_Connection, float] = {}
        #: Those whose client does not read its answers, by the loop's time since when, the longest first.
        self.unread: dict[_Connection, float] = {}
        self._fewer = asyncio.Event()
        self._closed = metrics.counter(COLLECTOR_CONNECTIONS_CLOSED)
        metrics.gauge(COLLECTOR_CONNECTIONS).set_function(lambda: self.open)
        server.request_handler = self._answering(server.request_handler)
        self._sweeper = self._loop.create_task(self._sweep())

    def __call__(self) -> asyncio.Protocol:
        """The protocol of one new connection: called by the listener."""
        if self.open >= self._limits.connections_max:
            longest = next(iter(self.waiting), None) or self._longest_unread()
            if longest is None:
                self._closed.labels("refused").inc()
                return _Refusing()
            self.give_up(longest, "displaced")
        return _Connection(self, self._server, loop=self._loop, **_OPTIONS)

    def give_up(self, connection: "_Connection", reason: str) -> None:
        """Closes a connection without an answer. What its client has not read is discarded: its file would stay open until then."""
        self._closed.labels(reason).inc()
        connection.leave()
        connection.force_close()
        connection.abort()

    def forget(self, connection: "_Connection") -> None:
        """The connection is busy, or gone."""
        self.waiting.pop(connection, None)
        self.heads.pop(connection, None)
        self._fewer.set()

    async def first_requests(self) -> None:
        """Returns once every connection has had a request, or a moment later: some are opened in advance and never used."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_REQUEST_SECONDS_MAX):
                while any(connection.is_new for connection in self.waiting):
                    self._fewer.clear()
                    await self._fewer.wait()

    def close(self) -> None:
        """Stops the check for slow heads and unread answers."""
        self._sweeper.cancel()

    def _answering(self, handle: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def answer(request: web.BaseRequest) -> Any:
            try:
                return await handle(request)
            finally:
                # The answer is written before any other task can run. The body may not have come yet: aiohttp reads on for some
                # seconds, so that the client gets the answer. Meanwhile, too, a new connection may take its place: else clients
                # that hold back a byte of a body would take the places of all others.
                if isinstance(request.protocol, _Connection):
                    request.protocol.count_reading()
                    request.protocol.wait()

        return answer

    def _longest_unread(self) -> "_Connection | None":
        """An answer that was just written is not on its way before the loop's next turn: its client has had no time to read."""
        connection, since = next(iter(self.unread.items()), (None, 0.0))
        return connection if since <= self._loop.time() - _SWEEP_SECONDS else None

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._give_up_since(self.heads, self._limits.head_seconds_max, "slow_head")
            self._give_up_since(self.unread, self._limits.unread_seconds_max, "unread")

    def _give_up_since(self, times: "dict[_Connection, float]", seconds_max: float, reason: str) -> None:
        since_max = self._loop.time() - seconds_max
        while times:
            connection, since = next(iter(times.items()))
            if since > since_max:
                break
            self.give_up(connection, reason)


class _Connection(web.RequestHandler):
    """One connection of the server, known to `Connections` while no request of it is being answered."""

    __slots__ = ("_body", "_connections", "_head_bytes", "_is_here", "_is_waiting", "_wire", "reading")

    def __init__(self, connections: Connections, server: web.Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._connections = connections
        #: Of the newest request. Until its end, what comes belongs to it, and then to the next head.
        self._body: StreamReader = EMPTY_PAYLOAD
        self._head_bytes = 0
        self.reading = Reading()
        self._is_here = False
        self._is_waiting = False

    @property
    def is_new(self) -> bool:
        """Whether it has not received a request yet."""
        return self._request_count == 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        #: aiohttp forgets its transport as soon as it closes it, which is before the last answer is sent.
        self._wire = cast("asyncio.Transport", transport)
        self._is_here = True
        self._connections.open += 1
        self.wait()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.leave()

    def leave(self) -> None:
        """The connection is gone, or about to be."""
        self._is_waiting = False
        self._connections.forget(self)
        self._connections.unread.pop(self, None)
        if self._is_here:
            self._is_here = False
            self._connections.open -= 1

    def abort(self) -> None:
        """Closes the connection, whether the client has read its answers or not."""
        self._wire.abort()

    async def start(self) -> None:
        """See aiohttp. At its end the connection is closed, once the client has read the last answer."""
        try:
            await super().start()
        finally:
            if self._wire.get_write_buffer_size():
                self._does_not_read()

    def pause_writing(self) -> None:
        """No answer has room on its way to the client."""
        super().pause_writing()
        self._does_not_read()

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        if not self._wire.is_closing():
            self._connections.unread.pop(self, None)

    def data_received(self, data: bytes) -> None:
        """See aiohttp."""
        requests, is_head = self._request_count, self._body.is_eof()
        begun = reading.cpu_seconds() if data else 0.0
        super().data_received(data)
        is_new = self._request_count != requests
        if is_new:
            self.reading.begin_request()
        if data:
            self.count_reading(len(data), reading.cpu_seconds() - begun, is_head=is_head)
        else:
            self.reading.resume()
        if is_new:
            self._request_begun(self._head_bytes + len(data))
        elif is_head and data:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._connections.give_up(self, "large_head")
            elif self._is_waiting:
                self._connections.heads.setdefault(self, self._loop.time())

    def count_reading(self, size_bytes: int = 0, seconds: float = 0.0, *, is_head: bool = False) -> None:
        """See `Reading.take`. Ends the connection in the middle of a body whose address has wasted too much."""
        if not self.reading.take(size_bytes, seconds, is_head=is_head) and not self._body.is_eof():
            # For who reads it now, be it aiohttp after an answer.
            self._body.set_exception(web.RequestPayloadError("given up"))
            self._connections.give_up(self, "wasteful")

    def _request_begun(self, bytes_come: int) -> None:
        """One or more heads have ended, with so many bytes at the most."""
        self._body = self._messages[-1][1]
        self._head_bytes = 0
        if self._is_waiting:
            self._is_waiting = False
            self._connections.forget(self)
        is_small = bytes_come <= HEAD_BYTES_MAX and len(self._messages) == 1
        if not is_small and sum(_head_bytes(message) for message, _ in self._messages) > HEAD_BYTES_MAX:
            self._connections.give_up(self, "large_head")

    def _does_not_read(self) -> None:
        if self._is_here:
            self._connections.unread.setdefault(self, self._loop.time())

    def wait(self) -> None:
        """The connection is new, or its last request was answered and no other has arrived."""
        if self._is_here and not self._messages:
            self._is_waiting = True
            self._connections.waiting[self] = None
            if self._head_bytes:
                self._connections.heads[self] = self._loop.time()

    def handle_error(self, *args: Any, **kwargs: Any) -> web.StreamResponse:
        """Input that is not HTTP, or too large a head, gets an answer that a page's script can read."""
        answer = super().handle_error(*args, **kwargs)
        answer.headers["Access-Control-Allow-Origin"] = "*"
        return answer


class _Refusing(asyncio.Protocol):
    """A connection beyond the limit, while all others are being answered. It gets an error at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is not a subclass.
        answering = cast("asyncio.Transport", transport)
        seconds = round(random.uniform(*_RETRY_SECONDS))
        answering.write(
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n"
            b"Access-Control-Allow-Origin: *\r\nRetry-After: %d\r\n\r\n" % seconds
        )
        answering.close()


def charge_reading(request: web.BaseRequest, charge: Charge) -> None:
    """CPU time that the connection of a request has taken beyond what good requests need is charged by `charge`, in seconds, and so
    is what it takes from now on. The connection is given up in the middle of a body when `charge` is False."""
    if isinstance(request.protocol, _Connection):
        request.protocol.reading.charge_to(charge)


def _head_bytes(message: Any) -> int:
    """Of a request that was read, or of what was no request."""
    return sum(len(name) + len(value) for name, value in getattr(message, "raw_headers", ()))


def room_for(connections_max: int) -> int:
    """How many connections the process may have: the setting, or the limit of open files. Raises the soft limit of these."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + FILES_RESERVED
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(1, min(connections_max, soft - FILES_RESERVED))
    if room < connections_max:
        log.warning("fewer_connections_than_set", connections_max=room, files_max=soft)
    return room
