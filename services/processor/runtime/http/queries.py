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

#: Where owners are asked by other slots.
HOP_PATH: Final = "/-/ask"
#: Between two tries while no owner can answer.
PAUSE_SECONDS: Final = 0.05
#: What the way there and back may add to what the owner was given.
WAY_SECONDS_MAX: Final = 1.0


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """A query to an owner."""

    query: str
    partition: int
    subject: bytes
    #: Whether to wait until there is an answer; and how long all may take.
    waits: bool
    seconds_max: float


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What an owner says."""

    found: bytes | None


class Asking:
    """Asks for this process, which is one replica of its slot."""

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
            hop = Hop(step.query.name, step.partition, step.subject, isinstance(step, Await), deadline - boot_seconds())
            try:
                return await self._once(hop)
            except Unanswered:
                if boot_seconds() + PAUSE_SECONDS >= deadline:
                    raise
            self._ownership.want()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _once(self, hop: Hop) -> bytes | None:
        worker = self._replica.worker
        if worker is not None and hop.partition in worker.partitions:
            return await self.here(hop)
        owners = self._ownership.owners
        owner = owners.by_partition.get(hop.partition)
        if owner is None or owner.url is None or owner.url == owners.url:
            raise Unanswered("nobody is known to have the partition")
        return await self._there(owner.url, hop)

    async def here(self, hop: Hop) -> bytes | None:
        """Answers as the owner. Raises `Unanswered` or `LookFailed`."""
        query, worker = self._queries.get(hop.query), self._replica.worker
        if query is None:
            raise Unanswered(f"this version does not know the question {hop.query}")
        if worker is None or hop.partition not in worker.partitions:
            raise Unanswered("this slot does not have the partition")
        deadline = boot_seconds() + hop.seconds_max
        found: bytes | None
        try:
            async with asyncio.timeout(hop.seconds_max):
                if hop.waits:
                    until = time.monotonic() + hop.seconds_max
                    asked = worker.questions.ask(partial(worker.watch, query, hop.subject, hop.partition, until))
                    watch: Future[tuple[bytes | None, str]] = await asyncio.wrap_future(asked)
                    found, member_id = await asyncio.wrap_future(watch)
                else:
                    question = partial(worker.ask, query, hop.subject, hop.partition)
                    found, member_id = await asyncio.wrap_future(worker.questions.ask(question))
        except TimeoutError:
            raise Unanswered("not yet" if hop.waits else "the slot is busy") from None
        await self._confirmation.confirm(hop.partition, member_id, boot_seconds(), deadline)
        return found

    async def _there(self, url: str, hop: Hop) -> bytes | None:
        patience = aiohttp.ClientTimeout(total=hop.seconds_max + WAY_SECONDS_MAX)
        try:
            async with self._session.post(
                url + HOP_PATH, data=msgspec.msgpack.encode(hop), timeout=patience, allow_redirects=False
            ) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"the owner at {url} did not answer: {type(error).__name__}") from error
        if answer.status == 500:
            raise LookFailed(f"{hop.query} at {url}")
        if answer.status != 200:
            raise Unanswered(f"the owner at {url} is not ready to answer: {answer.status}")
        return msgspec.msgpack.decode(body, type=Answer).found
