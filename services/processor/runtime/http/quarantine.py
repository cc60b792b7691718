"""Quarantine, for operators: `GET /quarantine` lists the quarantined keys of all slots, `POST /quarantine/release` releases."""

import base64
import binascii
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from services.processor.runtime.http.hops import PROXIED, ask_here, ask_other_owners
from services.processor.runtime.http.lookups import json_response
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.queries import SlotQueries
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus

PATH: Final = "/quarantine"
RELEASE_PATH: Final = "/quarantine/release"


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
        return await self._answer(request, lambda queries: queries.quarantined())

    async def release(self, request: web.Request) -> web.Response:
        """Releases the key of parameter `key` (or `key_base64`), or every key with `all=1`."""
        encoded = request.query.get("key_base64")
        try:
            key = request.query.get("key", "").encode() if encoded is None else base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return web.json_response({"why": "key_base64 is not base64"}, status=400)
        if not key and request.query.get("all") != "1":
            return web.json_response({"why": "name a key, or all=1"}, status=400)
        return await self._answer(request, lambda queries: queries.release_quarantined(key))

    async def _answer(
        self, request: web.Request, question: Callable[[SlotQueries], list[QuarantinedKeyStatus]]
    ) -> web.Response:
        answer = Quarantined()
        if self._replica.worker is not None:
            try:
                answer.keys += await ask_here(self._replica, question)
            except Unanswered as error:
                answer.problems[self._ownership.owners.url] = str(error)
        if PROXIED not in request.headers:
            for owner, theirs in await ask_other_owners(
                self._session, self._ownership, request.method, request.path_qs, Quarantined
            ):
                if isinstance(theirs, str):
                    answer.problems[str(owner.url)] = theirs
                else:
                    answer.keys += theirs.keys
                    answer.problems |= theirs.problems
        return json_response(200, msgspec.json.encode(answer))
