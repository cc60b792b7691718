"""The lookup endpoint: every slot answers for every key, itself or through the key's owner. Also serves the operator's view.

On a port and thread of its own, behind a bearer token.
"""

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiohttp
import msgspec
import structlog
from aiohttp import web
from yarl import URL

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.application import Application, Lookup, LookupWrong, Objects
from services.processor.runtime.http import quarantine
from services.processor.runtime.http.confirmation import OwnershipConfirmation
from services.processor.runtime.http.lookups import (
    ANSWER_SECONDS_MAX,
    CANDIDATE,
    PROXIED,
    Answering,
    Passing,
    Told,
    candidates_asked,
)
from services.processor.runtime.http.object_streams import Busy, ObjectAnswers
from services.processor.runtime.http.partitions import Operators
from services.processor.runtime.http.producer import Submitter
from services.processor.runtime.http.queries import Asking
from services.processor.runtime.http.routes import RequestLimits, Rest, add_routes, as_problems
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.objects.object_store import ObjectMissing, ObjectsAway, ObjectStore
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.replica import Replica
from services.rim.admin.http_thread import HttpThread
from services.rim.telemetry.metrics import counter
from shared.metrics import PROCESSOR_LOOKUPS
from shared.settings import Settings

log = structlog.get_logger(__name__)

