"""The server-sent events of the live page: who listens, how many may, and what each is sent."""

import asyncio
import zlib
from collections import Counter
from typing import Any, Final

from aiohttp import web

from services.accounts.core.customer_scope import CustomerScope
from services.accounts.core.roles import Permission
from services.accounts.http.guard import Guard, principal_of
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.history import ALL
from services.dashboard.live.picture import AskedLive
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.writing import write_in_time
from services.rim.telemetry import metrics
from shared.metrics import DASHBOARD_STREAMS

#: How often a stream without a new picture sends an event, so that a page can distinguish a quiet server from a stopped one.
ALIVE_SECONDS: Final = 3.0
#: Between two questions whether a session still counts, while Postgres does not answer.
UNCONFIRMED_SECONDS: Final = 1.0
#: How long a page waits before it connects again.
RECONNECT_MS: Final = 2_000


class LiveStreams:
    """The open streams, each a request's task that sends pictures of the board."""

    def __init__(self, board: LiveBoard, guard: Guard, *, streams_max: int) -> None:
        self._board = board
        self._guard = guard
        self._streams_max = streams_max
        #: The tasks that send them, the longest open first, and whose each is: an organisation's, and a caller's of it.
        self._streams: dict[asyncio.Task[Any], tuple[str, str]] = {}
        self._streams_gauge = metrics.gauge(DASHBOARD_STREAMS)

    async def send(self, request: web.Request, asked: AskedLive) -> web.StreamResponse:
        """Sends the picture whenever it changes, until either side goes away.

        If the number of open streams is at its limit, one ends. It is of the organisation with the most, this one counted, and of
        its caller with the most: the one that has been open longest. Its page listens again after a moment. So no number of open
        streams keeps a page out, and nobody's many end those of others.
        """
        task, asker = asyncio.current_task(), principal_of(request).asker
        assert task is not None
        if len(self._streams) >= self._streams_max:
            oldest = self._oldest_of_most(asker)
            self._forget_stream(oldest)
            oldest.cancel()
        events = _Events(request)
        self._streams[task] = asker
        self._streams_gauge.set(len(self._streams))
        try:
            await events.response.prepare(request)
            await self._send_pictures(request, asked, events)
        except (ConnectionResetError, TimeoutError):
            # The page is closed, or does not read: no answer is possible.
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._forget_stream(task)
        return events.response

    def _oldest_of_most(self, asker: tuple[str, str]) -> asyncio.Task[Any]:
        askers = [*self._streams.values(), asker]
        of_organisations, of_callers = Counter(organisation for organisation, _ in askers), Counter(askers)
        return max(
            self._streams, key=lambda task: (of_organisations[self._streams[task][0]], of_callers[self._streams[task]])
        )

    async def _send_pictures(self, request: web.Request, asked: AskedLive, events: "_Events") -> None:
        asker = principal_of(request).asker
        await events.write(f"retry: {RECONNECT_MS}\n\n".encode())
        version, scope = 0, None
        while not self._board.is_closed:
            newer = await self._board.newer_than(version, ALIVE_SECONDS)
            if newer is None:
                if scope is not None:
                    self._board.look_for_slices(scope, asked.customer, asked.slice)
                # An event without data would not reach the page.
                await events.write(b"event: alive\ndata: 1\n\n")
                continue
            try:
                scope = await self._scope_now(request)
            except (PostgresAway, NotPublished, QueryRefused):
                # Whether the session still counts is not known: nothing is shown, and nobody is thrown out.
                await events.write(b"event: unconfirmed\ndata: 1\n\n")
                await asyncio.sleep(UNCONFIRMED_SECONDS)
                continue
            if scope is None or not may_see(asked, scope):
                return
            version = newer
            picture = await self._board.picture(asker, scope, asked.customer, asked.slice, asked.order)
            await events.write(b"data: " + picture + b"\n\n")

    async def _scope_now(self, request: web.Request) -> CustomerScope | None:
        """What the stream's reader may see by now; None where the session has ended."""
        principal = await self._guard.confirm(request)
        return principal.scope if principal is not None and principal.may(Permission.READ_METRICS) else None

    def _forget_stream(self, task: asyncio.Task[Any]) -> None:
        self._streams.pop(task, None)
        self._streams_gauge.set(len(self._streams))


class _Events:
    """Server-sent events, each sent at once, and compressed for clients that accept it."""

    def __init__(self, request: web.Request) -> None:
        headers = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Vary": "Accept-Encoding"}
        is_packed = "gzip" in request.headers.get("Accept-Encoding", "")
        self._packer = zlib.compressobj(wbits=31) if is_packed else None
        self.response = web.StreamResponse(headers=headers | ({"Content-Encoding": "gzip"} if is_packed else {}))

    async def write(self, data: bytes) -> None:
        """Sends whole events. Raises `TimeoutError` where the page does not take them."""
        if self._packer is not None:
            data = self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        await write_in_time(self.response, data)


def may_see(asked: AskedLive, scope: CustomerScope) -> bool:
    """Whether the asked customer is in the scope."""
    return asked.customer == ALL or scope.has(asked.customer)
