"""Turns that parties take one after the other, such as callers or addresses: the many that one waits for delay no other."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairTurns:
    """So many turns at a time, and of one party so many; then the parties that wait in turn, of each the oldest.

    Belongs to one event loop.
    """

    def __init__(self, at_once: int, *, of_one: int) -> None:
        self._at_once = at_once
        self._of_one = of_one
        self._taken: Counter[str] = Counter()
        #: By party, in the order of the parties' next turns.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def waiting(self, party: str) -> int:
        """How many of a party wait."""
        return len(self._waiting.get(party, ()))

    def is_free(self, party: str) -> bool:
        """Whether a turn of the party would begin at once."""
        return self._taken.total() < self._at_once and self._taken[party] < self._of_one

    @asynccontextmanager
    async def turn(self, party: str) -> AsyncIterator[None]:
        """Holds a turn for as long as the context lasts."""
        await self.take(party)
        try:
            yield
        finally:
            self.give_back(party)

    async def take(self, party: str) -> None:
        """Takes a turn, once there is one; who is cancelled meanwhile has none. `give_back` ends it."""
        if self.is_free(party):
            self._taken[party] += 1
            return
        queue = self._waiting.setdefault(party, deque())
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(called)
        try:
            await called
        except asyncio.CancelledError:
            self._leave(party, called)
            raise

    def give_back(self, party: str) -> None:
        """Ends a turn; the next ones begin."""
        self._taken[party] -= 1
        if not self._taken[party]:
            del self._taken[party]
        for waiting in list(self._waiting):
            if self._taken.total() >= self._at_once:
                return
            if self._taken[waiting] < self._of_one:
                self._call(waiting)

    def _call(self, party: str) -> None:
        queue = self._waiting.pop(party)
        # One that was cancelled leaves by itself; its place is not given away twice.
        while queue and (called := queue.popleft()):
            if not called.done():
                # It is taken at once: the one that is called has it before any other can ask.
                self._taken[party] += 1
                called.set_result(None)
                break
        if queue:
            # Behind the other parties.
            self._waiting[party] = queue

    def _leave(self, party: str, called: asyncio.Future[None]) -> None:
        if called.done() and not called.cancelled():
            # The turn was handed over at the moment at which it was given up.
            self.give_back(party)
            return
        queue = self._waiting.get(party)
        if queue is not None:
            with contextlib.suppress(ValueError):
                queue.remove(called)
            if not queue:
                del self._waiting[party]
