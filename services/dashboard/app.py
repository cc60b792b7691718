"""The dashboard's HTTP application: the page, the live stream, and the quality table. Each route names who may use it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from services.accounts.http.access import INSTALLATION, METRICS, Routing
from services.accounts.http.guard import Cookie, Guard, principal_of
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.requests import BODY_BYTES_MAX
from services.accounts.http.routes import AccountRoutes
from services.accounts.looks import Audit
from services.accounts.store.audit import Actor
from services.alerts.http.operations import OPERATIONS as ALERT_OPERATIONS
from services.alerts.http.routes import AlertRoutes
from services.dashboard.arrivals import open_routes
from services.dashboard.arrivals import routes as arriving
from services.dashboard.arrivals.open_routes import OpenViewRoutes
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.dashboard.forwarding import Forwarding
from services.dashboard.limits.queries import LimitsSource
from services.dashboard.limits.routes import LimitsRoutes
from services.dashboard.live import past_routes
from services.dashboard.live import routes as live
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.past_routes import Past, PastRoutes
from services.dashboard.live.routes import LiveRoutes
from services.dashboard.page.files import POLICY
from services.dashboard.page.routes import STATIC, Pages
from services.dashboard.quality.figures import qualities
from services.dashboard.quality.queries import Serving
from services.dashboard.replay import Replay
from services.dashboard.views import Views
from services.rim.admin.guarded_runner import GuardedRunner
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.lookups import LookupsAway, LookupsRefused
from services.rim.http.openapi import Operation
from services.rim.telemetry import metrics
from shared.metrics import DASHBOARD_REQUESTS

HOURS_MAX: Final = 366 * 24
#: What is served here of the public API; all else under /v1 is passed on.
OPERATIONS: Final[list[Operation]] = [
    *live.OPERATIONS,
    *past_routes.OPERATIONS,
    *arriving.OPERATIONS,
    *open_routes.OPERATIONS,
]
#: A question that is passed on may have a long filter in its address.
LINE_BYTES_MAX: Final = 65_536
_AWAY: Final = STATIC / "away.html"
#: The application's routes, each with who may use it.
ROUTING: Final = web.AppKey("routing", Routing)
_POLICY: Final = "Content-Security-Policy"
_HEADERS: Final = {
    _POLICY: POLICY.format(scripts=""),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


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
            except (PostgresAway, NotPublished, QueryRefused):
                return _json({"error": "away", "detail": "Postgres does not answer"}, status=503)
            return await handler(request)

        return answer


def make_app(
    board: LiveBoard,
    serving: Serving,
    views: Views | None,
    door: Door,
    *,
    streams_max: int,
    unpublished_ms_max: int,
    now_ms: Callable[[], int],
    replay: Replay | None = None,
    limits: LimitsSource | None = None,
    past: Past | None = None,
    forwarding: Forwarding | None = None,
    alerts: AlertRoutes | None = None,
    arrivals: ArrivalRoutes | None = None,
) -> web.Application:
    """The application that shows `board` and asks `serving`, and `views` and `replay` where the processor's lookups are on.

    `limits` has the customers' limits, `past` the live picture of earlier; `forwarding` passes questions on. Raises `AccessUnnamed`
    if a route does not say who may use it.
    """
    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.on_response_prepare.append(_finish)
    routing = Routing(app)
    guard = Guard(
        routing,
        door.identities,
        hosts=door.hosts,
        cookie=door.cookie,
        away_page=_away_page,
        address=door.routes.place.address,
    )
    app.middlewares.append(guard.answer)
    routes = Routes(board, serving, views, unpublished_ms_max=unpublished_ms_max, now_ms=now_ms)
    LiveRoutes(board, guard, streams_max=streams_max).add_to(routing)
    routing.get("/api/quality", routes.quality, METRICS, name="quality")
    routing.get("/api/partitions", routes.partitions, INSTALLATION, name="partitions")
    door.routes.add_to(routing)
    if replay is not None:
        replay.add_to(routing, door.noting)
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
        forwarding.add_to(routing, [*OPERATIONS, *door.routes.api.described, *(ALERT_OPERATIONS if alerts else [])])
    Pages().add_to(routing)
    routing.check()
    app[ROUTING] = routing
    return app


def make_runner(app: web.Application, drain_seconds_max: float) -> web.AppRunner:
    """The application ready to listen; a page that goes away ends its handlers."""
    return GuardedRunner(
        app, handler_cancellation=True, shutdown_timeout=drain_seconds_max, max_line_size=LINE_BYTES_MAX
    )


class Routes:
    """HTTP to and from the board and the queries; nothing is computed here."""

    def __init__(
        self,
        board: LiveBoard,
        serving: Serving,
        views: Views | None,
        *,
        unpublished_ms_max: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._board = board
        self._serving = serving
        self._views = views
        self._unpublished_ms_max = unpublished_ms_max
        self._now_ms = now_ms

    async def quality(self, request: web.Request) -> web.Response:
        """The quality of each customer over the last `hours` (whole hours, the running one included)."""
        try:
            hours = int(request.query.get("hours", "24"))
        except ValueError:
            hours = 0
        if not 1 <= hours <= HOURS_MAX:
            return _json({"error": "hours", "detail": f"hours is a whole number from 1 to {HOURS_MAX}"}, status=400)
        now_ms = self._now_ms()
        this_hour = datetime.fromtimestamp(now_ms / 1_000, UTC).replace(minute=0, second=0, microsecond=0)
        since = this_hour - timedelta(hours=hours - 1)
        scope = principal_of(request).scope
        try:
            found = await self._serving.rollups_since(since, scope)
        except PostgresAway:
            return _json({"error": "away", "detail": "Postgres does not answer"}, status=503)
        except NotPublished:
            return _json({"error": "unpublished", "detail": "the finalizer has not published yet"}, status=503)
        except QueryRefused:
            return _json({"error": "refused", "detail": "Postgres refuses the query"}, status=500)
        # The table is not old because there are no viewers. It is old if a finished view is not in it.
        published_ms = _ms(found.published_at)
        missing_since_ms = self._board.finished_after(published_ms or 0, scope)
        return _json(
            {
                "now_ms": now_ms,
                "hours": hours,
                "newest_hour_ms": _ms(found.newest_hour),
                "published_ms": published_ms,
                "missing_since_ms": missing_since_ms,
                "is_old": missing_since_ms is not None and now_ms - missing_since_ms > self._unpublished_ms_max,
                "customers_omitted": found.customers_omitted,
                "gathered_dimensions": found.gathered,
                "customers": [
                    asdict(quality) for quality in qualities(found.sums, found.startups, found.sources, found.by_source)
                ],
            }
        )

    async def partitions(self, _: web.Request) -> web.Response:
        """Partitions and slots as the processor reports them now."""
        if self._views is None:
            return _lookups_off()
        try:
            found = await self._views.partitions()
        except (LookupsAway, LookupsRefused) as error:
            return _not_looked_up(error)
        return web.Response(body=found, content_type="application/json")


def _away_page() -> web.Response:
    return web.Response(body=_AWAY.read_bytes(), content_type="text/html", charset="utf-8", status=503)


def _lookups_off() -> web.Response:
    detail = "DASHBOARD_LOOKUP_URL and DASHBOARD_LOOKUP_TOKEN are not set"
    return _json({"error": "off", "detail": detail}, status=404)


def _not_looked_up(error: LookupsAway | LookupsRefused) -> web.Response:
    if isinstance(error, LookupsAway):
        return _json({"error": "away", "detail": "no slot of the processor answers for its partitions"}, status=503)
    return _json({"error": "refused", "detail": "the processor refuses the question"}, status=502)


def _ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1_000)


def _json(content: dict[str, Any], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json", status=status)


async def _finish(request: web.Request, response: web.StreamResponse) -> None:
    """Counts every answer and gives it the page's headers."""
    own_policy = response.headers.get(_POLICY)
    response.headers.update(_HEADERS)
    if own_policy is not None:
        response.headers[_POLICY] = own_policy
    # What is served changes with every release and every bucket; a cached page would lie about its age.
    response.headers["Cache-Control"] = "no-cache" if request.path.startswith("/static/") else "no-store"
    metrics.counter(DASHBOARD_REQUESTS).labels(request.match_info.route.name or "none", str(response.status)).inc()
