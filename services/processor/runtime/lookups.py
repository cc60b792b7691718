"""The lookup endpoint: every slot answers for every key, itself or through the key's owner; and the operator's view.

On a port and thread of its own, behind a bearer token. The thread never touches a core: it asks the slot's loop. What the loop
says is given only when the group, asked afterwards, confirms that the slot was the owner (see `ownership`).
"""

import asyncio
import base64
import binascii
import contextlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import aiohttp
import msgspec
import structlog
from aiohttp import web

from services.processor.engine.access import LookFailed
from services.processor.engine.application import Application, Lookup, LookupWrong
from services.processor.engine.routing import Local, Remote, route
from services.processor.runtime.operators import TAKES_HTML, Operators
from services.processor.runtime.ownership import Ownership, boot_seconds
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.worker import Worker
from services.rim.http_thread import HttpThread
from services.rim.metrics import counter
from shared.metrics import PROCESSOR_LOOKUPS
from shared.partitioning import partition_of

log = structlog.get_logger(__name__)

#: Marks a request that another slot has passed on: it is answered here or not at all.
PROXIED: Final = "Playhead-Proxied"
RETRY_AFTER_SECONDS: Final = 1
#: What an answer may take; older ones are not given.
ANSWER_SECONDS_MAX: Final = 1.0
#: What the owner may take, with its own share of it.
PROXY_SECONDS_MAX: Final = 2.0
PROXIED_AT_ONCE_MAX: Final = 64

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Endpoint:
    """Where the endpoint listens, and what it wants to be told first."""

    host: str
    port: int
    token: str

    def admits(self, authorization: str) -> bool:
        """Whether an Authorization header holds the token: as bearer, or as the password of Basic (browsers know no other)."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.encode(), self.token.encode())


class LookupServer(HttpThread):
    """Serves the application's lookups and `/partitions`. `worker` is who works the slot now, if anybody does here."""

    def __init__(
        self,
        application: Application,
        endpoint: Endpoint,
        *,
        slot: str,
        ownership: Ownership,
        worker: Callable[[], Worker | None],
    ) -> None:
        super().__init__("lookups", endpoint.host, endpoint.port, self._app)
        self._application = application
        self._endpoint = endpoint
        self._slot = slot
        self._ownership = ownership
        self._worker = worker

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._admit])
        for lookup in self._application.lookups:
            app.router.add_get(lookup.path, partial(self._look, lookup))
        app.router.add_get("/partitions", self._partitions)
        app.cleanup_ctx.append(self._connected)
        return app

    async def _connected(self, _: web.Application) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

        def on_news() -> None:
            # The loop may have ended just before its thread is told to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._spread_news)

        self._ownership.start(on_news)
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=PROXY_SECONDS_MAX),
            connector=aiohttp.TCPConnector(limit=PROXIED_AT_ONCE_MAX),
            headers={"Authorization": f"Bearer {self._endpoint.token}", PROXIED: self._slot},
        )
        self._operators = Operators(self._application.name, self._slot, self._ownership, self._session)
        yield
        await self._session.close()
        self._ownership.stop()

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if self._endpoint.admits(request.headers.get("Authorization", "")):
            return await handler(request)
        scheme = "Basic" if TAKES_HTML in request.headers.get("Accept", "") else "Bearer"
        headers = {"WWW-Authenticate": f'{scheme} realm="playhead lookups"'}
        return web.Response(status=401, headers=headers, text="a bearer token is wanted\n")

    # Lookups.

    async def _look(self, lookup: Lookup, request: web.Request) -> web.Response:
        is_proxied = PROXIED in request.headers
        try:
            answered, response = await self._answer(lookup, request, is_proxied=is_proxied)
        except LookupWrong as error:
            answered, response = "here", _json(400, {"why": str(error)})
        except Unanswered as error:
            self._ownership.want()
            answered, response = "nowhere", _later(str(error))
        except LookFailed as error:
            log.exception("lookup_failed", error=str(error))
            answered, response = "here", _json(500, {"why": "the application raised on this question; see the log"})
        counter(PROCESSOR_LOOKUPS).labels(answered, str(response.status)).inc()
        return response

    async def _answer(self, lookup: Lookup, request: web.Request, *, is_proxied: bool) -> tuple[str, web.Response]:
        began_at = boot_seconds()
        key = lookup.key_of(request.match_info)
        partition = partition_of(key, self._ownership.owners.partitions)
        worker = self._worker()
        if worker is not None and partition in worker.partitions:
            try:
                return "here", await self._answer_here(worker, lookup, key, partition, began_at)
            except Unanswered:
                if is_proxied or not isinstance(route(key, self._ownership.owners), Remote):
                    raise
        if is_proxied:
            raise Unanswered("this slot does not have the partition")
        if not isinstance(route(key, self._ownership.owners), Remote):
            # What is known names nobody, or this slot before it knows of it: worth one newer answer.
            await self._newer(began_at, began_at + ANSWER_SECONDS_MAX)
        where = route(key, self._ownership.owners)
        if isinstance(where, Remote):
            return "there", await self._proxy(where.url, request)
        raise Unanswered("being taken" if isinstance(where, Local) else "nobody has the partition")

    async def _answer_here(
        self, worker: Worker, lookup: Lookup, key: bytes, partition: int, began_at: float
    ) -> web.Response:
        deadline = began_at + ANSWER_SECONDS_MAX
        asked = worker.questions.ask(partial(worker.look, lookup, key, partition))
        try:
            looked, member_id = await asyncio.wait_for(asyncio.wrap_future(asked), deadline - boot_seconds())
        except TimeoutError:
            raise Unanswered("the slot is busy") from None
        await self._confirm(partition, member_id, boot_seconds(), deadline)
        envelope = {
            "slot": self._slot,
            "partition": partition,
            "age_ms": round((time.monotonic() - looked.committed_at) * 1000),
            "lag_records": looked.lag_records,
            "committed": looked.is_committed,
            "found": None if looked.json is None else msgspec.Raw(looked.json),
        }
        response = _json(404 if looked.json is None else 200, envelope)
        # A pause right here: what was true then may be old now.
        if boot_seconds() > deadline:
            raise Unanswered("the answer came too late")
        return response

    async def _confirm(self, partition: int, member_id: str, read_at: float, deadline: float) -> None:
        """Waits for the group to say that the member which read the rows was the partition's owner after it had."""
        while True:
            told = self._ownership.newest
            if told.asked_at >= read_at and told.confirms(partition, member_id):
                return
            if told.asked_at >= read_at and told.is_settled:
                raise Unanswered("the group does not confirm that this slot has the partition")
            await self._newer(max(read_at, told.asked_at), deadline)

    async def _newer(self, than: float, deadline: float) -> None:
        """Waits for an answer of the group to a question asked after `than`."""
        while self._ownership.newest.asked_at <= than:
            news = self._news
            self._ownership.want()
            try:
                await asyncio.wait_for(news.wait(), deadline - boot_seconds())
            except TimeoutError:
                raise Unanswered("the group does not say who has the partition") from None

    def _spread_news(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _proxy(self, url: str, request: web.Request) -> web.Response:
        try:
            async with self._session.get(url + request.rel_url.raw_path_qs, allow_redirects=False) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"the owner at {url} did not answer: {type(error).__name__}") from error
        if answer.status == 503:
            raise Unanswered("the owner is not ready to answer")
        return web.Response(status=answer.status, body=body, content_type="application/json")

    # Operators.

    async def _partitions(self, request: web.Request) -> web.Response:
        worker = self._worker()
        here = None
        if worker is not None:
            with contextlib.suppress(TimeoutError, Unanswered):
                asked = worker.questions.ask(worker.status)
                here = await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_SECONDS_MAX)
        if PROXIED in request.headers:
            return _json(200, here) if here is not None else _later("no slot is worked here, or it is busy")
        return await self._operators.answer(here, request.headers.get("Accept", ""))


def _json(status: int, body: Any) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


def _later(why: str) -> web.Response:
    response = _json(503, {"why": why})
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
