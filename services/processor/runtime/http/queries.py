"""Queries: executes the steps of a request that query an owner, here or by one hop to another slot. Waits while a partition moves.

An owner's answer needs its confirmation (see `confirmation`). Runs on the lookup thread's loop.
"""

import asyncio
import time
from concurrent.futures import Future
from functools import partial
from typing import Final

import aiohttp
import msgspec

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.application import Application
from services.processor.engine.application.requests import Ask, Await
from services.processor.runtime.http.confirmation import OwnershipConfirmation
from services.processor.runtime.kafka.ownership import Ownership, boot_seconds
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.replica import Replica

#: Where other slots send their queries.
HOP_PATH: Final = "/-/ask"
#: Between two tries while no owner can answer.
PAUSE_SECONDS: Final = 0.05
#: What the way there and back may add to what the owner was given.
WAY_SECONDS_MAX: Final = 1.0


class OwnerQuery(msgspec.Struct, frozen=True, array_like=True):
    """A query to an owner."""

    query: str
    partition: int
    subject: bytes
    #: Whether to wait until there is an answer; and how long all may take.
    waits: bool
    seconds_max: float


class OwnerAnswer(msgspec.Struct, frozen=True, array_like=True):
    """An owner's answer."""

    found: bytes | None


class OwnerQueries:
    """Queries owners for this process, which is one replica of its slot."""

    def __init__(
        self,
        application: Application,
        replica: Replica,
        ownership: Ownership,
        confirmation: OwnershipConfirmation,
        session: aiohttp.ClientSession,
    ) -> None:
        self._queries = {query.name: query for query in application.queries}
        self._replica = replica
        self._ownership = ownership
        self._confirmation = confirmation
        self._session = session

    async def run(self, step: Ask | Await, deadline: float) -> bytes | None:
        """Executes the step, and repeats it while no owner can answer; until `deadline` (`boot_seconds`).

        Raises `Unanswered` or `LookFailed`.
        """
        while True:
            query = OwnerQuery(
                step.query.name, step.partition, step.subject, isinstance(step, Await), deadline - boot_seconds()
            )
            try:
                return await self._once(query)
            except Unanswered:
                if boot_seconds() + PAUSE_SECONDS >= deadline:
                    raise
            self._ownership.want()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _once(self, query: OwnerQuery) -> bytes | None:
        worker = self._replica.worker
        if worker is not None and worker.queries.has(query.partition):
            return await self.here(query)
        owners = self._ownership.owners
        owner = owners.by_partition.get(query.partition)
        if owner is None or owner.url is None or owner.url == owners.url:
            raise Unanswered("no slot is known to have the partition")
        return await self._there(owner.url, query)

    async def here(self, asked: OwnerQuery) -> bytes | None:
        """Answers as the owner. Raises `Unanswered` or `LookFailed`."""
        query, worker = self._queries.get(asked.query), self._replica.worker
        if query is None:
            raise Unanswered(f"this version does not know the query {asked.query}")
        if worker is None or not worker.queries.has(asked.partition):
            raise Unanswered("this slot does not have the partition")
        deadline = boot_seconds() + asked.seconds_max
        queries = worker.queries
        answer: Future[tuple[bytes | None, str]]
        if asked.waits:
            until = time.monotonic() + asked.seconds_max
            watching = queries.questions.ask(partial(queries.watch, query, asked.subject, asked.partition, until))
            try:
                answer = await asyncio.wait_for(asyncio.wrap_future(watching), asked.seconds_max)
            except TimeoutError:
                raise Unanswered("the slot is busy") from None
        else:
            answer = queries.questions.ask(partial(queries.ask, query, asked.subject, asked.partition))
        return await self._confirmation.confirmed(answer, asked.partition, deadline)

    async def _there(self, url: str, query: OwnerQuery) -> bytes | None:
        patience = aiohttp.ClientTimeout(total=query.seconds_max + WAY_SECONDS_MAX)
        try:
            async with self._session.post(
                url + HOP_PATH, data=msgspec.msgpack.encode(query), timeout=patience, allow_redirects=False
            ) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"the owner at {url} did not answer: {type(error).__name__}") from error
        if answer.status == 500:
            raise LookFailed(f"{query.query} at {url}")
        if answer.status != 200:
            raise Unanswered(f"the owner at {url} is not ready to answer: {answer.status}")
        return msgspec.msgpack.decode(body, type=OwnerAnswer).found
