"""Work that follows from batches, on a thread of its own: changed hours are counted again, and tables are maintained.

No work is lost with the process: slices that are to be counted are marked in Postgres, and the next round repeats maintenance.
Batches and this thread take turns (`Landing.turn`), a transaction or a table at a time: no batch waits for a round.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from pyspark.sql import SparkSession

from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.progress import Progress
from services.finalizer.streaming.rebuilding import Rebuilding

log = structlog.get_logger(__name__)

_POLL_SECONDS: Final = 0.2
ALSO_SECONDS: Final = 2.0


class BackgroundThread:
    """The thread. `stream`, `progress` and `failure` are as those of `Batches`."""

    #: Stored in Postgres with what it publishes; also its name in logs and in what health says.
    stream: Final = "upkeep"

    def __init__(
        self,
        spark: SparkSession,
        rebuilding: Rebuilding,
        maintained: Sequence[Maintenance],
        *,
        every_seconds: float,
        stop: threading.Event,
        also: Callable[[], object] = lambda: None,
    ) -> None:
        """`every_seconds` lie between two rounds that count hours again; maintenance has times of its own.

        `also` is called every `ALSO_SECONDS`, and may take long.
        """
        self._also = also
        self._spark = spark
        self._rebuilding = rebuilding
        self._maintained = maintained
        self._every_seconds = every_seconds
        self._stop = stop
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self._died: Exception | None = None
        self.progress = Progress()
        #: What the last piece failed with.
        self.failure: str | None = None

    def start(self) -> None:
        """Begins, with what an earlier process has left."""
        self._thread.start()

    def watch(self) -> None:
        """Raises what the thread died of."""
        if self._died is not None:
            raise self._died

    def join(self, seconds_max: float) -> None:
        """Waits for the end of the piece that it is at, after `stop` was set. What is cut off is done again at the next start."""
        self._thread.join(seconds_max)
        if self._thread.is_alive():
            log.warning("upkeep_cut_off", seconds=seconds_max)

    def _run(self) -> None:
        next_round = next_also = 0.0
        try:
            while not self._stop.wait(_POLL_SECONDS):
                if time.monotonic() >= next_round:
                    self._count()
                    next_round = time.monotonic() + self._every_seconds
                for maintenance in self._maintained:
                    if not self._stop.is_set():
                        with self.progress.working():
                            maintenance.run_if_due(self._spark)
                if time.monotonic() >= next_also and not self._stop.is_set():
                    with self.progress.working():
                        self._also()
                    next_also = time.monotonic() + ALSO_SECONDS
        except Exception as error:
            # The thread's top: the process ends with it.
            self._died = error
            self.failure = f"upkeep: {type(error).__name__}"
            log.exception("upkeep_died")

    def _count(self) -> None:
        """Counts slices again, so many at a time, until none is marked or the service stops."""
        with self.progress.working():
            while not self._stop.is_set() and self._rebuilding.rebuild_some(self._spark, self.stream):
                pass
