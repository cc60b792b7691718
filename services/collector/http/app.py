"""The collector's HTTP application: its paths, and the headers of every answer."""

from typing import Final

from aiohttp import web

from services.collector.http.direct import Direct
from services.collector.http.finishing import Drain, Finishing
from services.collector.http.recordings.routes import RecordingRoutes
from services.collector.http.routes import Routes
from services.rim.admin.guarded_runner import GuardedRunner

DIRECT: Final = web.AppKey("direct", Direct)


def make_app(routes: Routes, recordings: RecordingRoutes, drain: Drain) -> web.Application:
    """The application with these handlers."""
    app = web.Application()
    finishing = Finishing(drain)
    app.on_response_prepare.append(finishing.on_prepare)
    app[DIRECT] = Direct(routes, finishing)
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
    return _Runner(app, handler_cancellation=False, shutdown_timeout=drain_seconds_max)


class _Runner(GuardedRunner):
    """Lets the application's `Direct` answer first."""

    async def setup(self) -> None:
        await super().setup()
        assert self.server is not None
        direct = self.app.get(DIRECT)
        if direct is not None:
            self.server.request_handler = direct.before(self.server.request_handler)
