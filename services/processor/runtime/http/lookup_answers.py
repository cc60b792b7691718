"""LookupAnswers: answers from this process's cores, from the owner in another process or, if the client accepts it, from a copy.

It never touches a core: it asks the slot's loop. The loop's answer is sent only if the group, asked afterwards, confirms that the
slot was the owner (see `confirmation`). A copy's answer says that it is stale, and is never 404.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from services.processor.engine.application.application import Candidate, Lookup
from services.processor.engine.routing import Local, Remote, route
from services.processor.runtime.http.confirmation import OwnershipConfirmation
from services.processor.runtime.http.hops import ANSWER_SECONDS_MAX
from services.processor.runtime.kafka.ownership import Ownership, boot_seconds
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.slot.worker import Worker
from services.processor.runtime.standby.copies import Standby
from shared.partitioning import partition_of

#: Which of the path's candidates a request that was passed on is about, by its place among them.
CANDIDATE: Final = "Playhead-Candidate"


class AnswerBody(msgspec.Struct, frozen=True):
    """The JSON of every answer, with what was found or null."""

    #: The slot that answered.
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
    found: msgspec.Raw | None


_answers: Final = msgspec.json.Decoder(AnswerBody)


class LookupAnswer(NamedTuple):
    """An answer, and where it comes from."""

    where: str
    status: int
    body: bytes


@dataclass(frozen=True)
class LookupRequest:
    """A request for a lookup."""

    lookup: Lookup
    #: What the path may mean, in order, each with its place among all candidates.
    candidates: list[tuple[int, Candidate]]
    #: The path with its query, as it is passed on.
    path: str
    #: Whether another slot has passed it on.
    is_proxied: bool
    accepts_stale: bool


class LookupAnswers:
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

    async def answer(self, request: LookupRequest) -> LookupAnswer:
        """The first of the candidates that is found. Raises `Unanswered` or `LookFailed`.

        Nothing is there only when the owner of every candidate says so.
        """
        absent: LookupAnswer | None = None
        unanswered = Unanswered("this slot does not have the partition")
        is_certain = True
        for place, candidate in request.candidates:
            answer = None
            for source in self._sources(request, place, candidate):
                try:
                    answer = await source
                    break
                except Unanswered as error:
                    unanswered = error
            if answer is None:
                is_certain = False
            elif answer.status != 404:
                return answer
            else:
                absent = answer
        if absent is None or not is_certain:
            raise unanswered
        return absent

    def _sources(
        self, request: LookupRequest, place: int, candidate: Candidate
    ) -> Iterator[Coroutine[Any, Any, LookupAnswer]]:
        """What can answer for a candidate, the best first. Each is looked for after the ones before it could not answer."""
        began_at = boot_seconds()
        partition = partition_of(candidate.key, self._ownership.owners.partitions)
        standby, worker = self._replica.standby, self._replica.worker
        if request.accepts_stale and standby is not None:
            yield self._from_copy(standby, request.lookup, candidate, partition)
        is_here = worker is not None and worker.queries.has(partition)
        if worker is not None and is_here:
            yield self._from_here(worker, request.lookup, candidate, partition, began_at)
        if request.is_proxied:
            return
        if not is_here or isinstance(route(candidate.key, self._ownership.owners), Remote):
            yield self._from_owner(request, place, candidate, began_at)
        if request.accepts_stale:
            for url in self._replica.standby_urls(partition):
                yield self._pass_on(url, request, place, "standby")

    async def _from_copy(self, standby: Standby, lookup: Lookup, candidate: Candidate, partition: int) -> LookupAnswer:
        asked = standby.questions.ask(partial(standby.look, lookup, candidate.subject, partition))
        try:
            looked = await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_SECONDS_MAX)
        except TimeoutError:
            raise Unanswered("the standby is busy") from None
        if looked.json is None:
            raise Unanswered("the copy does not have it, which proves nothing")
        body = AnswerBody(
            slot=self._slot,
            partition=partition,
            stale=True,
            age_ms=looked.age_ms,
            lag_records=None,
            copy_lag_records=looked.lag_records,
            found=msgspec.Raw(looked.json),
        )
        return LookupAnswer("copy", 200, msgspec.json.encode(body))

    async def _from_here(
        self, worker: Worker, lookup: Lookup, candidate: Candidate, partition: int, began_at: float
    ) -> LookupAnswer:
        deadline = began_at + ANSWER_SECONDS_MAX
        queries = worker.queries
        asked = queries.questions.ask(partial(queries.look, lookup, candidate.subject, partition))
        looked = await self._confirmation.confirmed(asked, partition, deadline)
        body = AnswerBody(
            slot=self._slot,
            partition=partition,
            stale=False,
            age_ms=round((time.monotonic() - looked.committed_at) * 1000),
            lag_records=looked.lag_records,
            copy_lag_records=None,
            found=None if looked.json is None else msgspec.Raw(looked.json),
        )
        answer = LookupAnswer("here", 404 if looked.json is None else 200, msgspec.json.encode(body))
        # A pause right here: what was true then may be old now.
        if boot_seconds() > deadline:
            raise Unanswered("the answer came too late")
        return answer

    async def _from_owner(
        self, request: LookupRequest, place: int, candidate: Candidate, began_at: float
    ) -> LookupAnswer:
        if not isinstance(route(candidate.key, self._ownership.owners), Remote):
            # The known owners name no slot, or this slot before its loop has the partition: ask the group once again.
            await self._confirmation.newer(began_at, began_at + ANSWER_SECONDS_MAX)
        owner = route(candidate.key, self._ownership.owners)
        if isinstance(owner, Remote):
            return await self._pass_on(owner.url, request, place, "there")
        raise Unanswered("the partition is being taken" if isinstance(owner, Local) else "no slot has the partition")

    async def _pass_on(self, url: str, request: LookupRequest, place: int, where: str) -> LookupAnswer:
        headers = {CANDIDATE: str(place)}
        try:
            async with self._session.get(url + request.path, headers=headers, allow_redirects=False) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"the owner at {url} did not answer: {type(error).__name__}") from error
        if answer.status == 503:
            raise Unanswered("the owner is not ready to answer")
        if answer.status != 200 and not (answer.status == 404 and _is_of_a_lookup(body)):
            # Such as 401, or the 404 of a slot of another release, which does not have this lookup.
            raise Unanswered(f"the owner at {url} answered {answer.status}")
        return LookupAnswer(where, answer.status, body)


def _is_of_a_lookup(body: bytes) -> bool:
    try:
        _answers.decode(body)
    except msgspec.MsgspecError:
        return False
    return True
