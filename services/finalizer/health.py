"""What the finalizer answers to `/livez` and `/readyz`."""

import time
from typing import Final

from services.finalizer.jobs.landing import Landing
from services.rim.admin import Check

#: A batch that runs longer than this hangs: the process should be restarted.
BATCH_SECONDS_MAX: Final = 1800.0


class Health:
    """Ready once the stream runs and its last batch has not failed; alive unless a batch hangs."""

    def __init__(self) -> None:
        self._landing: Landing | None = None

    def watch(self, landing: Landing) -> None:
        """The stream runs: from now on its landing is asked."""
        self._landing = landing

    def ready(self) -> Check:
        """Whether views are being landed."""
        if self._landing is None:
            return Check(ok=False, why="starting")
        if self._landing.failure is not None:
            return Check(ok=False, why=self._landing.failure)
        return Check(ok=True)

    def alive(self) -> Check:
        """Whether the process should be left running."""
        since = self._landing.busy_since if self._landing is not None else None
        if since is not None and time.monotonic() - since > BATCH_SECONDS_MAX:
            return Check(ok=False, why=f"a batch runs for more than {BATCH_SECONDS_MAX:.0f} s")
        return Check(ok=True)
