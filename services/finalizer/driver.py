"""The driver that every job needs: the checkpoint's lock, the serving database, a Spark session, and verified tables."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from services.finalizer.serving.customer_limits import CustomerLimits
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import first_kept_hour
from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming.landing import Landing
from services.finalizer.warehouse import checkpoint_lock, session, tables
from services.rim.process.crash_points import CrashPoints


@dataclass(frozen=True)
class Driver:
    """The one process that writes the warehouse now."""

    settings: FinalizerSettings
    spark: SparkSession
    serving: Serving
    landing: Landing
    crash_points: CrashPoints
    stop: threading.Event


@contextmanager
def writing(settings: FinalizerSettings, stop: threading.Event) -> Iterator[Driver]:
    """Takes the checkpoint and the serving database; gives both back. Raises `CheckpointInUse` and what a start may fail with."""
    with checkpoint_lock.hold(settings.checkpoint_dir):
        serving = Serving(
            settings.postgres_dsn.get_secret_value(), away_seconds_max=settings.postgres_away_seconds_max, stop=stop
        )
        try:
            serving.open()
            serving.keep_views(first_kept_hour(clock_ms(), settings.recent_days))
            with spark_session(settings) as spark:
                tables.ensure(
                    spark, settings.warehouse_dir, auto_compact=settings.auto_compact, rows_of=settings.row_topics
                )
                crash_points = CrashPoints(settings.crash_at)
                landing = Landing(
                    settings.warehouse_dir,
                    serving,
                    slices_max=settings.slices_max,
                    sets=settings.sets,
                    members_max=settings.members_max,
                    bytes_max=settings.batch_bytes_max,
                    customer_limits=CustomerLimits(settings.customers_database, settings.members_max),
                    clock_ms=clock_ms,
                    crash_points=crash_points,
                )
                yield Driver(settings, spark, serving, landing, crash_points, stop)
        finally:
            serving.close()


@contextmanager
def spark_session(settings: FinalizerSettings) -> Iterator[SparkSession]:
    """A Spark session for a job that only reads, or writes what no other job writes."""
    spark = session.start(settings)
    try:
        yield spark
    finally:
        spark.stop()


def clock_ms() -> int:
    """The wall clock, ms since 1970."""
    return time.time_ns() // 1_000_000
