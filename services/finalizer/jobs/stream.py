"""The stream's life: start it over topic `views`, watch it, and end it between two batches."""

import json
import threading
import time
from typing import Final

import structlog
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from services.finalizer.jobs.landing import Landing
from services.finalizer.settings import FinalizerSettings
from services.rim.metrics import gauge
from shared.metrics import FINALIZER_LAG_RECORDS
from shared.topics import VIEWS

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 0.5


class DrainExceeded(RuntimeError):
    """The running batch did not end within the time a stop may take. It is run again at the next start."""


def read(spark: SparkSession, settings: FinalizerSettings) -> DataFrame:
    """Topic `views` as a stream: only what was committed, from the beginning, and never past a gap in silence."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.kafka_bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", VIEWS.name)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", settings.offsets_per_trigger_max)
        .load()
    )


def start(stream: DataFrame, landing: Landing, settings: FinalizerSettings, *, once: bool) -> StreamingQuery:
    """Starts landing. `once` lands what the topic holds now, then ends; else it goes on for ever."""
    writer = (
        stream.writeStream.queryName("views")
        .option("checkpointLocation", str(settings.checkpoint_dir.absolute()))
        .foreachBatch(landing)
    )
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(settings.trigger_seconds * 1000)} milliseconds").start()


def run(query: StreamingQuery, landing: Landing, stop: threading.Event, *, drain_seconds_max: float) -> None:
    """Watches the stream until it ends or `stop` is set, then ends it between two batches.

    Raises `StreamingQueryException` when a batch failed, `DrainExceeded` when the running one took too long to end.
    """
    try:
        while not stop.is_set() and not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type]
            _observe(query)
        if stop.is_set():
            _drain(query, drain_seconds_max)
    except StreamingQueryException:
        # The next batch came while stopping and was refused: that is a stop as it should be.
        if not landing.refused.is_set():
            raise
    log.info("stream_ended")


def _drain(query: StreamingQuery, seconds_max: float) -> None:
    """Waits for the running batch and its entry in the checkpoint; no other one begins meanwhile."""
    deadline = time.monotonic() + seconds_max
    while query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() > deadline:
            raise DrainExceeded(f"the running batch did not end within {seconds_max} s")
        if query.awaitTermination(0.1):  # type: ignore[arg-type]
            return
    query.stop()


def _observe(query: StreamingQuery) -> None:
    progress = query.lastProgress
    if progress is None or not progress.sources:
        return
    landed, latest = (_offsets(text) for text in (progress.sources[0].endOffset, progress.sources[0].latestOffset))
    gauge(FINALIZER_LAG_RECORDS).set(sum(end - landed.get(partition, 0) for partition, end in latest.items()))


def _offsets(text: str | None) -> dict[str, int]:
    """`{"views": {"0": 17, ...}}`, as Spark tells offsets, by partition. What it does not know yet is absent, or the word null."""
    told = json.loads(text) if text else None
    return dict(told.get(VIEWS.name, {})) if told else {}
