"""The queue of look-ups of credentials: addresses take turns, so that the flood of one address delays no other.

A credential costs a question to Postgres before anything is known of who sends it, and anybody can invent one. Logins and links are
credentials too: the questions of public routes take the same turns.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from services.rim.database.pool import PostgresAway
from shared.http.peer import truncated_ip

#: Questions under way: fewer than the pool has connections, which other work needs too.
AT_ONCE_MAX: Final = 3
#: Of one address. A page opens with some twenty requests, and a proxy that is not declared is one address for everybody.
WAITING_MAX: Final = 200
#: For a turn. Where Postgres hangs, those under way end by their own deadline.
WAIT_SECONDS_MAX: Final = 2.0
#: A site's network (RFC 6177): who has one address of it has all of them.
_IPV6_SITE_BITS: Final = 64


class TooManyWaiting(PostgresAway):
    """The address has as many requests waiting as it may."""


class CredentialQueue:
    """Some at a time; then the addresses that wait in turn, of each the oldest request. Belongs to one event loop."""

    def __init__(self, *, wait_seconds_max: float = WAIT_SECONDS_MAX) -> None:
        self._wait_seconds_max = wait_seconds_max
        self._under_way = 0
        #: By address, in the order of the addresses' next turns.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, address: str | None) -> AsyncIterator[None]:
        """Holds a turn for as long as the context lasts. Raises `TooManyWaiting`, or `PostgresAway` when none comes in time.

        Who holds one takes no other: holders that wait for each other keep all turns.
        """
        if self._under_way < AT_ONCE_MAX:
            self._under_way += 1
        else:
            await self._wait(truncated_ip(address, 32, _IPV6_SITE_BITS) or "(unknown)")
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, party: str) -> None:
        queue = self._waiting.setdefault(party, deque())
        if len(queue) >= WAITING_MAX:
            raise TooManyWaiting(party)
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(called)
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                await called
        except (asyncio.CancelledError, TimeoutError) as error:
            self._leave(party, called)
            if isinstance(error, TimeoutError):
                raise PostgresAway("turn") from None
            raise

    def _leave(self, party: str, called: asyncio.Future[None]) -> None:
        if called.done() and not called.cancelled():
            # The turn was handed over at the moment the request was given up.
            self._pass_on()
            return
        queue = self._waiting.get(party)
        if queue is not None:
            with contextlib.suppress(ValueError):
                queue.remove(called)
            if not queue:
                del self._waiting[party]

    def _pass_on(self) -> None:
        while self._waiting:
            party, queue = next(iter(self._waiting.items()))
            del self._waiting[party]
            called = queue.popleft()
            if queue:
                # Behind the other addresses.
                self._waiting[party] = queue
            if not called.done():
                # It stays taken: the one that is called has it before any other can ask.
                called.set_result(None)
                return
        self._under_way -= 1
