"""Quarantine, for operators: `GET /quarantine` lists the quarantined keys of all slots, `POST /quarantine/release` releases."""

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from services.processor.runtime.http.lookups import ANSWER_SECONDS_MAX, PROXIED
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus

PATH: Final = "/quarantine"
RELEASE_PATH: Final = "/quarantine/release"
OWNERS_ASKED_MAX: Final = 256


class Quarantined(msgspec.Struct):
    """The answer: of a listing the quarantined keys, of a release those that were released."""

    keys: list[QuarantinedKeyStatus] = []
    #: Slots that did not answer, by address, and why.
    problems: dict[str, str] = {}


class QuarantineRoutes:
    """Asks this slot, and every other owner once."""

    def __init__(self, replica: Replica, ownership: Ownership, session: aiohttp.ClientSession) -> None:
        self._replica = replica
        self._ownership = ownership
        self._session = session

    async def show(self, request: web.Request) -> web.Response:
        """Every quarantined key."""
        return await self._answer(request, lambda: self._worker_keys(None))

    async def release(self, request: web.Request) -> web.Response:
        """Releases the key of parameter `key` (or `key_base64`), or every key with `all=1`."""
        encoded = request.query.get("key_base64")
        try:
            key = request.query.get("key", "").encode() if encoded is None else base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return web.json_response({"why": "key_base64 is not base64"}, status=400)
        if not key and request.query.get("all") != "1":
            return web.json_response({"why": "name a key, or all=1"}, status=400)
        return await self._answer(request, lambda: self._worker_keys(key))

    def _worker_keys(self, release: bytes | None) -> list[QuarantinedKeyStatus]:
        worker = self._replica.worker
        return [] if worker is None else worker.quarantined(release)

    async def _answer(self, request: web.Request, here: Callable[[], list[QuarantinedKeyStatus]]) -> web.Response:
        answer = Quarantined()
        worker = self._replica.worker
        if worker is not None:
            try:
                asked = worker.questions.ask(here)
                keys = await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_SECONDS_MAX)
                answer.keys += keys
            except (TimeoutError, Unanswered) as error:
                answer.problems[self._ownership.owners.url] = str(error) or "busy"
        if PROXIED not in request.headers:
            owners = self._ownership.owners
            urls = {owner.url for owner in owners.by_partition.values() if owner.url not in {None, owners.url}}
            asked_urls = sorted(url for url in urls if url is not None)[:OWNERS_ASKED_MAX]
            for url, told in zip(
                asked_urls, await asyncio.gather(*(self._ask(url, request) for url in asked_urls)), strict=True
            ):
                if isinstance(told, str):
                    answer.problems[url] = told
                else:
                    answer.keys += told.keys
                    answer.problems |= told.problems
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def _ask(self, url: str, request: web.Request) -> Quarantined | str:
        try:
            async with self._session.request(request.method, url + request.path_qs, allow_redirects=False) as answer:
                if answer.status != 200:
                    return f"answered {answer.status}"
                return msgspec.json.decode(await answer.read(), type=Quarantined)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            return type(error).__name__
