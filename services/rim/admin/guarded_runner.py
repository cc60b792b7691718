"""An aiohttp runner for hostile requests. No request causes a logged traceback or a 500 before a handler has seen it. No answer
says which versions run here. What is no HTTP is refused with a problem, as are all other requests."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web, web_response
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from services.rim.http.problems import problem_response
from shared.http.problems import Problem

#: What clients cause: requests that are no HTTP, and bodies that differ from their headers and that no handler has read.
_OF_CLIENTS: Final = (HttpProcessingError, web.RequestPayloadError)
#: Where the server logs. A scan of the internet cannot fill it with the above.
HTTP_LOG: Final = logging.getLogger("playhead.http")
HTTP_LOG.addFilter(lambda line: line.exc_info is None or not isinstance(line.exc_info[1], _OF_CLIENTS))

#: Of a request to the API: a question may have a long filter in its address.
LINE_BYTES_MAX: Final = 65_536
#: What every answer says of the server that gives it, those to what is no HTTP too: aiohttp says its version and Python's.
SERVER_NAME: Final = "Playhead"
web_response.SERVER_SOFTWARE = SERVER_NAME  # type: ignore[attr-defined]

_EXPECTED: Final = "100-continue"
#: A proxy before this server may have longer limits.
_TOO_LONG: Final = Problem(400, "The first line or a header of the request is too long", "request-long")
_MALFORMED: Final = Problem(400, "The request is not valid HTTP", "malformed")

_Handler = Callable[[web.BaseRequest], Awaitable[Any]]


class _Connection(web.RequestHandler):
    """A connection whose malformed requests are refused with a problem. aiohttp's own text quotes the request."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that the parser refuses, or whose handler fails; the connection ends with it."""
        answer = super().handle_error(request, status, exc, message)
        if not isinstance(exc, HttpProcessingError):
            return answer
        refused = problem_response(_TOO_LONG if isinstance(exc, LineTooLong) else _MALFORMED)
        refused.force_close()
        return refused


class _Server(web.Server):
    """Makes these connections."""

    def __call__(self) -> web.RequestHandler:
        connection = super().__call__()
        connection.__class__ = _Connection
        return connection


class GuardedRunner(web.AppRunner):
    """`web.AppRunner` with the log above. It refuses an `Expect` header of anything but `100-continue`."""

    def __init__(self, app: web.Application, **options: Any) -> None:
        super().__init__(app, **{"access_log": None, "handle_signals": False, "logger": HTTP_LOG} | options)

    async def setup(self) -> None:
        """Sets the server up."""
        await super().setup()
        assert self.server is not None
        # `web.AppRunner` makes its server itself, and takes no class for it.
        self.server.__class__ = _Server
        self.server.request_handler = _expecting_little(self.server.request_handler)


def _expecting_little(handle: _Handler) -> _Handler:
    """`handle` for all requests but those that expect what no server here does: 417 (RFC 9110, 10.1.1).

    aiohttp would refuse them before any middleware, by a text that quotes the header, and fails to where that is no ASCII.
    """

    async def answer(request: web.BaseRequest) -> Any:
        if (request.headers.get("Expect") or _EXPECTED).lower() != _EXPECTED:
            return problem_response(Problem(417, "Nothing is expected here but 100-continue", "expect"))
        return await handle(request)

    return answer