RETRY_AFTER_SECONDS: Final = 1
#: The prefix of headers of a document's answer. They hold the fields that in other answers are beside `found`.
SAID: Final = "Playhead-"
#: What the owner may take, with its own share of it.
PROXY_SECONDS_MAX: Final = 2.0
PROXIED_AT_ONCE_MAX: Final = 64

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
    """Serves the application's lookups, its routes and `/partitions` for one replica of `slot`."""

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
        app.router.add_get("/partitions", self._partitions)
        app.router.add_get(quarantine.PATH, self._show_quarantine)
        app.router.add_post(quarantine.RELEASE_PATH, self._release_quarantined)
        app.cleanup_ctx.append(self._connected)
        if has_routes:
            app.cleanup_ctx.append(self._serving)
            add_routes(app.router, self._application, lambda: self._rest)
        return app

    async def _serving(self, _: web.Application) -> AsyncIterator[None]:
        """What the application's routes need. Begins after `_connected` and ends before it."""
        submitter = Submitter(self._settings, self._application)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._requests.at_once_max), headers=self._headers()
        )
        asking = Asking(self._application, self._replica, self._ownership, self._confirmation, session)
        partitions = self._application.partitions(self._settings.profile)
        self._rest = Rest(self._application, partitions, self._requests, asking, submitter)
        yield
        await session.close()
        submitter.close()

    def _headers(self) -> dict[str, str]:
        """What this slot says of itself to others."""
        return {"Authorization": f"Bearer {self._endpoint.token}", PROXIED: self._slot}

    async def _connected(self, _: web.Application) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=PROXY_SECONDS_MAX),
            connector=aiohttp.TCPConnector(limit=PROXIED_AT_ONCE_MAX),
            headers=self._headers(),
        )
        confirmation = self._confirmation = OwnershipConfirmation(self._ownership)
        self._answering = Answering(self._slot, self._replica, self._ownership, confirmation, self._session)
        self._quarantine = quarantine.QuarantineRoutes(self._replica, self._ownership, self._session)
        self._operators = Operators(
            self._application.name, self._slot, self._ownership, self._session, self._replica.standby_lag
        )

        def on_news() -> None:
            # The loop may have ended just before its thread is asked to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(confirmation.spread_news)

        self._ownership.start(on_news)
        yield
        await self._session.close()
        self._ownership.stop()

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if self._endpoint.admits(request.headers.get("Authorization", "")):
            return await handler(request)
        headers = {"WWW-Authenticate": 'Bearer realm="playhead lookups"'}
        raise web.HTTPUnauthorized(headers=headers, text="a bearer token is wanted\n")

    # Lookups.

    async def _look(self, lookup: Lookup, request: web.Request) -> web.StreamResponse:
        response: web.StreamResponse
        try:
            told = await self._tell(lookup, request, request.rel_url)
            where, response = told.where, await self._given(lookup, request, told)
        except LookupWrong as error:
            where, response = "here", _json(400, msgspec.json.encode({"why": str(error)}))
        except Unanswered as error:
            self._ownership.want()
            where, response = "nowhere", _later(str(error))
        except (Busy, ObjectsAway) as error:
            where, response = "here", _later(str(error))
        except ObjectMissing as error:
            where, response = (
                "here",
                _json(404, msgspec.json.encode({"why": f"the object {error} is not there any more"})),
            )
        except LookFailed as error:
            log.exception("lookup_failed", error=str(error))
            where, response = "here", _json(500, _RAISED)
        counter(PROCESSOR_LOOKUPS).labels(where, str(response.status)).inc()
        return response

    async def _given(self, lookup: Lookup, request: web.Request, told: Told) -> web.StreamResponse:
        """The answer, in the form in which this lookup gives it to others than slots."""
        if not lookup.is_document or told.status != 200 or PROXIED in request.headers:
            return _json(told.status, told.body)
        objects_of = lookup.objects_of
        if objects_of is None or self._objects is None:
            return _document(told.body)

        async def more(parameters: Mapping[str, str]) -> Objects | None:
            try:
                rest = await self._tell(lookup, request, request.rel_url.update_query(parameters))
            except (Unanswered, LookFailed) as error:
                raise ObjectsAway(f"the rest of the list is not to be had: {error}") from error
            return objects_of(_found(rest.body)) if rest.status == 200 else None

        return await self._objects.give(request, objects_of(_found(told.body)), more)

    async def _tell(self, lookup: Lookup, request: web.Request, url: URL) -> Told:
        unknown = url.query.keys() - lookup.parameters - {"stale"}
        if unknown or url.query.get("stale", "allow") != "allow":
            known = "".join(f"{name}=..., " for name in sorted(lookup.parameters))
            raise LookupWrong(f"the only thing that may be asked for is {known}stale=allow")
        parts = {name: value for name, value in url.query.items() if name in lookup.parameters}
        candidates = candidates_asked(lookup, {**parts, **request.match_info}, request.headers.get(CANDIDATE))
        asked = Passing(url.raw_path_qs, is_proxied=PROXIED in request.headers)
        return await self._answering.answer(lookup, candidates, asked, stale="stale" in url.query)

    # Operators.

    async def _show_quarantine(self, request: web.Request) -> web.Response:
        return await self._quarantine.show(request)

    async def _release_quarantined(self, request: web.Request) -> web.Response:
        return await self._quarantine.release(request)

    async def _partitions(self, request: web.Request) -> web.Response:
        worker = self._replica.worker
        here = None
        if worker is not None:
            with contextlib.suppress(TimeoutError, Unanswered):
                asked = worker.questions.ask(worker.status)
                here = await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_SECONDS_MAX)
        if PROXIED in request.headers:
            return _json(200, msgspec.json.encode(here)) if here else _later("no slot is worked here, or it is busy")
        return await self._operators.answer(here)


_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAISED: Final = msgspec.json.encode({"why": "the application raised on this question; see the log"})


def _json(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def _document(body: bytes) -> web.Response:
    """What an answer found and nothing else; the rest of it is in headers."""
    said = _fields.decode(body)
    found = said.pop("found")
    headers = {SAID + name.replace("_", "-").title(): bytes(raw).decode().strip('"') for name, raw in said.items()}
    return web.Response(body=bytes(found), content_type="application/json", headers=headers)


def _found(body: bytes) -> bytes:
    return bytes(_fields.decode(body)["found"])


def _later(why: str) -> web.Response:
    response = _json(503, msgspec.json.encode({"why": why}))
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
