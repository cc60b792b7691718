"""How many questions are under way: of a party, such as a caller or an organisation, and of a kind that all share."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from services.rim.turns.fair_turns import FairTurns


class TooManyQuestions(RuntimeError):
    """As many questions are under way, or wait, as may be: of the party or of a kind."""


class QuestionLimit:
    """So many questions of each party at a time; one more is refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def of(self, party: str) -> Iterator[None]:
        """Counts one while the block runs; raises `TooManyQuestions`."""
        if self._under_way[party] >= self._most:
            raise TooManyQuestions
        self._under_way[party] += 1
        try:
            yield
        finally:
            self._under_way[party] -= 1
            if not self._under_way[party]:
                del self._under_way[party]


class InTurn:
    """So many questions of each party at a time; others of it wait for their turn, and beyond `most` in all one is refused.

    `of_all` is how many there are at a time of all parties, which take turns. Where a party has members, these take turns too, and
    `most` is of each.
    """

    def __init__(self, *, at_once: int, most: int, of_all: int = sys.maxsize) -> None:
        self._limit = QuestionLimit(most)
        self._turns = FairTurns(of_all, of_one=at_once)

    @asynccontextmanager
    async def of(self, party: str, member: str = "") -> AsyncIterator[None]:
        """The party's turn while the block runs; raises `TooManyQuestions`."""
        with self._limit.of(member or party):
            async with self._turns.turn(party, member):
                yield


class OneAtATime:
    """One turn that all share. Who finds it taken waits for `wait_seconds` at the most."""

    def __init__(self, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """The turn while the block runs; raises `TooManyQuestions`."""
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise TooManyQuestions from None
        try:
            yield
        finally:
            self._lock.release()
