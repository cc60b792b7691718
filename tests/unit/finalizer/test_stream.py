"""How the stream ends: between two batches when it is told to, with an error when a batch does not end or fails."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from services.finalizer.jobs import stream
from services.finalizer.jobs.landing import Landing, StopRequested
from services.finalizer.jobs.stream import DrainExceeded
from services.finalizer.serving import Serving
from services.rim.crash_points import CrashPoints
from services.rim.metrics import gauge
from shared.metrics import FINALIZER_LAG_RECORDS


class FakeQuery:
    """A query that is in a batch for as long as told, and then ends as told."""

    def __init__(self, *, polls_in_batch: float = 0, fails: bool = False) -> None:
        self._polls_left = polls_in_batch
        self._fails = fails
        self.lastProgress: Any = None
        self.isActive = True
        self.on_poll: Callable[[], None] = lambda: None
        self.was_stopped = False

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self._polls_left > 0}

    def awaitTermination(self, seconds: float) -> bool:  # noqa: N802 - Spark's name
        if self._fails:
            raise StreamingQueryException("the batch failed")
        self.on_poll()
        self._polls_left -= 1
        return False

    def stop(self) -> None:
        self.was_stopped = True


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def landing(stop: threading.Event) -> Landing:
    """Made to be refused: it never comes to its warehouse or database."""
    serving = Serving("", away_seconds_max=1, stop=stop)
    return Landing(Path("nowhere"), serving, slices_max=1, stop=stop, clock_ms=lambda: 0, crash_points=CrashPoints())


def run(query: FakeQuery, landing: Landing, stop: threading.Event, seconds_max: float = 60) -> None:
    stream.run(cast(StreamingQuery, query), landing, stop, drain_seconds_max=seconds_max)


def test_a_stop_waits_for_the_running_batch(landing: Landing, stop: threading.Event) -> None:
    stop.set()
    query = FakeQuery(polls_in_batch=3)
    run(query, landing, stop)
    assert query.was_stopped
    assert not query.status["isTriggerActive"]


def test_a_batch_that_does_not_end_in_time_is_told_and_not_taken_for_a_clean_stop(
    landing: Landing, stop: threading.Event
) -> None:
    stop.set()
    query = FakeQuery(polls_in_batch=float("inf"))
    with pytest.raises(DrainExceeded, match=r"within 0\.05 s"):
        run(query, landing, stop, seconds_max=0.05)
    assert not query.was_stopped


def test_a_batch_that_comes_while_stopping_is_refused_untouched_and_that_is_a_clean_end(
    landing: Landing, stop: threading.Event
) -> None:
    stop.set()
    with pytest.raises(StopRequested):
        landing(cast(DataFrame, None), 7)
    assert landing.failure is None
    run(FakeQuery(polls_in_batch=1, fails=True), landing, stop)


@pytest.mark.parametrize(
    ("end", "latest", "lag"),
    [
        ('{"views":{"0":3,"1":5}}', '{"views":{"0":10,"1":5}}', 7),
        ("null", '{"views":{"0":10}}', 10),
        (None, "null", 0),
        ("null", None, 0),
    ],
)
def test_the_lag_is_told_also_before_spark_knows_all_offsets(
    landing: Landing, stop: threading.Event, end: str | None, latest: str | None, lag: int
) -> None:
    query = FakeQuery(polls_in_batch=2)
    query.lastProgress = SimpleNamespace(sources=[SimpleNamespace(endOffset=end, latestOffset=latest)])
    query.on_poll = stop.set
    run(query, landing, stop)
    assert gauge(FINALIZER_LAG_RECORDS)._value.get() == lag


def test_a_batch_that_fails_ends_the_stream_with_its_error(landing: Landing, stop: threading.Event) -> None:
    with pytest.raises(StreamingQueryException, match="the batch failed"):
        run(FakeQuery(fails=True), landing, stop)
    stop.set()
    with pytest.raises(StreamingQueryException, match="the batch failed"):
        run(FakeQuery(polls_in_batch=1, fails=True), landing, stop)
