"""Runs the streams: starts them on their topics, watches them, and stops them between two batches."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from services.finalizer.failures import JobFailed
from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming.batches import Batches
from services.rim.kafka.security import for_java
from services.rim.telemetry.metrics import gauge
from shared.metrics import FINALIZER_BATCH_AGE_SECONDS, FINALIZER_LAG_RECORDS
from shared.settings import Settings

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 0.5
GROUP_PREFIX: Final = "finalizer"


class DrainExceeded(RuntimeError):
    """The running batch did not end within the time a stop may take. It is run again at the next start."""


class DataLost(JobFailed):
    """Kafka no longer has records that were never landed; the text says what to do."""


@dataclass(frozen=True)
class Stream:
    """A query that runs, and its batch function."""

    query: StreamingQuery
    batches: Batches


def checkpoint(settings: FinalizerSettings, stream: str) -> str:
    """The folder of a stream's checkpoint."""
    return f"{settings.checkpoint_dir}/{stream}"


def read(spark: SparkSession, kafka: Settings, topic: str, *, offsets_max: int, starting: str) -> DataFrame:
    """A topic as a stream: only what was committed, and never past a gap in silence.

    `starting` holds for a stream without a checkpoint: `earliest`, or offsets as Spark takes them.
    """
    security = {f"kafka.{name}": value for name, value in for_java(kafka).items()}
    return (
        spark.readStream.format("kafka")
        .options(**security)
        .option("kafka.bootstrap.servers", kafka.kafka_bootstrap)
        # What its consumers call their groups, so that rights can be given to them; nothing is committed there.
        .option("groupIdPrefix", GROUP_PREFIX)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", starting)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", offsets_max)
        .load()
    )


def start(
    stream: DataFrame, batches: Batches, settings: FinalizerSettings, *, trigger_seconds: float, once: bool
) -> Stream:
    """Starts landing. `once` lands what the topics hold now, then ends; else a batch begins every `trigger_seconds`, for ever."""
    writer = (
        stream.writeStream.queryName(batches.stream)
        .option("checkpointLocation", checkpoint(settings, batches.stream))
        .foreachBatch(batches)
    )
    if once:
        return Stream(writer.trigger(availableNow=True).start(), batches)
    trigger = f"{round(trigger_seconds * 1000)} milliseconds"
    return Stream(writer.trigger(processingTime=trigger).start(), batches)


def run(
    streams: Sequence[Stream],
    stop: threading.Event,
    *,
    drain_seconds_max: float,
    watch: Callable[[], None] = lambda: None,
) -> bool:
    """Watches streams until all have ended, one has failed or `stop` is set; then ends the others between two batches.

    Returns whether all have ended by themselves.
    `watch` is called between looks. Raises `DataLost`, `StreamingQueryException` when a batch failed, `DrainExceeded` when a
    running one took too long to end.
    """
    left, ages = list(streams), _Ages()
    try:
        while left and not stop.is_set():
            left = [stream for stream in left if not _has_ended(stream, POLL_SECONDS / len(left))]
            for stream in left:
                ages.observe(stream)
            watch()
        is_stopped = stop.is_set()
    finally:
        # Also when one has failed: the others end their batch, which else would be run again.
        deadline = time.monotonic() + drain_seconds_max
        stop.set()
        for stream in left:
            _drain(stream, deadline, drain_seconds_max)
    log.info("streams_ended")
    return not is_stopped


def _has_ended(stream: Stream, seconds: float) -> bool:
    """Whether the query ended by itself or was refused a batch; raises what it failed with."""
    try:
        ended = stream.query.awaitTermination(seconds)  # type: ignore[arg-type]
    except StreamingQueryException as error:
        # The next batch came while stopping and was refused: that is a stop as it should be.
        if stream.batches.refused.is_set():
            return True
        if "KAFKA_DATA_LOSS" in str(error) or "failOnDataLoss" in str(error):
            raise DataLost(
                f"stream {stream.batches.stream}: Kafka no longer has records that were never landed (retention, or the topic"
                " was recreated). What is lost of topic views can be made again from table bronze: finalizer reprocess."
                " To go on after the gap, give FINALIZER_CHECKPOINT_DIR a new folder: what is landed is not doubled."
            ) from error
        raise
    _observe(stream.query)
    return bool(ended)


def _drain(stream: Stream, deadline: float, seconds_max: float) -> None:
    """Waits for the running batch and its entry in the checkpoint; no other one begins meanwhile."""
    while stream.query.isActive and stream.query.status["isTriggerActive"]:
        if time.monotonic() > deadline:
            raise DrainExceeded(f"the running batch of {stream.batches.stream} did not end within {seconds_max} s")
        if _has_ended(stream, 0.1):
            return
    stream.query.stop()


class _Ages:
    """Measures how long the present batch of each stream takes: a batch that hangs shows no lag."""

    def __init__(self) -> None:
        #: By stream, how many batches had ended when the present one was first seen, and when that was (monotonic seconds).
        self._since: dict[str, tuple[int, float]] = {}

    def observe(self, stream: Stream) -> None:
        """Sets the gauge of the stream."""
        name, now, progress = stream.batches.stream, time.monotonic(), stream.query.lastProgress
        ended = -1 if progress is None else progress.batchId
        if not stream.query.status["isTriggerActive"]:
            self._since.pop(name, None)
        elif name not in self._since or self._since[name][0] != ended:
            self._since[name] = ended, now
        gauge(FINALIZER_BATCH_AGE_SECONDS).labels(name).set(now - self._since.get(name, (ended, now))[1])


def _observe(query: StreamingQuery) -> None:
    progress = query.lastProgress
    if progress is None or not progress.sources:
        return
    landed, latest = (_offsets(text) for text in (progress.sources[0].endOffset, progress.sources[0].latestOffset))
    for topic, ends in latest.items():
        have = landed.get(topic, {})
        gauge(FINALIZER_LAG_RECORDS).labels(topic).set(
            sum(end - have.get(partition, 0) for partition, end in ends.items())
        )


def _offsets(text: str | None) -> dict[str, dict[str, int]]:
    """`{"views": {"0": 17, ...}}`, as Spark reports offsets. What it does not know yet is absent, or the word null."""
    offsets = json.loads(text) if text else None
    return dict(offsets) if offsets else {}
