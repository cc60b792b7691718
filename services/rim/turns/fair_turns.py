"""Turns that parties take one after the other, such as organisations or addresses: the many that one waits for delay no other."""

import asyncio
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

K = TypeVar("K")


class FairTurns:
    """So many turns at a time, of one party and of one member of it so many; then the parties that wait in turn.

    Of a party its members take turns in the same way, of each the oldest. A party without members is its own only one.
    Belongs to one event loop.
    """

    def __init__(self, at_once: int, *, of_one: int, of_member: int = sys.maxsize) -> None:
        self._at_once = at_once
        self._of_one = of_one
        self._of_member = of_member
        self._taken: Counter[str] = Counter()
        self._taken_by: Counter[tuple[str, str]] = Counter()
        #: By party and member, both in the order of their next turns.
        self._waiting: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}

    def waiting(self, party: str) -> int:
        """How many of a party wait."""
        return sum(map(len, self._waiting.get(party, {}).values()))

    def is_free(self, party: str, member: str = "") -> bool:
        """Whether a turn of the party's member would begin at once."""
        return (
            self._taken.total() < self._at_once
            and self._taken[party] < self._of_one
            and self._taken_by[party, member] < self._of_member
        )

    @asynccontextmanager
    async def turn(self, party: str, member: str = "") -> AsyncIterator[None]:
        """Holds a turn for as long as the context lasts."""
        await self.take(party, member)
        try:
            yield
        finally:
            self.give_back(party, member)

    async def take(self, party: str, member: str = "") -> None:
        """Takes a turn, once there is one; who is cancelled meanwhile has none. `give_back` ends it."""
        if self.is_free(party, member):
            self._begin(party, member)
            return
        queue = self._waiting.setdefault(party, {}).setdefault(member, deque())
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(called)
        try:
            await called
        except asyncio.CancelledError:
            self._leave(party, member, called)
            raise

    def give_back(self, party: str, member: str = "") -> None:
        """Ends a turn; the next ones begin."""
        _less(self._taken, party)
        _less(self._taken_by, (party, member))
        for waiting in list(self._waiting):
            if self._taken.total() >= self._at_once:
                return
            if self._taken[waiting] < self._of_one:
                self._call(waiting)

    def _begin(self, party: str, member: str) -> None:
        self._taken[party] += 1
        self._taken_by[party, member] += 1

    def _call(self, party: str) -> None:
        """Gives a turn to the party's next member, if one may have it. Both are behind the others then."""
        members = self._waiting[party]
        for member in list(members):
            if self._taken_by[party, member] >= self._of_member:
                continue
            queue = members[member]
            # One that was cancelled leaves by itself; its place is not given away twice.
            called = _first_waiting(queue)
            del members[member]
            if queue:
                members[member] = queue
            if called is not None:
                # It is taken at once: the one that is called has it before any other can ask.
                self._begin(party, member)
                called.set_result(None)
                del self._waiting[party]
                if members:
                    self._waiting[party] = members
                return
        if not members:
            del self._waiting[party]

    def _leave(self, party: str, member: str, called: asyncio.Future[None]) -> None:
        if called.done() and not called.cancelled():
            # The turn was handed over at the moment at which it was given up.
            self.give_back(party, member)
            return
        members = self._waiting.get(party, {})
        queue = members.get(member, deque())
        if called in queue:
            queue.remove(called)
            if not queue:
                del members[member]
            if not members:
                del self._waiting[party]


def _first_waiting(queue: deque[asyncio.Future[None]]) -> asyncio.Future[None] | None:
    """Takes all up to the first that waits still out of the queue."""
    while queue:
        called = queue.popleft()
        if not called.done():
            return called
    return None


def _less(taken: Counter[K], one: K) -> None:
    taken[one] -= 1
    if not taken[one]:
        del taken[one]
