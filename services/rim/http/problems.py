"""Problems (RFC 9457) as HTTP answers: every API of this project refuses by these."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from services.rim.turns.rates import TooManyRequests
from shared.http.problems import PROBLEM_JSON, Problem

#: What passes by itself says when to ask again.
_PASSING: Final = frozenset({429, 503})
RETRY_SECONDS: Final = 1
#: Also of a customer that there is, and that the caller may not see.
UNKNOWN_CUSTOMER: Final = Problem(404, "There is no such customer", "unknown-customer")
#: The public API: everything below this path.
_API: Final = "/v1"
#: As many questions of the caller, or of all, are under way as may be.
TOO_MANY_QUESTIONS: Final = Problem(429, "Too many questions at a time", "too-many-questions")
#: What aiohttp itself refuses requests with, before or within a handler.
_OF_STATUS: Final[Mapping[int, Problem]] = {
    404: Problem(404, "Nothing is here", "unknown"),
    405: Problem(405, "The path does not take this method", "method"),
    413: Problem(413, "The body is too large", "body-large"),
}
#: These describe the text that the problem takes the place of.
_OF_BODY: Final = frozenset({hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH, hdrs.CONTENT_ENCODING})

log = structlog.get_logger(__name__)


class Refused(Exception):
    """A handler's answer that is a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.title)
        self.problem: Final = problem


def problem_response(problem: Problem, *, retry_seconds: float = RETRY_SECONDS) -> web.Response:
    """The answer that a problem is."""
    headers = {"Retry-After": str(max(1, math.ceil(retry_seconds)))} if problem.status in _PASSING else {}
    return web.Response(body=problem.encode(), content_type=PROBLEM_JSON, status=problem.status, headers=headers)


def rate_response(error: TooManyRequests) -> web.Response:
    """The answer to who comes too often."""
    problem = Problem(429, "Too many requests", "too-many-requests", f"Ask again in {math.ceil(error.seconds)} s.")
    return problem_response(problem, retry_seconds=error.seconds)


@web.middleware
async def api_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The outermost middleware: below `/v1` an error of aiohttp, or of a handler that fails, is answered with a problem.

    The headers of aiohttp's error stay, such as `Allow` of a 405. What has begun to answer fails as it would without this.
    """
    try:
        return await handler(request)
    except web.HTTPException as error:
        if not _is_of_api(request) or error.status < HTTPStatus.BAD_REQUEST:
            raise
        response = problem_response(_problem_of(error))
        response.headers.extend((name, value) for name, value in error.headers.items() if name not in _OF_BODY)
        return response
    except Exception as error:
        if not _is_of_api(request) or request.writer.output_size > 0:
            raise
        response = problem_response(_problem_of_failure(request, error))
        # The rest of the request would be read as the next one.
        response.force_close()
        return response


def _is_of_api(request: web.Request) -> bool:
    return request.path == _API or request.path.startswith(f"{_API}/")


def _problem_of_failure(request: web.Request, error: Exception) -> Problem:
    if isinstance(error, (web.RequestPayloadError, HttpProcessingError)):
        return Problem(400, "The body is not what its headers say", "body")
    log.error("request_failed", route=request.match_info.route.name, exc_info=error)
    return Problem(500, "The service failed to answer", "failed")


def _problem_of(error: web.HTTPException) -> Problem:
    return _OF_STATUS.get(error.status) or Problem(error.status, HTTPStatus(error.status).phrase, "request")
