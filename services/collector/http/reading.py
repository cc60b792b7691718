"""What reading the requests of one connection costs, and who pays for it.

A body in chunks of a byte takes 30 times as long to read as a plain one, and aiohttp reads on after an answer. CPU time beyond what
good requests need is charged to the address of the request.
"""

from collections.abc import Callable
from typing import Final

from services.collector.http.parsing import BYTE_SECONDS, REQUEST_SECONDS
from services.rim.process.garbage import work_seconds

#: CPU time of the thread without searches for reference cycles, in seconds.
cpu_seconds: Callable[[], float] = work_seconds
#: About what a chunk of a body takes after it was parsed: aiohttp asks for more after each, and a clock would take as long again.
_RESUME_SECONDS: Final = 1.5e-6

#: Takes seconds; False where the address has wasted too much.
Charge = Callable[[float], bool]


class Reading:
    """The account of one connection, in seconds of CPU time."""

    __slots__ = ("_charge", "_left", "_resumed", "_uncharged")

    def __init__(self) -> None:
        self._charge: Charge | None = None
        #: What the newest request may still take.
        self._left = REQUEST_SECONDS
        #: How often aiohttp has gone on to read since that was counted.
        self._resumed = 0
        #: Of requests that are not admitted yet.
        self._uncharged = 0.0

    def begin_request(self) -> None:
        """A request has its time once, not for each piece: a body of small chunks is read in very many."""
        self._left = REQUEST_SECONDS

    def resume(self) -> None:
        """aiohttp went on to read what had come before."""
        self._resumed += 1

    def take(self, size_bytes: int, seconds: float, *, is_head: bool) -> bool:
        """Counts that so many bytes took so long. False where the address has wasted too much.

        `is_head`: they began another request, whose address is known once it is admitted. A proxy sends those of many.
        """
        self._left += size_bytes * BYTE_SECONDS - seconds - self._resumed * _RESUME_SECONDS
        self._resumed = 0
        if self._left >= 0:
            return True
        wasted, self._left = -self._left, 0.0
        if is_head or self._charge is None:
            self._uncharged += wasted
            return True
        return self._charge(wasted)

    def charge_to(self, charge: Charge) -> None:
        """From now on, and for what was not charged yet."""
        self._charge = charge
        charge(self._uncharged)
        self._uncharged = 0.0
