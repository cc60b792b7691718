"""The API's HTTP application: who asks, what, and the answer or a problem (RFC 9457). Nothing is computed here."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from services.query.answering import TooManyRows, Unsettled
from services.query.core.answer import Answer, Breakdown, Distribution, Overall, Timeseries
from services.query.core.dimensions import DIMENSIONS
from services.query.core.metrics import METRICS
from services.query.core.problems import Wrong
from services.query.core.question import (
    AnyAsked,
    Asked,
    AskedBreakdown,
    AskedDistribution,
    AskedSeries,
    Question,
    parsed,
    understood,
)
from services.query.http.openapi import Operation, document
from services.query.http.turns import TooManyQuestions, Turns
from services.query.rim.engine import TooLarge
from services.query.rim.warehouse import WarehouseAway
from services.query.scope import Caller, Scope, UnknownCustomer
from services.rim.admin.guarded_runner import GuardedRunner
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.telemetry import metrics
from shared.metrics import QUERY_ANSWER_SECONDS, QUERY_REQUESTS
from shared.problems import PROBLEM_JSON, Problem

#: A filter may be long, and is in the address.
_LINE_BYTES_MAX: Final = 65_536
_RETRY_SECONDS: Final = "1"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Answers(Protocol):
    """What answers questions."""

    async def answer(self, question: Question) -> Answer:
        """The answer; raises what `_PROBLEMS` has."""
        ...


class MetricInfo(msgspec.Struct, frozen=True):
    """A metric that can be asked for; `worse`: in which direction it is worse for viewers."""

    name: str
    title: str
    unit: str
    kind: str
    formula: str
    worse: str | None


class DimensionInfo(msgspec.Struct, frozen=True):
    """What views can be broken down and filtered by."""

    name: str
    title: str
    kind: str


class MetricList(msgspec.Struct, frozen=True):
    """All metrics."""

    metrics: list[MetricInfo]


class DimensionList(msgspec.Struct, frozen=True):
    """All dimensions but a customer's own, which are `custom.` and their name."""

    dimensions: list[DimensionInfo]


OPERATIONS: Final = [
    Operation("/v1/overall", "Metrics of all views of a range", Overall, Asked),
    Operation("/v1/timeseries", "Metrics over time", Timeseries, AskedSeries),
    Operation("/v1/breakdown", "Metrics by one or two dimensions", Breakdown, AskedBreakdown),
    Operation("/v1/distribution", "How a measured value is distributed", Distribution, AskedDistribution),
    Operation("/v1/metrics", "All metrics", MetricList),
    Operation("/v1/dimensions", "All dimensions", DimensionList),
]
#: Of what a question may raise, the problem that its answer is.
_PROBLEMS: Final[dict[type[Exception], Problem]] = {
    UnknownCustomer: Problem(404, "There is no such customer", "unknown-customer"),
    TooManyRows: Problem(422, "The question reads too many views", "too-many-views", "Ask for a shorter range."),
    TooLarge: Problem(
        422, "The question needs too much memory", "too-large", "Ask for fewer groups or a shorter range."
    ),
    TooManyQuestions: Problem(429, "Too many questions at a time", "too-many-questions"),
    PostgresAway: Problem(503, "Postgres does not answer", "postgres-away"),
    NotPublished: Problem(503, "The finalizer has not published yet", "not-published"),
    WarehouseAway: Problem(503, "The warehouse cannot be read", "warehouse-away"),
    Unsettled: Problem(503, "The warehouse changes too fast", "unsettled"),
    QueryRefused: Problem(500, "Postgres refuses the statement", "refused"),
    TimeoutError: Problem(504, "The question took too long", "too-slow", "Ask for a shorter range."),
}


