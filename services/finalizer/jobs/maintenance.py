"""Maintenance of the tables between two batches: compaction, retention, vacuum."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.finalizer.failures import JobFailed
from services.finalizer.jobs.own_retention import Days, OwnRetention, condition
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import first_kept_hour
from services.finalizer.settings import FinalizerSettings
from services.finalizer.transforms.views import DAY_MS
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.tables import Table
from services.finalizer.warehouse.views_table import read
from services.rim.telemetry.metrics import counter, histogram
from shared.metrics import FINALIZER_MAINTENANCE_FAILURES, FINALIZER_MAINTENANCE_SECONDS

log = structlog.get_logger(__name__)


class MaintenanceFailed(JobFailed):
    """Some tables could not be maintained; the text names them. Nothing is lost: the next round does it again."""


@dataclass(frozen=True)
class Retention:
    """For how many days each table is kept; 0 for ever."""

    days: Mapping[str, int]
    minutes_days: int
    recent_days: float

    @staticmethod
    def of(settings: FinalizerSettings) -> "Retention":
        """As the settings say. What a swap has put aside, or was reprocessed, is kept as long as the views."""
        return Retention(
            days={
                tables.BRONZE.name: settings.bronze_days,
                tables.LATE_RECORDS.name: settings.late_days,
                tables.REJECTED.name: settings.rejected_days,
                tables.UNPARSED.name: settings.unparsed_days,
                tables.VIEWS.name: settings.views_days,
                tables.REPROCESSED.name: settings.views_days,
                tables.REPLACED.name: settings.views_days,
                tables.ROLLUPS.name: settings.rollups_days,
                **{table.name: settings.applications_days for table in tables.OF_APPLICATIONS},
            },
            minutes_days=settings.minutes_days,
            recent_days=settings.recent_days,
        )

    def condition(self, table: Table, now_ms: int) -> str | None:
        """Which rows are too old; None when none ever is."""
        # Who is refused is listed for ever.
        days = self.days.get(table.name, 0)
        conditions = []
        if days:
            first_day = now_ms // DAY_MS - days
            conditions.append(
                f"day < {first_day}"
                if "day" in table.schema.fieldNames()
                else f"kafka_timestamp_ms < {first_day * DAY_MS}"
            )
        if table is tables.ROLLUPS and self.minutes_days:
            conditions.append(f"(grain = 'minute' AND day < {now_ms // DAY_MS - self.minutes_days})")
        return " OR ".join(conditions) or None


class Maintenance:
    """One round every so often over the tables of one stream. The next round repeats failed or interrupted work."""

    def __init__(
        self,
        location: str,
        kept: Sequence[Table],
        retention: Retention,
        *,
        every_seconds: float,
        vacuum_hours: int,
        clock_ms: Callable[[], int],
        stop: threading.Event,
        turn: AbstractContextManager[Any] | None = None,
        serving: Serving | None = None,
        own: OwnRetention | None = None,
    ) -> None:
        """`turn` is held while these tables' files are rewritten that batches merge into, as they do: neither overtakes the other.

        `serving` is for the tables of views: what is too old goes there, too. `own` is what customers have set, for once a day.
        """
        self._turn = turn or nullcontext()
        self._location = location
        self._tables = kept
        self._serving = serving
        self._own = own
        self._retention = retention
        self._every_seconds = every_seconds
        self._vacuum_hours = vacuum_hours
        self._clock_ms = clock_ms
        self._stop = stop
        self._last = time.monotonic()
        #: The day on which each table was last clustered.
        self._clustered: dict[str, int] = {}
        #: The day on which customers' own retention was last seen to, by table; Postgres's under an empty name.
        self._seen_to: dict[str, int] = {}

    @staticmethod
    def of(
        settings: FinalizerSettings,
        kept: Sequence[Table],
        clock_ms: Callable[[], int],
        stop: threading.Event,
        *,
        turn: AbstractContextManager[Any] | None = None,
        serving: Serving | None = None,
    ) -> "Maintenance":
        """As the settings say."""
        return Maintenance(
            settings.warehouse_dir,
            kept,
            Retention.of(settings),
            every_seconds=settings.maintenance_seconds,
            vacuum_hours=settings.vacuum_hours,
            clock_ms=clock_ms,
            stop=stop,
            turn=turn,
            serving=serving,
            own=OwnRetention(settings),
        )

    def run_if_due(self, spark: SparkSession) -> bool:
        """Does a round when the last one is long enough ago; whether it did. A table that fails waits for the next."""
        if time.monotonic() - self._last < self._every_seconds:
            return False
        self.run(spark)
        self._last = time.monotonic()
        return True

    def run(self, spark: SparkSession) -> Sequence[str]:
        """Deletes what is too old, joins small files, and removes files that no version needs any more.

        Returns the tables that could not be maintained. Raises `Fenced`, `ServingAway`.
        """
        now_ms = self._clock_ms()
        failed: list[str] = []
        own = self._own.days() if self._own is not None else {}
        for table in self._tables:
            if self._stop.is_set():
                return failed
            try:
                with histogram(FINALIZER_MAINTENANCE_SECONDS).labels(table.name).time():
                    self._keep(spark, table, own, now_ms)
            except (PySparkException, Py4JJavaError) as error:
                # A disk that is full, files that a reader has removed, a writer that was quicker: records come first.
                failed.append(table.name)
                counter(FINALIZER_MAINTENANCE_FAILURES).labels(table.name).inc()
                log.error("not_maintained", table=table.name, error=str(error).partition("\n")[0][:500])
        if self._serving is not None:
            self._expire_served(self._serving, now_ms)
            with self._turn:
                if self._own is not None and self._seen_to.get("") != now_ms // DAY_MS:
                    self._own.expire_served(self._serving, own, now_ms)
                    self._seen_to[""] = now_ms // DAY_MS
        log.info("maintained", tables=[table.name for table in self._tables], failed=failed)
        return failed

    def _expire_served(self, serving: Serving, now_ms: int) -> None:
        days = self._retention.days[tables.ROLLUPS.name]
        serving.expire(
            rollups_before_ms=(now_ms // DAY_MS - days) * DAY_MS if days else None,
            views_since_hour=first_kept_hour(now_ms, self._retention.recent_days),
            turn=self._turn,
        )

    def _keep(self, spark: SparkSession, table: Table, own: Days, now_ms: int) -> None:
        name = table.sql_name(self._location)
        self._keep_own(spark, table, own, now_ms)
        too_old = self._retention.condition(table, now_ms)
        if too_old:
            self._rewrite(spark, f"DELETE FROM {name} WHERE {too_old}")  # noqa: S608 - names and integers of ours
        self._rewrite(spark, f"OPTIMIZE {name}")
        today = now_ms // DAY_MS
        if table.cluster_by and self._clustered.get(table.name) != today:
            # Clustering rewrites a day's files: once, when hardly anything comes to it any more.
            columns = ", ".join(table.cluster_by)
            self._rewrite(spark, f"OPTIMIZE {name} WHERE day = {today - 2} ZORDER BY ({columns})")
            self._clustered[table.name] = today
        vacuum(spark, self._location, table, hours=self._vacuum_hours)

    def _keep_own(self, spark: SparkSession, table: Table, own: Days, now_ms: int) -> None:
        """Deletes what is too old for its customer, and rewrites the files that have it."""
        too_old = condition(table, own, now_ms)
        if self._own is None or too_old is None or self._seen_to.get(table.name) == now_ms // DAY_MS:
            return
        if not read(spark, self._location, table).where(too_old).isEmpty():
            if not self._own.may_delete(spark, table, too_old):
                return
            self._rewrite(spark, f"DELETE FROM {table.sql_name(self._location)} WHERE {too_old}")  # noqa: S608 - as above
            self._rewrite(spark, f"REORG TABLE {table.sql_name(self._location)} APPLY (PURGE)")
        self._seen_to[table.name] = now_ms // DAY_MS

    def _rewrite(self, spark: SparkSession, statement: str) -> None:
        with self._turn:
            spark.sql(statement)


def vacuum(spark: SparkSession, location: str, table: Table, *, hours: int) -> None:
    """Removes the files that no version of the last `hours` needs. Readers of an older version fail."""
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {table.sql_name(location)} RETAIN {hours} HOURS")
