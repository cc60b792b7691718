"""The API's HTTP application: the guard, the resources, and the document that describes them. This module computes nothing."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from services.accounts.http.access import PUBLIC, Routing
from services.accounts.http.guard import Cookie, Guard
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.requests import Place
from services.accounts.looks import Audit
from services.query.core.filters import Filter
from services.query.exporting import Exporting
from services.query.http import exports, questions, resources, suspects, views
from services.query.http.desk import Desk
from services.query.http.exports import ExportRoutes
from services.query.http.questions import Questions
from services.query.http.resources import Reader, Resources
from services.query.http.suspects import Suspecting, SuspectsResource
from services.query.http.views import Lookup, Single, ViewRoutes
from services.rim.admin.guarded_runner import LINE_BYTES_MAX, GuardedRunner
from services.rim.http.compression import compressing
from services.rim.http.openapi import document
from services.rim.http.problems import api_problems, problem_response
from services.rim.telemetry import metrics
from services.rim.turns.question_limits import QuestionLimit
from services.rim.turns.rates import Rates
from shared.http.peer import Network
from shared.http.problems import Problem
from shared.metrics import QUERY_REQUESTS

#: The application's routes, each with who may use it.
ROUTING: Final = web.AppKey("routing", Routing)
OPERATIONS: Final = [
    *questions.OPERATIONS,
    suspects.SUSPECTS,
    *resources.OPERATIONS,
    *views.OPERATIONS,
    *exports.OPERATIONS,
]


@dataclass(frozen=True)
class Door:
    """What finds out who asks."""

    identities: Identities
    hosts: Hosts
    cookie: Cookie
    #: Where looks at single views are noted.
    audit: Audit
    proxies: Sequence[Network] = ()


@dataclass(frozen=True)
class Sources:
    """What answers."""

    reader: Reader
    suspecting: Suspecting
    single: Single
    #: None: the processor's lookups are off.
    lookup: Lookup | None = None
    #: None: there is no folder for exports.
    exporting: Exporting | None = None


def make_app(
    sources: Sources,
    door: Door,
    *,
    caller_questions_max: int,
    caller_requests_per_second: float = 1_000,
    seconds_max: float,
    days_max: int,
    now_ms: Callable[[], int],
) -> web.Application:
    """The application. Raises `AccessUnnamed` if a route does not say who may use it."""
    app = web.Application(middlewares=[compressing(), api_problems])
    app.on_response_prepare.append(_finish)
    routing = Routing(app)
    guard = Guard(
        routing,
        door.identities,
        hosts=door.hosts,
        cookie=door.cookie,
        away_page=_away,
        address=Place(door.proxies).address,
        rates=Rates(caller_requests_per_second),
    )
    app.middlewares.append(guard.answer)
    desk = Desk(
        QuestionLimit(caller_questions_max),
        door.audit,
        seconds_max=seconds_max,
        days_max=days_max,
        now_ms=now_ms,
        proxies=door.proxies,
    )
    Questions(desk, sources.reader).add_to(routing)
    SuspectsResource(desk, sources.suspecting).add_to(routing)
    Resources(desk, sources.reader).add_to(routing)
    ViewRoutes(desk, sources.reader, sources.single, sources.lookup, door.audit).add_to(routing)
    ExportRoutes(desk, sources.exporting, door.audit).add_to(routing)
    # It says nothing of anybody's views: readers of the document need no token.
    routing.get("/v1/openapi.json", _openly(_described()), PUBLIC, name="openapi")
    routing.check()
    app[ROUTING] = routing
    return app


def make_runner(app: web.Application, drain_seconds_max: float) -> web.AppRunner:
    """The application ready to listen; a client that goes away ends its question."""
    return GuardedRunner(
        app, handler_cancellation=True, shutdown_timeout=drain_seconds_max, max_line_size=LINE_BYTES_MAX
    )


@functools.cache
def _described() -> bytes:
    """The document: of all applications the same, and made once."""
    return msgspec.json.encode(document(OPERATIONS, [Filter]))


def _openly(body: bytes) -> Callable[[web.Request], Any]:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return handle


def _away() -> web.Response:
    return problem_response(Problem(503, "Postgres does not answer", "postgres-away"))


async def _finish(request: web.Request, response: web.StreamResponse) -> None:
    """Counts every answer; none is kept by what lies between."""
    response.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
    labels: tuple[Any, ...] = (request.match_info.route.name or "none", str(response.status))
    metrics.counter(QUERY_REQUESTS).labels(*labels).inc()
