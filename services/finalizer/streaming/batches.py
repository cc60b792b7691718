"""The batch function of a stream: measures its work, and checks before and after it whether the service stops."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import structlog
from pyspark.sql import DataFrame

from services.finalizer.progress import Progress
from services.rim.telemetry.metrics import counter, gauge, histogram
from shared.metrics import FINALIZER_BATCH_ROWS, FINALIZER_BATCH_SECONDS, FINALIZER_BATCHES

log = structlog.get_logger(__name__)


class StopRequested(Exception):
    """Ends the stream between two batches: the batch that met it has done nothing and is run at the next start."""


class Batches:
    """Calls `work` for every batch, and knows how it goes. One a stream."""

    def __init__(
        self,
        stream: str,
        work: Callable[[DataFrame, int], int],
        stop: threading.Event,
        *,
        turns: Sequence[AbstractContextManager[Any]] = (),
    ) -> None:
        """`work` gets the batch and its number, and returns how many records it held. `turns`: what it holds while it writes."""
        self.stream = stream
        self.turns = tuple(turns)
        self._work = work
        self._stop = stop
        #: Set when a batch was refused because the service stops.
        self.refused = threading.Event()
        #: Of the running batch, while it waits for no turn.
        self.progress = Progress()
        #: What the last batch failed with, or None.
        self.failure: str | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Does the batch. Raises `StopRequested` at its entry when the service stops; any other error ends the stream."""
        if self._stop.is_set():
            self.refused.set()
            raise StopRequested
        began = time.monotonic()
        try:
            with self.progress.working():
                rows = self._work(batch, batch_id)
            self.failure = None
        except Exception as error:
            self.failure = f"batch {batch_id} of {self.stream}: {type(error).__name__}"
            log.exception("batch_failed", stream=self.stream, batch_id=batch_id)
            raise
        counter(FINALIZER_BATCHES).labels(self.stream).inc()
        gauge(FINALIZER_BATCH_ROWS).labels(self.stream).set(rows)
        histogram(FINALIZER_BATCH_SECONDS).labels("whole", self.stream).observe(time.monotonic() - began)


@contextmanager
def timed(stage: str, stream: str = "views") -> Iterator[None]:
    """Observes how long a stage of a batch takes."""
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    histogram(FINALIZER_BATCH_SECONDS).labels(stage, stream).observe(seconds)
    log.debug("stage", stage=stage, stream=stream, seconds=round(seconds, 3))


def checkpoint_id(batch: DataFrame) -> str:
    """Which checkpoint the batch is of: a new one counts batches from 0 again."""
    return str(batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
