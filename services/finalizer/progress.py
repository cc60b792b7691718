"""How far work has come that must end, a piece after the other, and the turns that it waits for: what `/livez` judges it by."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

#: A batch, or a transaction that counts hours again, that takes longer hangs: the process should be restarted.
PIECE_SECONDS_MAX: Final = 1_800.0
#: A statement that reads or rewrites a whole table takes as long as the table is large. Each try would begin at its start.
TABLE_SECONDS_MAX: Final = 21_600.0


class Progress:
    """The pieces of work of one thread at a time; any thread may look."""

    def __init__(self) -> None:
        #: Monotonic seconds at which the present piece began, and how many it may take; None while there is no work, or it waits.
        self._piece: tuple[float, float] | None = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """This thread works: from here on `step` and `Turn` are about it."""
        token = _PRESENT.set(self)
        self.begin(PIECE_SECONDS_MAX)
        try:
            yield
        finally:
            self._piece = None
            _PRESENT.reset(token)

    def begin(self, seconds_max: float) -> None:
        """A piece begins, and the one before it is done."""
        self._piece = time.monotonic(), seconds_max

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Waits for others, who have a progress of their own. The time of the present piece begins after it."""
        piece, self._piece = self._piece, None
        yield
        if piece is not None:
            self.begin(piece[1])

    def overdue(self, now: float) -> float | None:
        """How many seconds the present piece may take, if it takes longer; `now` is in monotonic seconds."""
        piece = self._piece
        if piece is None or now - piece[0] <= piece[1]:
            return None
        return piece[1]


_PRESENT: Final[ContextVar[Progress | None]] = ContextVar("progress", default=None)


def step(seconds_max: float = TABLE_SECONDS_MAX) -> None:
    """A piece of this thread's work begins. Where nobody watches the thread, such as in a command, it is nothing."""
    progress = _PRESENT.get()
    if progress is not None:
        progress.begin(seconds_max)


class Turn:
    """Who holds it writes; the others wait, and that is no work of theirs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        progress = _PRESENT.get()
        if progress is None:
            self._lock.acquire()
            return
        with progress.waiting():
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
