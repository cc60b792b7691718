"""The dashboard's HTTP application: the page, and what the public API has of live figures, accounts, alerts and recordings.

Each route names who may use it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from services.accounts.http.access import Routing
from services.accounts.http.guard import Cookie, Guard, principal_of
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.open_requests import OpenRequests
from services.accounts.http.requests import BODY_BYTES_MAX
from services.accounts.http.routes import SESSION, AccountRoutes
from services.accounts.looks import Audit
from services.accounts.store.audit import Actor
from services.alerts.http.operations import OPERATIONS as ALERT_OPERATIONS
from services.alerts.http.routes import AlertRoutes
from services.dashboard import partitions, replay
from services.dashboard.arrivals import open_routes
from services.dashboard.arrivals import routes as arriving
from services.dashboard.arrivals.open_routes import OpenViewRoutes
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.dashboard.forwarding import CONNECTIONS_MAX, Forwarding
from services.dashboard.limits import routes as limiting
from services.dashboard.limits.queries import LimitsSource
from services.dashboard.limits.routes import LimitsRoutes
from services.dashboard.live import routes as live
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.landed import past_routes
from services.dashboard.live.landed.past_routes import Past, PastRoutes
from services.dashboard.live.routes import LiveRoutes
from services.dashboard.page.files import POLICY
from services.dashboard.page.routes import STATIC, Pages
from services.dashboard.partitions import PartitionRoutes
from services.dashboard.replay import Replay
from services.dashboard.views import Views
from services.rim.admin.guarded_runner import LINE_BYTES_MAX, GuardedRunner
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.compression import compressing
from services.rim.http.openapi import Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, api_problems, problem_response, rate_response
from services.rim.telemetry import metrics
from services.rim.turns.question_limits import TooManyQuestions
from services.rim.turns.rates import Rates, TooManyRequests
from shared.http.problems import Problem
from shared.metrics import DASHBOARD_REQUESTS

#: What is served here of the public API; all else under /v1 is passed on.
OPERATIONS: Final[list[Operation]] = [
    *live.OPERATIONS,
    *past_routes.OPERATIONS,
    *arriving.OPERATIONS,
    *open_routes.OPERATIONS,
    *limiting.OPERATIONS,
    *partitions.OPERATIONS,
    *replay.OPERATIONS,
]
#: Has the token against forged requests.
_SECRET: Final = frozenset({SESSION.path})
_AWAY: Final = STATIC / "pages" / "away.html"
_MISSING: Final = STATIC / "pages" / "missing.html"
#: The application's routes, each with who may use it.
ROUTING: Final = web.AppKey("routing", Routing)
_POLICY: Final = "Content-Security-Policy"
_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_OWN_POLICY: Final = POLICY.format(scripts="")
#: Browsers take the policy of the document for them, and `nosniff` keeps them from being one. A first load has fifty.
_NO_DOCUMENTS: Final = ("text/javascript", "text/css")


@dataclass(frozen=True)
class Door:
    """What finds out who asks, and the routes by which people come in and go."""

    identities: Identities
    routes: AccountRoutes
    hosts: Hosts
    cookie: Cookie
    #: Where looks at single views are noted.
    audit: Audit

    def noting(self, handler: Handler, action: str, parameter: str) -> Handler:
        """`handler` of one customer's `parameter`, whose call is noted first: what cannot be noted is not shown."""

        async def answer(request: web.Request) -> web.StreamResponse:
            actor = Actor.of(principal_of(request), self.routes.place.address(request))
            target = f"{request.query.get('customer', '')}/{request.query.get(parameter, '')}"
            try:
                await self.audit.note(actor, action, target)
            except TooManyRequests as error:
                return rate_response(error)
            except TooManyQuestions:
                return problem_response(TOO_MANY_QUESTIONS)
            except (PostgresAway, NotPublished, QueryRefused):
                return problem_response(Problem(503, "Postgres does not answer", "postgres-away"))
            return await handler(request)

        return answer


def make_app(
    board: LiveBoard,
    views: Views | None,
    door: Door,
    *,
    streams_max: int,
    caller_requests_per_second: float = 1_000,
    now_ms: Callable[[], int],
    recordings: Replay | None = None,
    limits: LimitsSource | None = None,
    past: Past | None = None,
    forwarding: Forwarding | None = None,
    alerts: AlertRoutes | None = None,
    arrivals: ArrivalRoutes | None = None,
) -> web.Application:
    """The application that shows `board`, and asks `views` and `replay` where the processor's lookups are on.

    `limits` has the customers' limits, `past` the live picture of earlier; `forwarding` passes questions on. Raises `AccessUnnamed`
    if a route does not say who may use it.
    """
    app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[compressing(besides=_SECRET), api_problems])
    app.on_response_prepare.append(_finish)
    routing = Routing(app)
    guard = Guard(
        routing,
        door.identities,
        hosts=door.hosts,
        cookie=door.cookie,
        away_page=lambda: _document(_AWAY, 503),
        missing_page=lambda: _document(_MISSING, 404),
        rates=Rates(caller_requests_per_second),
        queue=door.routes.queue,
        address=door.routes.place.address,
    )
    app.middlewares.append(guard.answer)
    open_requests = partial(OpenRequests, credential=guard.given, address=door.routes.place.address)
    LiveRoutes(board, guard, streams_max=streams_max).add_to(routing)
    PartitionRoutes(views).add_to(routing)
    door.routes.add_to(routing)
    if recordings is not None:
        recordings.add_to(routing, door.noting, open_requests(replay.CONNECTIONS_MAX))
    if limits is not None:
        LimitsRoutes(limits, now_ms).add_to(routing)
    if past is not None:
        PastRoutes(past).add_to(routing)
    if alerts is not None:
        alerts.add_to(routing)
    if arrivals is not None:
        arrivals.add_to(routing)
        if views is not None:
            OpenViewRoutes(arrivals.newest, views.view, door.audit, door.routes.place.address).add_to(routing)
    if forwarding is not None:
        # The last: what has a route of its own here is answered here.
        described = [*OPERATIONS, *door.routes.described, *(ALERT_OPERATIONS if alerts else [])]
        forwarding.add_to(routing, described, open_requests(CONNECTIONS_MAX))
    Pages().add_to(routing)
    routing.check()
    app[ROUTING] = routing
    return app


def make_runner(app: web.Application, drain_seconds_max: float) -> web.AppRunner:
    """The application ready to listen; a page that goes away ends its handlers."""
    return GuardedRunner(
        app, handler_cancellation=True, shutdown_timeout=drain_seconds_max, max_line_size=LINE_BYTES_MAX
    )


def _document(path: Path, status: int) -> web.Response:
    """A document that needs nothing but its styles."""
    return web.Response(body=path.read_bytes(), content_type="text/html", charset="utf-8", status=status)


async def _finish(request: web.Request, response: web.StreamResponse) -> None:
    """Counts every answer and gives it the page's headers."""
    response.headers.update(_HEADERS)
    if _POLICY not in response.headers and response.content_type not in _NO_DOCUMENTS:
        response.headers[_POLICY] = _OWN_POLICY
    # What is served changes with every release and every bucket; a cached page would lie about its age.
    response.headers["Cache-Control"] = "no-cache" if request.path.startswith("/static/") else "no-store"
    metrics.counter(DASHBOARD_REQUESTS).labels(request.match_info.route.name or "none", str(response.status)).inc()
