"""The collector's HTTP application: its paths, and the headers of every answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import Counter

from services.collector.http.recording_routes import RecordingRoutes
from services.collector.http.routes import Routes
from services.collector.sink.sink import Sink
from services.rim.admin.admin import Check
from services.rim.admin.guarded_runner import GuardedRunner
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_REQUESTS


@dataclass
class Drain:
    """Whether the collector is stopping: not ready for new clients, and asking the present ones to leave."""

    begun: bool = False

    def readiness(self, sink: Sink) -> Check:
        """Whether clients should be sent here.

        An unreachable broker does not count: all collectors would leave at once, and clients would get an error without CORS
        headers. They get a 503 from here.
        """
        if self.begun:
            return Check(False, "draining")
        return sink.health()


def make_app(routes: Routes, recordings: RecordingRoutes, drain: Drain) -> web.Application:
    """The application with these handlers."""
    app = web.Application()
    app.on_response_prepare.append(_finisher(drain))
    app.router.add_get("/", routes.index, name="index")
    app.router.add_get("/favicon.ico", routes.favicon, name="favicon")
    app.router.add_post("/", routes.mux, name="mux")
    app.router.add_post("/cmcd/{key}", routes.cmcd, name="cmcd")
    app.router.add_post("/epas/{key}", routes.epas, name="epas")
    app.router.add_post("/v1/beacons", routes.native, name="native")
    # A HEAD request for the image shows it to no viewer.
    app.router.add_get("/v1/beacons.gif", routes.pixel, name="pixel", allow_head=False)
    app.router.add_get("/v1/beacons/schema.json", routes.schema, name="schema")
    app.router.add_post("/v1/traces", routes.otlp, name="otlp")
    app.router.add_post("/v1/api-calls", routes.api_calls, name="api-calls")
    app.router.add_get("/v1/api-calls/schema.json", routes.api_calls_schema, name="api-calls-schema")
    app.router.add_post("/recordings/{session}", recordings.upload, name="recordings")
    app.router.add_route("OPTIONS", "/{path:.*}", routes.preflight, name="preflight")
    app.router.add_post("/{path:.*}", routes.mux, name="mux-other")
    app.router.add_route("*", "/{path:.*}", routes.nothing_here, name="nothing")
    return app


def make_runner(app: web.Application, drain_seconds_max: float) -> web.AppRunner:
    """The application ready to listen. A client that closes the connection does not cancel its request: the received data is
    stored."""
    return GuardedRunner(app, handler_cancellation=False, shutdown_timeout=drain_seconds_max)


def _finisher(drain: Drain) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Counts every answer, errors of any kind too, and gives it the headers that let a page's script read it."""
    requests = metrics.counter(COLLECTOR_REQUESTS)
    counted: dict[tuple[str, int], Counter] = {}

    async def finish(request: web.Request, response: web.StreamResponse) -> None:
        headers = response.headers
        origin = request.headers.get("Origin")
        # Browsers write origins in ASCII.
        if origin is None or not origin.isascii():
            headers["Access-Control-Allow-Origin"] = "*"
        else:
            # Whether the page's request has credentials cannot be seen, and "*" fails those that did.
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Allow-Credentials"] = "true"
            headers["Vary"] = "Origin"
            headers["Access-Control-Expose-Headers"] = "Retry-After"
        if drain.begun:
            response.force_close()
            headers["Connection"] = "close"
        name = request.match_info.route.name or "none"
        counter = counted.get((name, response.status))
        if counter is None:
            counter = counted[name, response.status] = requests.labels(name, str(response.status))
        counter.inc()

    return finish
