"""Answers lookups: from this process's cores, from the owner in another process or, if the client accepts it, from a standby's
copy.

It never touches a core: it asks the slot's loop. The loop's answer is sent only if the group, asked afterwards, confirms that the
slot was the owner (see `confirmation`). A copy's answer says that it is stale, and is never 404.
"""

import asyncio
import contextlib
import time
from functools import partial
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from services.processor.engine.application.application import Candidate, Lookup
from services.processor.engine.routing import Local, Remote, route
from services.processor.runtime.http.confirmation import OwnershipConfirmation
from services.processor.runtime.kafka.ownership import Ownership, boot_seconds
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.slot.worker import Worker
from services.processor.runtime.standby.copies import Standby
from shared.partitioning import partition_of

#: Marks a request that another slot has passed on: it is answered here or not at all.
PROXIED: Final = "Playhead-Proxied"
#: Which of the path's candidates a request that was passed on is about, by its place among them.
CANDIDATE: Final = "Playhead-Candidate"
#: What an answer may take; older ones are not given.
ANSWER_SECONDS_MAX: Final = 1.0


class Answer(msgspec.Struct, frozen=True):
    """The JSON of every answer, with what was found or null."""

    #: Who answered.
    slot: str
    partition: int
    #: Whether a standby's copy answered: it may lack what the owner has answered already.
    stale: bool
    #: Since the owner's last commit; of a copy, for how long it may have lacked something, at the most.
    age_ms: int
    #: Input records that the owner had not folded; null while the end is not known, and where a copy answered.
    lag_records: int | None
    #: Changelog records that the copy lacked; null where the owner answered.
    copy_lag_records: int | None
    #: Whether all of it is committed.
    committed: bool
    found: msgspec.Raw | None


class Told(NamedTuple):
    """Where a question was answered, and how."""

    where: str
    status: int
    body: bytes


class Passing(NamedTuple):
    """What of a request is passed on: its path with the query, and whether it was passed on already."""

    path: str
    is_proxied: bool


class Answering:
    """Answers for this process, which is one replica of `slot`. Runs on the lookup thread's loop."""

    def __init__(
        self,
        slot: str,
        replica: Replica,
        ownership: Ownership,
        confirmation: OwnershipConfirmation,
        session: aiohttp.ClientSession,
    ) -> None:
        self._slot = slot
        self._replica = replica
        self._ownership = ownership
        self._confirmation = confirmation
        self._session = session

    async def answer(
        self, lookup: Lookup, candidates: list[tuple[int, Candidate]], asked: Passing, *, stale: bool
    ) -> Told:
        """The first of the candidates (with their places) that is found. Raises `Unanswered` or `LookFailed`.

        Nothing is there only when the owner of every candidate says so.
        """
        unanswered: Unanswered | None = None
        absent: Told | None = None
        for place, candidate in candidates:
            try:
                told = await self._answer(lookup, place, candidate, asked, stale=stale)
            except Unanswered as error:
                unanswered = error
                continue
            if told.status != 404:
                return told
            absent = told
        if unanswered is not None or absent is None:
            raise unanswered or Unanswered("nothing was asked")
        return absent

    async def _answer(self, lookup: Lookup, place: int, candidate: Candidate, asked: Passing, *, stale: bool) -> Told:
        partition = partition_of(candidate.key, self._ownership.owners.partitions)
        standby = self._replica.standby
        if stale and standby is not None:
            with contextlib.suppress(Unanswered):
                return await self._from_copy(standby, lookup, candidate, partition)
        try:
            return await self._from_owner(lookup, place, candidate, asked, partition)
        except Unanswered:
            if not stale or asked.is_proxied:
                raise
            for url in self._replica.standby_urls(partition):
                with contextlib.suppress(Unanswered):
                    return await self._proxy(url, place, asked, "standby")
            raise

    async def _from_copy(self, standby: Standby, lookup: Lookup, candidate: Candidate, partition: int) -> Told:
        asked = standby.questions.ask(partial(standby.look, lookup, candidate.subject, partition))
        try:
            looked = await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_SECONDS_MAX)
        except TimeoutError:
            raise Unanswered("the standby is busy") from None
        if looked.json is None:
            raise Unanswered("the copy does not have it, which proves nothing")
        answer = Answer(
            slot=self._slot,
            partition=partition,
            stale=True,
            age_ms=looked.age_ms,
            lag_records=None,
            copy_lag_records=looked.lag_records,
            committed=True,
            found=msgspec.Raw(looked.json),
        )
        return Told("copy", 200, msgspec.json.encode(answer))

    async def _from_owner(
        self, lookup: Lookup, place: int, candidate: Candidate, asked: Passing, partition: int
    ) -> Told:
        began_at = boot_seconds()
        key = candidate.key
        worker = self._replica.worker
        if worker is not None and partition in worker.partitions:
            try:
                return await self._from_here(worker, lookup, candidate, partition, began_at)
            except Unanswered:
                if asked.is_proxied or not isinstance(route(key, self._ownership.owners), Remote):
                    raise
        if asked.is_proxied:
            raise Unanswered("this slot does not have the partition")
        if not isinstance(route(key, self._ownership.owners), Remote):
            # The known owners name no slot, or this slot before its loop has the partition: ask the group once again.
            await self._confirmation.newer(began_at, began_at + ANSWER_SECONDS_MAX)
        where = route(key, self._ownership.owners)
        if isinstance(where, Remote):
            return await self._proxy(where.url, place, asked, "there")
        raise Unanswered("being taken" if isinstance(where, Local) else "nobody has the partition")

    async def _from_here(
        self, worker: Worker, lookup: Lookup, candidate: Candidate, partition: int, began_at: float
    ) -> Told:
        deadline = began_at + ANSWER_SECONDS_MAX
        asked = worker.questions.ask(partial(worker.look, lookup, candidate.subject, partition))
        try:
            looked, member_id = await asyncio.wait_for(asyncio.wrap_future(asked), deadline - boot_seconds())
        except TimeoutError:
            raise Unanswered("the slot is busy") from None
        await self._confirmation.confirm(partition, member_id, boot_seconds(), deadline)
        answer = Answer(
            slot=self._slot,
            partition=partition,
            stale=False,
            age_ms=round((time.monotonic() - looked.committed_at) * 1000),
            lag_records=looked.lag_records,
            copy_lag_records=None,
            committed=looked.is_committed,
            found=None if looked.json is None else msgspec.Raw(looked.json),
        )
        told = Told("here", 404 if looked.json is None else 200, msgspec.json.encode(answer))
        # A pause right here: what was true then may be old now.
        if boot_seconds() > deadline:
            raise Unanswered("the answer came too late")
        return told

    async def _proxy(self, url: str, place: int, asked: Passing, where: str) -> Told:
        headers = {CANDIDATE: str(place)}
        try:
            async with self._session.get(url + asked.path, headers=headers, allow_redirects=False) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"the owner at {url} did not answer: {type(error).__name__}") from error
        if answer.status == 503:
            raise Unanswered("the owner is not ready to answer")
        return Told(where, answer.status, body)


def candidates_asked(lookup: Lookup, parts: Any, place: str | None) -> list[tuple[int, Candidate]]:
    """The candidates to be answered for, with their places: all, or the one that was passed on. Raises `LookupWrong`."""
    found = list(enumerate(lookup.candidates_of(parts)))
    if place is None:
        return found
    return [numbered for numbered in found if str(numbered[0]) == place]
