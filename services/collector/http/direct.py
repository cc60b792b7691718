"""The way of nearly all requests: beacons of Mux and native clients, stored and answered 200.

aiohttp's router and its response objects cost as much as reading a beacon. So these requests go from aiohttp's parser and server
directly to their route, and their answer is written as bytes. All other requests and answers take the application's way. A
client gets the same either way.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11

from services.collector.http.answers import json_answer
from services.collector.http.finishing import Finishing, headers_for
from services.collector.http.routes import Routes
from services.rim.admin.guarded_runner import SERVER_NAME

_Handler = Callable[[web.BaseRequest], Awaitable[Any]]
#: What is stored is answered with no body, or with this and a body; or the route answers otherwise.
_Outcome = bytes | web.StreamResponse


class Written:
    """An answer of 200 as bytes. It has of `web.StreamResponse` what aiohttp's server asks of an answer."""

    __slots__ = ("_data",)

    keep_alive: Final = True

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def prepare(self, request: web.BaseRequest) -> None:
        """Writes it. Raises `ConnectionResetError` where the client has gone."""
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError
        transport.write(self._data)
        # A client that does not read its answers is not read from.
        await request.writer.drain()

    async def write_eof(self) -> None:
        """There is nothing more."""


class Direct:
    """Answers requests before the application would."""

    def __init__(self, routes: Routes, finishing: Finishing) -> None:
        self._routes = routes
        self._finishing = finishing
        self._ways: dict[str, tuple[str, Callable[[web.BaseRequest], Awaitable[_Outcome]]]] = {
            "/": ("mux", self._mux),
            "/v1/beacons": ("native", self._native),
        }

    def before(self, handle: _Handler) -> _Handler:
        """`handle` for all requests that do not take this way."""
        ways, finishing = self._ways, self._finishing

        async def answer(request: web.BaseRequest) -> Any:
            way = ways.get(request.path) if request.method == "POST" else None
            if way is None or not _is_plain(request):
                return await handle(request)
            route, outcome_of = way
            try:
                outcome = await outcome_of(request)
            except Exception as error:  # noqa: BLE001  (aiohttp answers any error so, and knows no route here)
                outcome = request.protocol.handle_error(request, 500, error)
            if isinstance(outcome, bytes):
                if not finishing.drain.begun:
                    finishing.count(route, 200)
                    return Written(_written(outcome, request.headers.get("Origin")))
                outcome = web.Response(body=outcome, content_type=_JSON) if outcome else web.Response()
            finishing.finish(request, outcome, route)
            return outcome

        return answer

    async def _mux(self, request: web.BaseRequest) -> _Outcome:
        refused = await self._routes.mux_refusal(request)
        return b"" if refused is None else refused

    async def _native(self, request: web.BaseRequest) -> _Outcome:
        answer = await self._routes.native_answer(request)
        return orjson.dumps(answer.body) if answer.status == 200 else json_answer(answer)


_JSON: Final = "application/json"


def _is_plain(request: web.BaseRequest) -> bool:
    """Whether the answer to it is one that `_written` can write."""
    headers = request.headers
    if request.version != HttpVersion11 or not request.keep_alive or "Expect" in headers:
        return False
    origin = headers.get("Origin")
    return origin is None or (origin.isascii() and origin.isprintable())


def _written(body: bytes, origin: str | None) -> bytes:
    """The answer to a request of a connection that stays open, as the application would write it."""
    kind = f"Content-Type: {_JSON}\r\n" if body else ""
    readable = "".join([f"{name}: {value}\r\n" for name, value in headers_for(origin)])
    head = (
        f"HTTP/1.1 200 OK\r\n{kind}Content-Length: {len(body)}\r\nDate: {rfc822_formatted_time()}\r\n"
        f"Server: {SERVER_NAME}\r\n{readable}\r\n"
    )
    return head.encode() + body
