"""An aiohttp runner for hostile requests. No request causes a logged traceback or a 500 before a handler has seen it. No answer
says which versions run here."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web, web_response
from aiohttp.http_exceptions import HttpProcessingError

from services.rim.http.problems import problem_response
from shared.http.problems import Problem

#: What clients cause: requests that are no HTTP, and bodies that differ from their headers and that no handler has read.
_OF_CLIENTS: Final = (HttpProcessingError, web.RequestPayloadError)
#: Where the server logs. A scan of the internet cannot fill it with the above.
HTTP_LOG: Final = logging.getLogger("playhead.http")
HTTP_LOG.addFilter(lambda line: line.exc_info is None or not isinstance(line.exc_info[1], _OF_CLIENTS))

#: What every answer says of the server that gives it, those to what is no HTTP too: aiohttp says its version and Python's.
SERVER_NAME: Final = "Playhead"
web_response.SERVER_SOFTWARE = SERVER_NAME  # type: ignore[attr-defined]

_EXPECTED: Final = "100-continue"

_Handler = Callable[[web.BaseRequest], Awaitable[Any]]


class GuardedRunner(web.AppRunner):
    """`web.AppRunner` with the log above. It refuses an `Expect` header of anything but `100-continue`."""

    def __init__(self, app: web.Application, **options: Any) -> None:
        super().__init__(app, **{"access_log": None, "handle_signals": False, "logger": HTTP_LOG} | options)

    async def setup(self) -> None:
        """Sets the server up."""
        await super().setup()
        assert self.server is not None
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
