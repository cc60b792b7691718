"""The last step of a request to delete data: exports of the customer that are kept. They can be made again, without it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

import structlog

from services.accounts.core.deletions import Step
from services.accounts.store.customers import deletions
from services.query.core.resources.exports.exports import Job
from services.rim.database.pool import NotPublished, Postgres, PostgresAway, QueryRefused

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 5.0
_PASSING: Final = (PostgresAway, NotPublished, QueryRefused, OSError)


class Exports(Protocol):
    """What has the exports."""

    async def all(self) -> Sequence[Job]:
        """Every job that has not expired."""
        ...

    async def delete(self, job: Job) -> None:
        """Deletes a job, also one that is under way."""
        ...


class Deleting:
    """Belongs to one event loop. Several processes may do it: what is deleted is deleted once."""

    def __init__(self, postgres: Postgres, exports: Exports | None) -> None:
        """`postgres` is the accounts' database. Without exports there are none to delete."""
        self._postgres = postgres
        self._exports = exports

    async def keep(
        self, wait: Callable[[float], Awaitable[object]] = asyncio.sleep, rounds_max: int | None = None
    ) -> None:
        """Until cancelled, or for so many rounds."""
        rounds = 0
        while rounds_max is None or rounds < rounds_max:
            rounds += 1
            try:
                await self.look()
            except _PASSING as error:
                log.warning("deletions_wait", kind=type(error).__name__)
            await wait(LOOK_SECONDS)

    async def look(self) -> None:
        """Does what is due. Raises as `Postgres.ask`, and `OSError`."""
        for deletion_id, customer_id in await self._postgres.ask(
            partial(deletions.waiting_for, step=Step.EXPORTS.value)
        ):
            found = {"exports": await self._delete(customer_id)}
            end = partial(deletions.end_last, deletion_id=deletion_id, step=Step.EXPORTS.value, found=found)
            await self._postgres.ask(end)
            log.info("deletion_ended", deletion=deletion_id, **found)

    async def _delete(self, customer_id: str) -> int:
        if self._exports is None:
            return 0
        own = [job for job in await self._exports.all() if job.whose.has(customer_id)]
        for job in own:
            await self._exports.delete(job)
        return len(own)
