"""The queue of look-ups of credentials: addresses take turns, so that the flood of one address delays no other.

A credential costs a question to Postgres before anything is known of who sends it, and anybody can invent one. Logins and links are
credentials too: the questions of public routes take the same turns.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from services.accounts.core.sites import site_of
from services.rim.database.pool import PostgresAway
from services.rim.turns.fair_turns import FairTurns

#: Questions under way. Of a pool that has other work too it leaves some connections.
AT_ONCE_MAX: Final = 3
#: Of one address. A page opens with some twenty requests, and a proxy that is not declared is one address for everybody.
WAITING_MAX: Final = 200
#: For a turn. Where Postgres hangs, those under way end by their own deadline.
WAIT_SECONDS_MAX: Final = 2.0


class TooManyWaiting(PostgresAway):
    """The address has as many requests waiting as it may."""


class CredentialQueue:
    """Some at a time; then the addresses that wait in turn, of each the oldest request. Belongs to one event loop."""

    def __init__(self, *, wait_seconds_max: float = WAIT_SECONDS_MAX) -> None:
        self._wait_seconds_max = wait_seconds_max
        self._turns = FairTurns(AT_ONCE_MAX, of_one=AT_ONCE_MAX)

    @asynccontextmanager
    async def turn(self, address: str | None) -> AsyncIterator[None]:
        """Holds a turn for as long as the context lasts. Raises `TooManyWaiting`, or `PostgresAway` when none comes in time.

        Who holds one takes no other: holders that wait for each other keep all turns.
        """
        party = site_of(address)
        if self._turns.waiting(party) >= WAITING_MAX:
            raise TooManyWaiting(party)
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                await self._turns.take(party)
        except TimeoutError:
            raise PostgresAway("turn") from None
        try:
            yield
        finally:
            self._turns.give_back(party)
