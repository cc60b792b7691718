"""The lookup endpoint: every slot answers for every key, itself or through the key's owner. Also serves the operator's view.

On a port and thread of its own. Each caller has a bearer token of its own, and the scopes of its credential.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

import aiohttp
from aiohttp import web

from services.processor.engine.application.application import Application, Lookup
from services.processor.runtime.http import quarantine
from services.processor.runtime.http.confirmation import OwnershipConfirmation
from services.processor.runtime.http.hops import PROXIED, passing_headers, passing_session
from services.processor.runtime.http.lookup_answers import LookupAnswers
from services.processor.runtime.http.lookups import Lookups
from services.processor.runtime.http.object_streams import ObjectAnswers
from services.processor.runtime.http.partitions import PartitionsRoute
from services.processor.runtime.http.producer import Submitter
from services.processor.runtime.http.queries import OwnerQueries
from services.processor.runtime.http.routes import ApplicationRoutes, RequestLimits, add_routes, as_problems
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.objects.object_store import ObjectStore
from services.processor.runtime.slot.replica import Replica
from services.rim.admin.http_thread import HttpThread
from services.rim.http.admission import Admission
from services.rim.http.credentials import Credentials
from services.rim.http.tls import connector
from shared.settings import Settings


@dataclass(frozen=True)
class Endpoint:
    """Where the endpoint listens, whom it admits, and with which token it passes requests on."""

    host: str
    port: int
    token: str
    credentials: Credentials
    #: Of the listener; None: plain HTTP.
    tls: ssl.SSLContext | None = None
    #: PEM file of the authorities that other slots' certificates are checked with; empty: the system's.
    ca_file: str = ""


class LookupServer(HttpThread):
    """Serves the application's lookups, its routes and the routes of operators for one replica of `slot`."""

    def __init__(
        self,
        application: Application,
        endpoint: Endpoint,
        *,
        slot: str,
        ownership: Ownership,
        replica: Replica,
        settings: Settings,
        requests: RequestLimits,
        objects: ObjectStore | None = None,
    ) -> None:
        super().__init__("lookups", endpoint.host, endpoint.port, self._app, endpoint.tls)
        self._objects = None if objects is None else ObjectAnswers(objects)
        self._application = application
        self._endpoint = endpoint
        self._slot = slot
        self._ownership = ownership
        self._replica = replica
        self._settings = settings
        self._requests = requests

    def _app(self) -> web.Application:
        has_routes = bool(self._application.routes)
        admission = Admission(self._endpoint.credentials, PROXIED)
        app = web.Application(
            middlewares=[as_problems, admission.admit] if has_routes else [admission.admit],
            client_max_size=self._requests.body_bytes_max,
        )
        for lookup in self._application.lookups:
            route = app.router.add_get(lookup.path, partial(self._look, lookup))
            admission.want(route, "lookups" if lookup.objects_of is None else "objects")
        admission.want(app.router.add_get("/partitions", self._show_partitions), "partitions")
        for route in (
            app.router.add_get(quarantine.PATH, self._show_quarantine),
            app.router.add_post(quarantine.RELEASE_PATH, self._release_quarantined),
        ):
            admission.want(route, "operators")
        app.cleanup_ctx.append(self._connected)
        if has_routes:
            app.cleanup_ctx.append(self._serving)
            add_routes(app.router, self._application, lambda: self._routes, admission)
        return app

    async def _serving(self, _: web.Application) -> AsyncIterator[None]:
        """What the application's routes need. Begins after `_connected` and ends before it."""
        submitter = Submitter(self._settings, self._application)
        # No total time-out: each request has its own deadline.
        session = aiohttp.ClientSession(
            connector=connector(self._endpoint.ca_file, limit=self._requests.at_once_max),
            headers=passing_headers(self._endpoint.token, self._slot),
        )
        queries = OwnerQueries(self._application, self._replica, self._ownership, self._confirmation, session)
        partitions = self._application.partitions(self._settings.profile)
        self._routes = ApplicationRoutes(self._application, partitions, self._requests, queries, submitter)
        yield
        await session.close()
        submitter.close()

    async def _connected(self, _: web.Application) -> AsyncIterator[None]:
        """What lookups and operators need."""
        loop = asyncio.get_running_loop()
        session = passing_session(self._endpoint.token, self._slot, self._endpoint.ca_file)
        confirmation = self._confirmation = OwnershipConfirmation(self._ownership)
        answers = LookupAnswers(self._slot, self._replica, self._ownership, confirmation, session)
        self._lookups = Lookups(answers, self._ownership, self._objects)
        self._quarantine = quarantine.QuarantineRoutes(self._replica, self._ownership, session)
        self._partitions = PartitionsRoute(self._application.name, self._slot, self._replica, self._ownership, session)

        def on_reply() -> None:
            # The loop may have ended just before its thread is asked to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(confirmation.note_reply)

        self._ownership.start(on_reply)
        yield
        await session.close()
        self._ownership.stop()

    # The objects that serve exist only while the server runs, and routes are added before.

    async def _look(self, lookup: Lookup, request: web.Request) -> web.StreamResponse:
        return await self._lookups.serve(lookup, request)

    async def _show_partitions(self, request: web.Request) -> web.Response:
        return await self._partitions.show(request)

    async def _show_quarantine(self, request: web.Request) -> web.Response:
        return await self._quarantine.show(request)

    async def _release_quarantined(self, request: web.Request) -> web.Response:
        return await self._quarantine.release(request)
