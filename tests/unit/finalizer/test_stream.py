"""How the stream ends: between two batches when it is stopped, with an error when a batch does not end or fails."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from services.finalizer.streaming import stream
from services.finalizer.streaming.batches import Batches, StopRequested
from services.finalizer.streaming.stream import DataLost, DrainExceeded, Stream
from services.rim.telemetry.metrics import gauge
from shared.metrics import FINALIZER_BATCH_AGE_SECONDS, FINALIZER_LAG_RECORDS


class FakeQuery:
    """A query that is in a batch for as long as the test says, and then ends as it says."""

    def __init__(self, *, polls_in_batch: float = 0, fails: bool = False, why: str = "the batch failed") -> None:
        self._why = why
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
            raise StreamingQueryException(self._why)
        self.on_poll()
        self._polls_left -= 1
        return False

    def stop(self) -> None:
        self.was_stopped = True


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def batches(stop: threading.Event) -> Batches:
    def work(batch: DataFrame, batch_id: int) -> int:
        raise AssertionError("made to be refused")

    return Batches("views", work, stop)


def run(query: FakeQuery, batches: Batches, stop: threading.Event, seconds_max: float = 60) -> None:
    stream.run([Stream(cast(StreamingQuery, query), batches)], stop, drain_seconds_max=seconds_max)


def test_a_stop_waits_for_the_running_batch(batches: Batches, stop: threading.Event) -> None:
    stop.set()
    query = FakeQuery(polls_in_batch=3)
    run(query, batches, stop)
    assert query.was_stopped
    assert not query.status["isTriggerActive"]


def test_a_batch_that_does_not_end_in_time_is_reported_and_not_taken_for_a_clean_stop(
    batches: Batches, stop: threading.Event
) -> None:
    stop.set()
    query = FakeQuery(polls_in_batch=float("inf"))
    with pytest.raises(DrainExceeded, match=r"within 0\.05 s"):
        run(query, batches, stop, seconds_max=0.05)
    assert not query.was_stopped


def test_a_batch_that_comes_while_stopping_is_refused_untouched_and_that_is_a_clean_end(
    batches: Batches, stop: threading.Event
) -> None:
    stop.set()
    with pytest.raises(StopRequested):
        batches(cast(DataFrame, None), 7)
    assert batches.failure is None
    run(FakeQuery(polls_in_batch=1, fails=True), batches, stop)


@pytest.mark.parametrize(
    ("end", "latest", "lag"),
    [
        ('{"views":{"0":3,"1":5}}', '{"views":{"0":10,"1":5}}', 7),
        ("null", '{"views":{"0":10}}', 10),
    ],
)
def test_the_lag_is_reported_also_before_spark_knows_all_offsets(
    batches: Batches, stop: threading.Event, end: str | None, latest: str | None, lag: int
) -> None:
    query = FakeQuery(polls_in_batch=2)
    query.lastProgress = SimpleNamespace(sources=[SimpleNamespace(endOffset=end, latestOffset=latest)], batchId=1)
    query.on_poll = stop.set
    run(query, batches, stop)
    assert gauge(FINALIZER_LAG_RECORDS).labels("views")._value.get() == lag


@pytest.mark.parametrize(("end", "latest"), [(None, "null"), ("null", None)])
def test_no_lag_is_reported_while_spark_knows_no_offsets(
    batches: Batches, stop: threading.Event, end: str | None, latest: str | None
) -> None:
    query = FakeQuery(polls_in_batch=2)
    query.lastProgress = SimpleNamespace(sources=[SimpleNamespace(endOffset=end, latestOffset=latest)], batchId=1)
    query.on_poll = stop.set
    run(query, batches, stop)


def test_the_age_of_a_batch_grows_until_it_ends(
    batches: Batches, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(stream.time, "monotonic", lambda: now)
    seen: list[float] = []
    query = FakeQuery(polls_in_batch=6)

    def poll() -> None:
        nonlocal now
        now += 100
        # The age after the poll before; its batch ends, and the next one begins at once.
        seen.append(age_of("views"))
        if len(seen) == 4:
            query.lastProgress = SimpleNamespace(sources=[], batchId=7)
        if len(seen) == 8:
            stop.set()

    gauge(FINALIZER_BATCH_AGE_SECONDS).labels("views").set(0)
    query.on_poll = poll
    run(query, batches, stop)
    assert seen == [0, 0, 100, 200, 0, 100, 0, 0]


def age_of(name: str) -> float:
    return float(gauge(FINALIZER_BATCH_AGE_SECONDS).labels(name)._value.get())


def test_when_one_stream_fails_the_other_ends_its_batch_first(batches: Batches, stop: threading.Event) -> None:
    other = FakeQuery(polls_in_batch=3)
    streams = [
        Stream(cast(StreamingQuery, FakeQuery(fails=True)), Batches("raw", lambda *_: 0, stop)),
        Stream(cast(StreamingQuery, other), batches),
    ]
    with pytest.raises(StreamingQueryException, match="the batch failed"):
        stream.run(streams, stop, drain_seconds_max=60)
    assert stop.is_set()
    assert other.was_stopped
    assert not other.status["isTriggerActive"]


def test_records_that_kafka_has_lost_are_reported_with_what_to_do(batches: Batches, stop: threading.Event) -> None:
    query = FakeQuery(fails=True, why="[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] gone")
    with pytest.raises(DataLost, match="FINALIZER_CHECKPOINT_DIR"):
        run(query, batches, stop)


def test_a_batch_that_fails_ends_the_stream_with_its_error(batches: Batches, stop: threading.Event) -> None:
    with pytest.raises(StreamingQueryException, match="the batch failed"):
        run(FakeQuery(fails=True), batches, stop)
    stop.set()
    with pytest.raises(StreamingQueryException, match="the batch failed"):
        run(FakeQuery(polls_in_batch=1, fails=True), batches, stop)
