"""The finalizer's answers to `/livez` and `/readyz`."""

import time
from collections.abc import Sequence
from typing import Final

from services.finalizer.jobs.background_thread import BackgroundThread
from services.finalizer.streaming.batches import Batches
from services.rim.admin.admin import Check

#: What works in pieces that end: batches of streams, and what follows from them.
Working = Batches | BackgroundThread

#: A batch that runs longer than this hangs: the process should be restarted.
BATCH_SECONDS_MAX: Final = 1800.0


class Health:
    """Ready once the streams run and no last batch has failed; alive unless a batch hangs."""

    def __init__(self) -> None:
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
        now = time.monotonic()
        for stream in self._streams:
            since = stream.busy_since
            if since is not None and now - since > BATCH_SECONDS_MAX:
                return Check(ok=False, why=f"a batch of {stream.stream} runs for more than {BATCH_SECONDS_MAX:.0f} s")
        return Check(ok=True)
