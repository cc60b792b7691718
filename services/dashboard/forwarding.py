"""Questions under /v1 that another service answers: passed on as they are, and their answers as they come.

The service that makes the answer identifies the caller: `query` has the same guard before its routes.
"""

import asyncio
import time
from typing import Any, Final

import aiohttp
import msgspec
import structlog
from aiohttp import web
from aiohttp.web_urldispatcher import AbstractResource
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from services.accounts.http.access import ELSEWHERE, PUBLIC, Routing
from services.accounts.http.open_requests import OpenRequests
from services.rim.admin.guarded_runner import LINE_BYTES_MAX
from services.rim.http.openapi import Operation, document, merged, passed_on
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.http.tls import connector
from services.rim.http.writing import PIECE_BYTES, end_in_time, write_in_time
from services.rim.turns.question_limits import TooManyQuestions
from shared.codec import NO_JSON
from shared.http.problems import Problem

log = structlog.get_logger(__name__)

#: What belongs to one connection (RFC 9110, 7.6.1), and what the server below sets itself.
_OF_A_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "expect", "content-length"}
)
_FORWARDED: Final = "X-Forwarded-For"
_DOCUMENT_BYTES_MAX: Final = 4 * 1024 * 1024
#: How long a document is given without asking for it again.
_DOCUMENT_SECONDS: Final = 2.0
#: It is made at its service's start: what takes longer is away.
_DOCUMENT_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)
#: So many questions are passed on at a time: each holds a connection.
CONNECTIONS_MAX: Final = 200

#: Said to people who ask, and to who runs the installation.
_SHORTER: Final = "Ask for a shorter range or fewer groups."
_OF_OPERATORS: Final = "The service query does not answer as it should."
_AWAY: Final = Problem(503, "Figures of finished views do not come at present", "query-away", _OF_OPERATORS)


