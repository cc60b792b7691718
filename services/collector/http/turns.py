"""Turns: lets one request at a time do some work, fair to parties. A party that asks for many turns waits behind others."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TooManyWaiting(RuntimeError):
    """The party has as many requests waiting as it may, or all parties together have."""


class Turns:
    """Gives turns to parties one after the other. Use it on the event loop's thread."""

    def __init__(self, waiting_by_party_max: int, waiting_max: int) -> None:
        self._by_party_max = waiting_by_party_max
        self._waiting_max = waiting_max
        self._is_taken = False
        #: In the order of the parties' next turns.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self.waiting = 0

    @asynccontextmanager
    async def turn(self, party: str) -> AsyncIterator[None]:
        """Holds the turn for as long as the context lasts. Raises `TooManyWaiting`."""
        if self._is_taken:
            await self._wait(party)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, party: str) -> None:
        queue = self._waiting.get(party) or deque()
        if len(queue) >= self._by_party_max or self.waiting >= self._waiting_max:
            raise TooManyWaiting(party)
        self._waiting[party] = queue
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(called)
        self.waiting += 1
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                # The turn was handed over at the moment the request was cancelled.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            party, queue = next(iter(self._waiting.items()))
            del self._waiting[party]
            called = queue.popleft()
            self.waiting -= 1
            if queue:
                self._waiting[party] = queue
            if not called.cancelled():
                # It stays taken: the waiter that is called has it before any other can ask.
                called.set_result(None)
                return
        self._is_taken = False
