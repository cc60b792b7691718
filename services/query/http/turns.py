"""How many questions a caller has under way, and how many requests a second."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from services.query.scope import Caller

#: A page asks many questions when it is opened: so many seconds' requests may come at once.
BURST_SECONDS: Final = 4.0
#: Callers whose room is remembered; of those that ask again and again it is.
_REMEMBERED_MAX: Final = 10_000


class TooManyQuestions(RuntimeError):
    """The caller has as many questions under way as one may."""


class TooManyRequests(RuntimeError):
    """The caller asks too often; `seconds` from now there is room again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.1f} s")
        self.seconds = seconds


class Turns:
    """Counts the questions of each caller."""

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


class Rates:
    """Requests of each caller, as a bucket that fills at a rate."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        #: When each caller's bucket is full again.
        self._full_at: dict[str, float] = {}

    def take(self, caller: Caller) -> None:
        """Counts a request; raises `TooManyRequests`."""
        now = self._clock()
        full_at = max(self._full_at.get(caller.name, now), now) + 1 / self._per_second
        wait_seconds = full_at - now - BURST_SECONDS
        if wait_seconds > 0:
            raise TooManyRequests(wait_seconds)
        self._full_at[caller.name] = full_at
        if len(self._full_at) > _REMEMBERED_MAX:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