class Forwarding:
    """The routes of the service at `url`; without one, a problem that says so."""

    def __init__(self, url: str, *, wait_seconds_max: float) -> None:
        self._url = url.rstrip("/")
        self._wait_seconds_max = wait_seconds_max
        self._session: aiohttp.ClientSession | None = None
        #: The document of both services as it was made last, and until when it is not asked for again.
        self._whole: bytes | None = None
        self._described_until = 0.0
        self._describing = asyncio.Lock()
        #: What is served here.
        self._own: list[AbstractResource] = []
        self._open_requests = OpenRequests(CONNECTIONS_MAX)

    def add_to(self, routing: Routing, operations: list[Operation], open_requests: OpenRequests | None = None) -> None:
        """Adds the document, with `operations` that are served here, and everything under /v1 that has no other route.

        `open_requests` bounds what is passed on; without it that is bounded by the address of the connection.
        """
        own = document(operations)
        self._open_requests = open_requests or self._open_requests
        self._own = list(routing.app.router.resources())

        async def describe(_: web.Request) -> web.Response:
            if not self._url:
                return web.Response(body=msgspec.json.encode(own), content_type="application/json")
            # What it said before is true until it is replaced. Half a document would say that the other half is not there.
            async with self._describing:
                if time.monotonic() >= self._described_until:
                    self._whole = await self._merged(own) or self._whole
                    self._described_until = time.monotonic() + _DOCUMENT_SECONDS
            if self._whole is None:
                return problem_response(_AWAY)
            return web.Response(body=self._whole, content_type="application/json")

        routing.get("/v1/openapi.json", describe, PUBLIC, name="openapi")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            routing.add(method, "/v1/{tail:.*}", self.forward, ELSEWHERE, name=f"forwarded-{method.lower()}")

    async def open(self) -> None:
        """Makes the client; opens no connection yet."""
        self._session = aiohttp.ClientSession(
            connector=connector(limit=CONNECTIONS_MAX),
            timeout=aiohttp.ClientTimeout(
                total=None,
                # The wait for one of the connections is counted too.
                connect=self._wait_seconds_max,
                sock_connect=self._wait_seconds_max,
                sock_read=self._wait_seconds_max,
            ),
            # The link to a next page repeats the address, in which a character may become three.
            max_field_size=4 * LINE_BYTES_MAX,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )

    async def close(self) -> None:
        """Closes its connections."""
        if self._session is not None:
            await self._session.close()

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Passes a request on; when its client goes away, so does the question.

        Raises `HTTPMethodNotAllowed` for a path that is served here, but not by this method.
        """
        if methods := await self._methods_here(request):
            raise web.HTTPMethodNotAllowed(request.method, methods)
        if not self._url:
            return problem_response(
                Problem(404, "Nothing is here", "query-off", "DASHBOARD_QUERY_URL is not set: no service answers this.")
            )
        try:
            with self._open_requests.counted(request):
                return await self._answer(request)
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None, "not opened"
        body = request.content if request.body_exists else None
        # The path alone: a target in absolute form (RFC 9112, 3.2.2) would lengthen the service's name, and lead elsewhere.
        target = request.rel_url.raw_path_qs
        try:
            async with self._session.request(
                request.method,
                URL(f"{self._url}{target}", encoded=True),
                headers=_passed_on(request),
                data=body,
                allow_redirects=False,
            ) as answer:
                return await _copied(request, answer)
        except aiohttp.ConnectionTimeoutError:
            log.warning("query_away", kind="connection")
            return problem_response(_AWAY)
        except TimeoutError:
            log.warning("query_away", kind="deadline")
            return problem_response(Problem(504, "The answer takes too long", "query-slow", _SHORTER))
        except aiohttp.ClientConnectionError as error:
            log.warning("query_away", kind=type(error).__name__)
            return problem_response(_AWAY)
        except aiohttp.ClientError as error:
            log.error("query_answers_badly", kind=type(error).__name__)
            return problem_response(
                Problem(502, "Figures of finished views cannot be read", "query-broken", _OF_OPERATORS)
            )

    async def _methods_here(self, request: web.Request) -> set[str]:
        return {method for resource in self._own for method in (await resource.resolve(request))[1]}

    async def _merged(self, own: dict[str, Any]) -> bytes | None:
        """The document of both services; None while the other one gives none."""
        found = await self._described()
        if found is None:
            return None
        try:
            # The service's own title and words come first.
            return msgspec.json.encode(merged(passed_on(found), own))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.error("query_answers_badly", kind=type(error).__name__, why="no OpenAPI document of ours")
            return None

    async def _described(self) -> dict[str, object] | None:
        """The document of the other service; None while it is away."""
        assert self._session is not None, "not opened"
        try:
            async with self._session.get(
                f"{self._url}/v1/openapi.json", allow_redirects=False, timeout=_DOCUMENT_TIMEOUT
            ) as answer:
                body = await answer.content.read(_DOCUMENT_BYTES_MAX)
                while not answer.content.at_eof() and len(body) < _DOCUMENT_BYTES_MAX:
                    body += await answer.content.read(_DOCUMENT_BYTES_MAX - len(body))
                found: dict[str, object] = msgspec.json.decode(body, type=dict)
        except (aiohttp.ClientError, TimeoutError, *NO_JSON) as error:
            log.warning("query_away", kind=type(error).__name__)
            return None
        else:
            return found if answer.status == 200 else None


async def _copied(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Sends an answer as it comes. One that breaks off breaks off here too: its reader must not take it for whole."""
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_kept(answer.headers))
    if answer.content_length is not None and request.method != "HEAD":
        response.content_length = answer.content_length
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_chunked(PIECE_BYTES):
            await write_in_time(response, piece)
        await end_in_time(response)
    except (aiohttp.ClientError, TimeoutError, ConnectionResetError, asyncio.IncompleteReadError) as error:
        log.warning("answer_broken_off", kind=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()
    return response


def _passed_on(request: web.Request) -> CIMultiDict[str]:
    """The headers of a request, `Host` among them, with the client's address added to those that it came by."""
    headers = _kept(request.headers)
    came_by = [*headers.popall(_FORWARDED, []), *([request.remote] if request.remote else [])]
    if came_by:
        headers[_FORWARDED] = ", ".join(came_by)
    return headers


def _kept(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Those that belong to the message and not to the connection."""
    named = {name.strip().lower() for text in headers.getall("Connection", []) for name in text.split(",")}
    dropped = _OF_A_CONNECTION | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
