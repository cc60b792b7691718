"""How many questions are under way: of a caller, and of a kind that all callers share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from services.query.scope import Caller


class TooManyQuestions(RuntimeError):
    """As many questions are under way as may be, of the caller or of a kind."""


class QuestionLimit:
    """So many questions of each caller at a time; one more is refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def of(self, caller: Caller) -> Iterator[None]:
        """A turn while the block runs; raises `TooManyQuestions`."""
        if self._under_way[caller.name] >= self._most:
            raise TooManyQuestions
        self._under_way[caller.name] += 1
        try:
            yield
        finally:
            self._under_way[caller.name] -= 1
            if not self._under_way[caller.name]:
                del self._under_way[caller.name]


class OneAtATime:
    """One turn that all callers share. Who finds it taken waits for `wait_seconds` at the most."""

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
