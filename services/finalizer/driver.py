"""The driver that every job needs: the checkpoint's lock, the serving database, a Spark session, and verified tables."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
from pyspark.sql import SparkSession

from services.finalizer.failures import JobFailed
from services.finalizer.serving.customer_limits import CustomerLimits
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import first_kept_hour
from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming.landing import Landing
from services.finalizer.streaming.rebuilding import Rebuilding
from services.finalizer.transforms.forgotten import Forgotten
from services.finalizer.warehouse import checkpoint_lock, session, tables
from services.finalizer.warehouse.views_table import is_empty, read
from services.rim.process.crash_points import CrashPoints

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Driver:
    """The one process that writes the warehouse now."""

    settings: FinalizerSettings
    spark: SparkSession
    serving: Serving
    landing: Landing
    rebuilding: Rebuilding
    crash_points: CrashPoints
    stop: threading.Event

    def earlier_ms(self) -> int:
        """See `earlier_ms`."""
        return earlier_ms(self.serving)


class StoppedEarly(JobFailed):
    """The service was asked to stop before it had begun. No step is left half done: the next start continues."""

    def __init__(self) -> None:
        super().__init__("stopped before it began")


@contextmanager
def writing(settings: FinalizerSettings, stop: threading.Event) -> Iterator[Driver]:
    """Takes the checkpoint and the serving database; gives both back.

    Raises `CheckpointInUse`, `StoppedEarly`, and what a start may fail with.
    """
    with checkpoint_lock.hold(settings.checkpoint_dir), driving(settings, stop) as driver:
        yield driver


@contextmanager
def driving(settings: FinalizerSettings, stop: threading.Event) -> Iterator[Driver]:
    """As `writing`, for who holds the checkpoint."""

    def go_on() -> None:
        # Spark and dozens of statements take a minute on a busy machine, and a stop has its deadline.
        if stop.is_set():
            raise StoppedEarly

    serving = Serving(
        settings.postgres_dsn.get_secret_value(), away_seconds_max=settings.postgres_away_seconds_max, stop=stop
    )
    try:
        serving.open()
        go_on()
        with spark_session(settings) as spark:
            tables.ensure(
                spark,
                settings.warehouse_dir,
                auto_compact=settings.auto_compact,
                rows_of=settings.row_topics,
                before_each=go_on,
            )
            # Before views are kept: from then on others bring them, too.
            refuse_forgotten(spark, settings.warehouse_dir, serving)
            serving.keep_views(first_kept_hour(earlier_ms(serving), settings.recent_days))
            crash_points = CrashPoints(settings.crash_at)
            landing = Landing(
                settings.warehouse_dir,
                serving,
                bytes_max=settings.batch_bytes_max,
                clock_ms=clock_ms,
                crash_points=crash_points,
            )
            rebuilding = rebuilding_of(settings, serving, landing, clock_ms=clock_ms, crash_points=crash_points)
            yield Driver(settings, spark, serving, landing, rebuilding, crash_points, stop)
    finally:
        serving.close()


def rebuilding_of(
    settings: FinalizerSettings,
    serving: Serving,
    landing: Landing,
    *,
    clock_ms: Callable[[], int],
    crash_points: CrashPoints,
) -> Rebuilding:
    """What rebuilds what this landing makes dirty, as the settings say."""
    return Rebuilding(
        settings.warehouse_dir,
        serving,
        slices_max=settings.slices_max,
        sets=settings.sets,
        members_max=settings.members_max,
        customer_limits=CustomerLimits(settings.customers_database, settings.members_max),
        turn=landing.turn,
        clock_ms=clock_ms,
        crash_points=crash_points,
    )


def refuse_forgotten(spark: SparkSession, warehouse: str, serving: Serving) -> None:
    """Gives the serving database the list of forgotten viewers: it may have been lost, or be that of an earlier day."""
    listed = tables.FORGOTTEN
    known = [] if is_empty(spark, warehouse, listed) else read(spark, warehouse, listed).collect()
    serving.forget_again([Forgotten(one["customer_id"], bytes(one["viewer"]), one["forgotten_ms"]) for one in known])


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


#: Further apart, one of two clocks is wrong.
_APART_MS_MAX: Final = 600_000


def earlier_ms(serving: Serving) -> int:
    """The time by which data is too old, ms since 1970: what one wrong clock deletes would not come back.

    That is the earlier of two clocks, of this machine and of the serving database. Raises `ServingAway`.
    """
    own_ms, other_ms = clock_ms(), serving.clock_ms()
    if abs(own_ms - other_ms) > _APART_MS_MAX:
        log.error("clocks_differ", own_ms=own_ms, postgres_ms=other_ms)
    return min(own_ms, other_ms)