def make_app(
    answering: Answers,
    scope: Scope,
    *,
    caller_questions_max: int,
    seconds_max: float,
    days_max: int,
    now_ms: Callable[[], int],
) -> web.Application:
    """The application."""
    routes = Routes(
        answering, scope, Turns(caller_questions_max), seconds_max=seconds_max, days_max=days_max, now_ms=now_ms
    )
    app = web.Application()
    app.on_response_prepare.append(_finish)
    for operation in OPERATIONS:
        if operation.asks is not None:
            app.router.add_get(operation.path, routes.asked(operation.asks), name=operation.name)
    app.router.add_get("/v1/metrics", routes.listed(_metrics()), name="metrics")
    app.router.add_get("/v1/dimensions", routes.listed(_dimensions()), name="dimensions")
    # It says nothing of anybody's views: readers of the document need no token.
    app.router.add_get("/v1/openapi.json", routes.openly(document(OPERATIONS)), name="openapi")
    return app


def make_runner(app: web.Application, drain_seconds_max: float) -> web.AppRunner:
    """The application ready to listen; a client that goes away ends its question."""
    return GuardedRunner(
        app, handler_cancellation=True, shutdown_timeout=drain_seconds_max, max_line_size=_LINE_BYTES_MAX
    )


class Routes:
    """HTTP to and from questions."""

    def __init__(
        self,
        answering: Answers,
        scope: Scope,
        turns: Turns,
        *,
        seconds_max: float,
        days_max: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._answering = answering
        self._scope = scope
        self._turns = turns
        self._seconds_max = seconds_max
        self._days_max = days_max
        self._now_ms = now_ms

    def asked(self, kind: type[AnyAsked]) -> Handler:
        """The handler of one kind of question."""

        async def handle(request: web.Request) -> web.Response:
            caller = self._scope.caller(request.headers)
            if caller is None:
                return _unknown_caller()
            try:
                return await self._answered(request, caller, kind)
            except Wrong as error:
                return _problem(error.problem())
            except tuple(_PROBLEMS) as error:
                return _problem(next(one for cause, one in _PROBLEMS.items() if isinstance(error, cause)))

        return handle

    def listed(self, what: msgspec.Struct) -> Handler:
        """The handler of a list that is always the same."""
        body = msgspec.json.encode(what)

        async def handle(request: web.Request) -> web.Response:
            return _unknown_caller() if self._scope.caller(request.headers) is None else _sent(body)

        return handle

    def openly(self, what: dict[str, Any]) -> Handler:
        """The handler of a document that anybody may read."""
        body = msgspec.json.encode(what)

        async def handle(_: web.Request) -> web.Response:
            return _sent(body)

        return handle

    async def _answered(self, request: web.Request, caller: Caller, kind: type[AnyAsked]) -> web.Response:
        asked = parsed(kind, list(request.query.items()))
        question = understood(asked, caller.admit, self._now_ms(), days_max=self._days_max)
        began = time.perf_counter()
        with self._turns.of(caller):
            async with asyncio.timeout(self._seconds_max):
                answer = await self._answering.answer(question)
        metrics.histogram(QUERY_ANSWER_SECONDS).labels(question.shape).observe(time.perf_counter() - began)
        return _sent(msgspec.json.encode(answer))


def _metrics() -> MetricList:
    return MetricList(
        [MetricInfo(one.name, one.title, one.unit, one.kind, one.formula, one.worse) for one in METRICS.values()]
    )


def _dimensions() -> DimensionList:
    return DimensionList([DimensionInfo(one.name, one.title, one.kind) for one in DIMENSIONS.values()])


def _sent(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def _problem(problem: Problem) -> web.Response:
    headers = {"Retry-After": _RETRY_SECONDS} if problem.status in {429, 503} else {}
    return web.Response(body=problem.encode(), content_type=PROBLEM_JSON, status=problem.status, headers=headers)


def _unknown_caller() -> web.Response:
    answer = _problem(Problem(401, "A bearer token is wanted", "unauthorized"))
    answer.headers["WWW-Authenticate"] = 'Bearer realm="playhead"'
    return answer


async def _finish(request: web.Request, response: web.StreamResponse) -> None:
    """Counts every answer; none is kept by what lies between."""
    response.headers.update({"Server": "Playhead", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
    labels: tuple[Any, ...] = (request.match_info.route.name or "none", str(response.status))
    metrics.counter(QUERY_REQUESTS).labels(*labels).inc()
