"""How often parties may do what costs, such as known callers their requests: each has a rate of its own, in each process."""

import time
from collections.abc import Callable
from typing import Final

#: A page asks many questions when it is opened: what fits into so many seconds may come at once.
BURST_SECONDS: Final = 4.0
#: Parties whose room is remembered; of those that come again and again it is.
_REMEMBERED_MAX: Final = 10_000


class TooManyRequests(RuntimeError):
    """The party comes too often; `seconds` from now there is room again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.1f} s")
        self.seconds = seconds


class Rates:
    """Of each party, by name, a bucket that fills at a rate."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        #: When each party's bucket is full again.
        self._full_at: dict[str, float] = {}

    def charge(self, party: str, count: float = 1) -> None:
        """Takes `count`, or nothing and raises `TooManyRequests`."""
        now = self._clock()
        full_at = max(self._full_at.get(party, now), now) + count / self._per_second
        wait_seconds = full_at - now - BURST_SECONDS
        if wait_seconds > 0:
            raise TooManyRequests(wait_seconds)
        self._full_at[party] = full_at
        if len(self._full_at) > _REMEMBERED_MAX:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
