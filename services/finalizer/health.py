"""The finalizer's answers to `/livez` and `/readyz`."""

import time
from collections.abc import Callable, Sequence

from services.finalizer.jobs.background_thread import BackgroundThread
from services.finalizer.streaming.batches import Batches
from services.rim.admin.admin import Check

#: What works in pieces that end: batches of streams, and what follows from them.
Working = Batches | BackgroundThread


class Health:
    """Ready once the streams run and no last batch has failed; alive unless a piece of work hangs."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._streams: Sequence[Working] = ()

    def watch(self, streams: Sequence[Working]) -> None:
        """The streams run: from now on their batches are asked."""
        self._streams = streams

    def ready(self) -> Check:
        """Whether records are being landed."""
        if not self._streams:
            return Check(ok=False, why="starting")
        failures = [stream.failure for stream in self._streams if stream.failure is not None]
        return Check(ok=False, why="; ".join(failures)) if failures else Check(ok=True)

    def alive(self) -> Check:
        """Whether the process should be left running."""
        now = self._monotonic()
        for stream in self._streams:
            seconds_max = stream.progress.overdue(now)
            if seconds_max is not None:
                return Check(ok=False, why=f"a piece of work of {stream.stream} takes more than {seconds_max:.0f} s")
        return Check(ok=True)
