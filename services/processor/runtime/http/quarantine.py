"""Quarantine, for operators: `GET /quarantine` lists the quarantined keys of all slots, `POST /quarantine/release` releases."""

import asyncio
import base64
import binascii
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from services.processor.runtime.http.hops import ANSWER_SECONDS_MAX, PROXIED, ask_here, ask_other_owners
from services.processor.runtime.http.lookups import json_response
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.releases import Released
from services.processor.runtime.slot.replica import Replica

PATH: Final = "/quarantine"
RELEASE_PATH: Final = "/quarantine/release"


class Quarantined(Released):
    """The answer: of a listing the quarantined keys, of a release what has become of it."""

    #: Slots that did not answer, by address, and why.
    problems: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, of_slot: Released) -> None:
        """Adds what a slot says of its keys."""
        self.keys += of_slot.keys
        self.kept |= of_slot.kept
        self.left += of_slot.left


class QuarantineRoutes:
    """Asks this slot, and every other owner once."""

    def __init__(self, replica: Replica, ownership: Ownership, session: aiohttp.ClientSession) -> None:
        self._replica = replica
        self._ownership = ownership
        self._session = session

    async def show(self, request: web.Request) -> web.Response:
        """Every quarantined key."""
        return await self._answer(request, self._listed)

    async def release(self, request: web.Request) -> web.Response:
        """Releases the key of parameter `key` (or `key_base64`), or every key with `all=1`; answers after their commits."""
        encoded = request.query.get("key_base64")
        try:
            key = request.query.get("key", "").encode() if encoded is None else base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return web.json_response({"why": "key_base64 is not base64"}, status=400)
        if not key and request.query.get("all") != "1":
            return web.json_response({"why": "name a key, or all=1"}, status=400)
        return await self._answer(request, partial(self._released, key))

    async def _listed(self) -> Released:
        return Released(await ask_here(self._replica, lambda queries: queries.quarantined()))

    async def _released(self, key: bytes) -> Released:
        until = time.monotonic() + ANSWER_SECONDS_MAX
        releasing = await ask_here(self._replica, lambda queries: queries.release_quarantined(key, until))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(releasing), ANSWER_SECONDS_MAX)
        except TimeoutError:
            raise Unanswered("the slot is busy, and may release the keys all the same") from None

    async def _answer(self, request: web.Request, here: Callable[[], Awaitable[Released]]) -> web.Response:
        answer = Quarantined()
        if self._replica.worker is not None:
            try:
                answer.add(await here())
            except Unanswered as error:
                answer.problems[self._ownership.owners.url] = str(error)
        if PROXIED not in request.headers:
            for owner, theirs in await ask_other_owners(
                self._session, self._ownership, request.method, request.path_qs, Quarantined
            ):
                if isinstance(theirs, str):
                    answer.problems[str(owner.url)] = theirs
                else:
                    answer.add(theirs)
                    answer.problems |= theirs.problems
        return json_response(200, msgspec.json.encode(answer))
