"""Hops: requests between the slots of an application. A request is passed on once at the most."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import aiohttp
import msgspec

from services.processor.engine.routing import Owner
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.queries import SlotQueries
from services.processor.runtime.slot.replica import Replica
from services.rim.http.tls import connector
from shared.codec import NO_JSON

T = TypeVar("T")

#: Marks a request that another slot has passed on: it is answered here or not at all.
PROXIED: Final = "Playhead-Proxied"
#: What an answer may take; older ones are not given.
ANSWER_SECONDS_MAX: Final = 1.0
#: What another slot may take, with its own share of it.
PROXY_SECONDS_MAX: Final = 2.0
PROXIED_AT_ONCE_MAX: Final = 64
OWNERS_ASKED_MAX: Final = 256


def passing_session(token: str, slot: str, ca_file: str) -> aiohttp.ClientSession:
    """A session for requests that `slot` passes on; raises as `connector`."""
    return aiohttp.ClientSession(
        connector=connector(ca_file, limit=PROXIED_AT_ONCE_MAX),
        timeout=aiohttp.ClientTimeout(total=PROXY_SECONDS_MAX),
        headers=passing_headers(token, slot),
    )


def passing_headers(token: str, slot: str) -> dict[str, str]:
    """What a request says that `slot` passes on."""
    return {"Authorization": f"Bearer {token}", PROXIED: slot}


async def ask_here(replica: Replica, question: Callable[[SlotQueries], T]) -> T:
    """Has the slot's loop answer `question`. Raises `Unanswered`."""
    worker = replica.worker
    if worker is None:
        raise Unanswered("no slot works here")
    asked = worker.queries.questions.ask(partial(question, worker.queries))
    try:
        return await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_SECONDS_MAX)
    except TimeoutError:
        raise Unanswered("the slot is busy") from None


async def ask_other_owners(
    session: aiohttp.ClientSession, ownership: Ownership, method: str, path: str, of: type[T]
) -> list[tuple[Owner, T | str]]:
    """Sends the request to every other owner with lookups, all at the same time: its answer, or why there is none."""

    async def ask(owner: Owner) -> T | str:
        try:
            async with session.request(method, f"{owner.url}{path}", allow_redirects=False) as answer:
                if answer.status != 200:
                    return f"answered {answer.status}"
                return msgspec.json.decode(await answer.read(), type=of)
        except (aiohttp.ClientError, TimeoutError, *NO_JSON) as error:
            return type(error).__name__

    owners = ownership.owners
    by_url = {owner.url: owner for owner in owners.by_partition.values() if owner.url not in {None, owners.url}}
    asked = list(by_url.values())[:OWNERS_ASKED_MAX]
    return list(zip(asked, await asyncio.gather(*map(ask, asked)), strict=True))
