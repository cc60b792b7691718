"""The lookup endpoint: every slot answers for every key, itself or through the key's owner. Also serves the operator's view.

On a port and thread of its own, behind a bearer token.
"""

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import aiohttp
from aiohttp import web

from services.processor.engine.application.application import Application, Lookup
from services.processor.runtime.http import quarantine
from services.processor.runtime.http.confirmation import OwnershipConfirmation
from services.processor.runtime.http.hops import passing_headers, passing_session
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
from shared.settings import Settings

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Endpoint:
    """Where the endpoint listens, and the token that it requires."""

    host: str
    port: int
    token: str

    def admits(self, authorization: str) -> bool:
        """Whether an Authorization header holds the token, as a bearer token."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self.token.encode())


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
        super().__init__("lookups", endpoint.host, endpoint.port, self._app)
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
        app = web.Application(
            middlewares=[as_problems, self._admit] if has_routes else [self._admit],
            client_max_size=self._requests.body_bytes_max,
        )
        for lookup in self._application.lookups:
            app.router.add_get(lookup.path, partial(self._look, lookup))
        app.router.add_get("/partitions", self._show_partitions)
        app.router.add_get(quarantine.PATH, self._show_quarantine)
        app.router.add_post(quarantine.RELEASE_PATH, self._release_quarantined)
        app.cleanup_ctx.append(self._connected)
        if has_routes:
            app.cleanup_ctx.append(self._serving)
            add_routes(app.router, self._application, lambda: self._routes)
        return app

    async def _serving(self, _: web.Application) -> AsyncIterator[None]:
        """What the application's routes need. Begins after `_connected` and ends before it."""
        submitter = Submitter(self._settings, self._application)
        # No total time-out: each request has its own deadline.
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._requests.at_once_max),
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
        session = passing_session(self._endpoint.token, self._slot)
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

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if self._endpoint.admits(request.headers.get("Authorization", "")):
            return await handler(request)
        headers = {"WWW-Authenticate": 'Bearer realm="playhead lookups"'}
        raise web.HTTPUnauthorized(headers=headers, text="a bearer token is wanted\n")

    # The objects that serve exist only while the server runs, and routes are added before.

    async def _look(self, lookup: Lookup, request: web.Request) -> web.StreamResponse:
        return await self._lookups.serve(lookup, request)

    async def _show_partitions(self, request: web.Request) -> web.Response:
        return await self._partitions.show(request)

    async def _show_quarantine(self, request: web.Request) -> web.Response:
        return await self._quarantine.show(request)

    async def _release_quarantined(self, request: web.Request) -> web.Response:
        return await self._quarantine.release(request)
