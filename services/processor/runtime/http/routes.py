"""Routes: serves an application's routes. Runs its handlers, executes their steps, and answers when a step exceeds its time."""

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.application import Application
from services.processor.engine.application.requests import Handling, Reply, Request, Route, Step, Submit
from services.processor.runtime.http.producer import Submitter
from services.processor.runtime.http.queries import HOP_PATH, OwnerAnswer, OwnerQueries, OwnerQuery
from services.processor.runtime.kafka.ownership import boot_seconds
from services.processor.runtime.questions import Unanswered
from services.rim.http.admission import Admission
from services.rim.telemetry.metrics import counter, histogram
from shared.codec import NO_JSON
from shared.http.problems import PROBLEM_JSON, Problem
from shared.metrics import PROCESSOR_REQUEST_SECONDS, PROCESSOR_REQUESTS

log = structlog.get_logger(__name__)

RETRY_AFTER: Final = ("Retry-After", "1")

_queries_of_slots: Final = msgspec.msgpack.Decoder(OwnerQuery)


@dataclass(frozen=True)
class RequestLimits:
    """What requests may take."""

    #: Until one is answered, be it by 503.
    seconds_max: float = 5.0
    #: At the same time in this process, and at others on its behalf.
    at_once_max: int = 512
    body_bytes_max: int = 65_536


class ApplicationRoutes:
    """The application's routes on this process."""

    def __init__(
        self,
        application: Application,
        partitions: int,
        limits: RequestLimits,
        queries: OwnerQueries,
        submitter: Submitter,
    ) -> None:
        self._application = application
        self._partitions = partitions
        self._limits = limits
        self._queries = queries
        self._submitter = submitter
        self._under_way = 0

    async def serve(self, route: Route, request: web.Request) -> web.Response:
        """Answers a request of a client."""
        started = time.monotonic()
        if self._under_way >= self._limits.at_once_max:
            reply = _later("too many requests are under way", was_submitted=False)
        else:
            self._under_way += 1
            try:
                reply = await self._handle(route, request)
            finally:
                self._under_way -= 1
        labels = (route.method, route.path)
        counter(PROCESSOR_REQUESTS).labels(*labels, str(reply.status)).inc()
        histogram(PROCESSOR_REQUEST_SECONDS).labels(*labels).observe(time.monotonic() - started)
        return _response(reply)

    async def serve_query(self, request: web.Request) -> web.Response:
        """Answers a question of another slot, as the owner or not at all."""
        try:
            query = _queries_of_slots.decode(await request.read())
        except (*NO_JSON, web.RequestPayloadError) as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            found = await self._queries.here(query)
        except Unanswered as error:
            return web.Response(status=503, text=f"{error}\n")
        except LookFailed as error:
            log.exception("query_failed", error=str(error))
            return web.Response(status=500, text=f"{error}\n")
        return web.Response(body=msgspec.msgpack.encode(OwnerAnswer(found)))

    async def _handle(self, route: Route, request: web.Request) -> Reply:
        deadline = boot_seconds() + self._limits.seconds_max
        try:
            async with asyncio.timeout(self._limits.seconds_max):
                body = await request.read()
        except TimeoutError:
            # Its place is another's; the server reads no further request of this connection.
            seconds = self._limits.seconds_max
            return problem(Problem(408, "The body does not come", "body-slow", f"Send it within {seconds:g} s."))
        except web.HTTPRequestEntityTooLarge:
            return problem(
                Problem(413, "The body is too large", "too-large", f"at most {self._limits.body_bytes_max} bytes")
            )
        except web.RequestPayloadError:
            # It is not what Content-Encoding says, or it ends before its length.
            return problem(Problem(400, "The body cannot be read", "unreadable-body", "see Content-Encoding"))
        handling = route.handle(
            Request(
                method=route.method,
                parts=dict(request.match_info),
                query=dict(request.query),
                headers={name.lower(): value for name, value in request.headers.items()},
                body=body,
                nonce=uuid.uuid4().hex,
                partitions=self._partitions,
            )
        )
        return await self._drive(route, handling, deadline)

    async def _drive(self, route: Route, handling: Handling, deadline: float) -> Reply:
        was_submitted = False
        result: Any = None
        try:
            while True:
                step, reply = _next(handling, result)
                if step is None:
                    return reply or _RAISED
                if boot_seconds() >= deadline:
                    raise Unanswered("the request took too long")
                if isinstance(step, Submit):
                    # Said before it is true: whether it is stored is not known when it fails.
                    was_submitted = True
                    await self._submitter.submit(step, deadline)
                    result = None
                else:
                    result = await self._queries.run(step, deadline)
        except Unanswered as error:
            return _later(str(error), was_submitted=was_submitted)
        except LookFailed as error:
            log.exception("request_failed", path=route.path, error=str(error))
            return _RAISED
        except Exception as error:
            # The fault is the application's, and of this request alone.
            log.exception("request_failed", path=route.path, error=f"{type(error).__name__}: {error}")
            return _RAISED
        finally:
            handling.close()


def _next(handling: Handling, result: Any) -> tuple[Step | None, Reply | None]:
    """The handler's next step, or its reply."""
    try:
        return handling.send(result), None
    except StopIteration as end:
        return None, end.value


def problem(found: Problem, *headers: tuple[str, str]) -> Reply:
    """The answer that a problem is."""
    return Reply(found.status, found.encode(), (("Content-Type", PROBLEM_JSON), *headers))


_RAISED: Final = problem(Problem(500, "The application raised on this request", "raised", "see the log"))


def _later(why: str, *, was_submitted: bool) -> Reply:
    if was_submitted:
        why += (
            "; the write may have taken effect, or may still: a request with the same idempotency key gets its outcome"
        )
    return problem(Problem(503, "No answer could be had in time", "unanswered", why), RETRY_AFTER)


def _response(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=dict(reply.headers))


def add_routes(
    router: web.UrlDispatcher,
    application: Application,
    routes: Callable[[], ApplicationRoutes],
    admission: Admission,
) -> None:
    """Has what `routes` returns, once the server runs, serve the application's routes, and other slots."""

    async def serve(route: Route, request: web.Request) -> web.Response:
        return await routes().serve(route, request)

    async def serve_query(request: web.Request) -> web.Response:
        return await routes().serve_query(request)

    for route in application.routes:
        added = router.add_route(route.method, route.path, partial(serve, route))
        admission.want(added, "read" if route.method == "GET" else "write")
    admission.want(router.add_post(HOP_PATH, serve_query), "slots")


@web.middleware
async def as_problems(request: web.Request, handler: Any) -> web.StreamResponse:
    """What the server itself refuses is answered as a problem too."""
    try:
        response: web.StreamResponse = await handler(request)
    except web.HTTPException as refused:
        if refused.status < 400:
            raise
        headers = tuple(
            (name, refused.headers[name]) for name in ("Allow", "WWW-Authenticate") if name in refused.headers
        )
        return _response(problem(Problem(refused.status, refused.reason, "not-served"), *headers))
    return response
