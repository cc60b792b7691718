"""Lands one micro-batch: topic `views` -> Delta -> Postgres, in steps of which each may be repeated.

Spark calls a batch again, with the same offsets, when the process died before the batch was noted as done. What a crash right
after each step costs stands beside it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.jobs import warehouse
from services.finalizer.serving import Serving, Slice
from services.finalizer.transforms.views import latest_per_view, may_be_stored, parse
from services.rim.crash_points import CrashPoints
from services.rim.metrics import counter, histogram
from shared.metrics import (
    FINALIZER_BATCH_SECONDS,
    FINALIZER_BATCHES,
    FINALIZER_SLICES,
    FINALIZER_UNPARSED,
    FINALIZER_VIEWS,
)

log = structlog.get_logger(__name__)


class StopRequested(Exception):
    """Ends the stream between two batches: the batch that met it has done nothing and is run at the next start."""


@dataclass(frozen=True)
class Summary:
    """What a batch holds, known before anything is written."""

    #: Revisions read, of any view.
    revisions: int
    #: Records set aside, by reason.
    unparsed: dict[str, int]
    #: Their smallest and largest offset, of any partition; None without any.
    unparsed_offsets: tuple[int, int] | None
    slices: frozenset[Slice]
    days: tuple[int, ...]
    #: Whether any view in it may stand in the warehouse already, so that its old slice counts too.
    revises: bool


class Landing:
    """The batch function of the stream, and what there is to know about its work."""

    def __init__(
        self,
        warehouse_dir: Path,
        serving: Serving,
        *,
        slices_max: int,
        stop: threading.Event,
        clock_ms: Callable[[], int],
        crash_points: CrashPoints,
    ) -> None:
        self._warehouse_dir = warehouse_dir
        self._serving = serving
        #: Slices rebuilt and published at once. A batch with more takes several transactions, each whole for its slices.
        self._slices_max = slices_max
        self._stop = stop
        self._clock_ms = clock_ms
        self._crash_points = crash_points
        #: Set when a batch was refused because the service stops.
        self.refused = threading.Event()
        #: Set while a batch is being landed.
        self.busy = threading.Event()
        #: Monotonic seconds at which the running batch began.
        self.busy_since: float | None = None
        #: What the last batch failed with, or None.
        self.failure: str | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Lands the batch. Raises `StopRequested` at its entry when the service stops; any other error ends the stream."""
        if self._stop.is_set():
            self.refused.set()
            raise StopRequested
        self.busy_since = time.monotonic()
        self.busy.set()
        try:
            self._land(batch, batch_id)
            self.failure = None
        except Exception as error:
            self.failure = f"batch {batch_id}: {type(error).__name__}"
            log.exception("batch_failed", batch_id=batch_id)
            raise
        finally:
            self.busy.clear()
            self.busy_since = None

    def _land(self, batch: DataFrame, batch_id: int) -> None:
        spark = batch.sparkSession
        checkpoint_id = str(spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
        # Kept: else every use would read the offsets from Kafka again.
        rows = latest_per_view(parse(batch)).persist()
        try:
            with _timed("read"):
                summary = summarise(rows)
            # 1. Records that cannot be used are set aside, each known by its place in the topic: the replay adds nothing.
            if summary.unparsed:
                with _timed("unparsed"):
                    warehouse.set_aside(
                        spark, self._warehouse_dir, rows, summary.unparsed_offsets, landed_at_ms=self._clock_ms()
                    )
                self._crash_points.reach("unparsed")
            if summary.slices:
                self._mark_and_merge(spark, rows, summary)
        finally:
            rows.unpersist()
        # 4. Everything dirty is rebuilt from the views: also what an earlier crash has left. The replay finds the
        #    rest still dirty, since a slice is cleared by the transaction that publishes it.
        slices = self._rebuild(spark, checkpoint_id, batch_id)
        _count(summary, slices)
        log.info(
            "batch_landed",
            batch_id=batch_id,
            revisions=summary.revisions,
            unparsed=summary.unparsed,
            slices=slices,
        )

    def _mark_and_merge(self, spark: SparkSession, rows: DataFrame, summary: Summary) -> None:
        views = rows.where(sf.col("reason").isNull())
        # 2. The slices that are about to change, old places and new, are durably dirty before anything changes: after
        #    the merge the old places could not be told any more. A crash here costs a needless rebuild.
        with _timed("mark"):
            slices = set(summary.slices)
            if summary.revises:
                slices |= warehouse.stored_slices(
                    spark, self._warehouse_dir, views.where(may_be_stored()), summary.days
                )
            self._serving.mark_dirty(slices)
        self._crash_points.reach("marked")
        # 3. The merge keeps the newest revision, so the replay changes nothing.
        with _timed("merge"):
            warehouse.merge_views(
                spark,
                self._warehouse_dir,
                views,
                summary.days,
                revises=summary.revises,
                landed_at_ms=self._clock_ms(),
            )
        self._crash_points.reach("merged")

    def _rebuild(self, spark: SparkSession, checkpoint_id: str, batch_id: int) -> int:
        count = 0
        while slices := self._serving.dirty(self._slices_max):
            with _timed("rebuild"):
                rebuilt = warehouse.rebuild(spark, self._warehouse_dir, slices)
            with _timed("publish"):
                self._serving.publish(rebuilt, checkpoint_id=checkpoint_id, batch_id=batch_id)
            self._crash_points.reach("published")
            count += len(slices)
        return count


def summarise(rows: DataFrame) -> Summary:
    """What the reduced rows of a batch hold, in one pass."""
    groups = (
        rows.groupBy("reason", "day", "hour", "customer_id")
        .agg(
            sf.sum("revisions").alias("revisions"),
            sf.bool_or(may_be_stored()).alias("revises"),
            sf.min("kafka_offset").alias("first_offset"),
            sf.max("kafka_offset").alias("last_offset"),
        )
        .collect()
    )
    unparsed: dict[str, int] = {}
    aside = [row for row in groups if row["reason"] is not None]
    for row in aside:
        unparsed[row["reason"]] = unparsed.get(row["reason"], 0) + row["revisions"]
    views = [row for row in groups if row["reason"] is None]
    return Summary(
        revisions=sum(row["revisions"] for row in views),
        unparsed=unparsed,
        unparsed_offsets=(
            (min(row["first_offset"] for row in aside), max(row["last_offset"] for row in aside)) if aside else None
        ),
        slices=frozenset(Slice(row["hour"], row["customer_id"]) for row in views),
        days=tuple(sorted({row["day"] for row in views})),
        revises=any(row["revises"] for row in views),
    )


def _count(summary: Summary, slices: int) -> None:
    counter(FINALIZER_BATCHES).inc()
    counter(FINALIZER_VIEWS).inc(summary.revisions)
    counter(FINALIZER_SLICES).inc(slices)
    for reason, records in summary.unparsed.items():
        counter(FINALIZER_UNPARSED).labels(reason).inc(records)


@contextmanager
def _timed(stage: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    histogram(FINALIZER_BATCH_SECONDS).labels(stage).observe(seconds)
    log.debug("stage", stage=stage, seconds=round(seconds, 3))
