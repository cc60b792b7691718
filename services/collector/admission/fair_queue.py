"""A fair queue: one request at a time works. Customers share the time evenly; a customer's turns go round its addresses."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


class TooManyWaiting(RuntimeError):
    """The address or the customer has as many requests waiting as it may, or all together have."""


@dataclass(frozen=True)
class WaitingLimits:
    """How many requests may wait."""

    by_address_max: int
    by_customer_max: int
    all_max: int


#: Of one address, in the order of its requests.
_Queue = deque[asyncio.Future[None]]


class FairQueue:
    """Gives turns one after the other. Use it on the event loop's thread.

    The next turn is of the waiting customer that has used the least time (start-time fair queueing: Goyal, Vin, Cheng, 1997). A
    customer that did not wait has no claim to the time in which it did not: it begins at the present of those that wait.
    """

    def __init__(self, limits: WaitingLimits, now_seconds: Callable[[], float]) -> None:
        self._limits = limits
        self._now_seconds = now_seconds
        self._is_taken = False
        #: By customer and address, in the order of the addresses' next turns.
        self._waiting: dict[str, dict[str, _Queue]] = {}
        self._by_address: Counter[str] = Counter()
        self._by_customer: Counter[str] = Counter()
        #: Seconds that a customer has used, as compared with others.
        self._used: dict[str, float] = {}
        self._present = 0.0

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return self._by_customer.total()

    @asynccontextmanager
    async def turn(self, customer: str, address: str) -> AsyncIterator[None]:
        """Holds the turn for as long as the context lasts. Raises `TooManyWaiting`."""
        if self._is_taken:
            await self._wait(customer, address)
        self._is_taken = True
        begun = self._now_seconds()
        try:
            yield
        finally:
            self._used[customer] = self._used_by(customer) + self._now_seconds() - begun
            self._pass_on()

    async def _wait(self, customer: str, address: str) -> None:
        limits = self._limits
        if (
            self._by_address[address] >= limits.by_address_max
            or self._by_customer[customer] >= limits.by_customer_max
            or self.waiting >= limits.all_max
        ):
            raise TooManyWaiting(address)
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(customer, {}).setdefault(address, deque()).append(called)
        self._by_address[address] += 1
        self._by_customer[customer] += 1
        self._used[customer] = self._used_by(customer)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                # The turn was handed over at the moment the request was cancelled.
                self._pass_on()
            raise

    def _used_by(self, customer: str) -> float:
        return max(self._used.get(customer, 0.0), self._present)

    def _pass_on(self) -> None:
        while self._waiting:
            customer = min(self._waiting, key=self._used_by)
            self._present = self._used_by(customer)
            called = self._next_of(customer)
            if not called.cancelled():
                # It stays taken: the waiter that is called has it before any other can ask.
                called.set_result(None)
                return
        self._is_taken = False
        self._used.clear()
        self._present = 0.0

    def _next_of(self, customer: str) -> asyncio.Future[None]:
        """Removes the customer's next request; its address goes behind the customer's other addresses."""
        addresses = self._waiting[customer]
        address, queue = next(iter(addresses.items()))
        del addresses[address]
        called = queue.popleft()
        if queue:
            addresses[address] = queue
        elif not addresses:
            del self._waiting[customer]
        for counter, party in ((self._by_address, address), (self._by_customer, customer)):
            counter[party] -= 1
            if not counter[party]:
                del counter[party]
        return called
