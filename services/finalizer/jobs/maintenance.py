"""Maintenance of the tables between two batches: compaction, retention, vacuum."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.finalizer.failures import JobFailed
from services.finalizer.jobs.own_retention import Days, OwnRetention, condition
from services.finalizer.jobs.rounds import Rounds
from services.finalizer.progress import step
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import first_kept_hour
from services.finalizer.settings import FinalizerSettings
from services.finalizer.transforms.views import DAY_MS
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.hadoop_files import holds_data
from services.finalizer.warehouse.recorded_objects import ObjectsFailed
from services.finalizer.warehouse.tables import Table
from services.finalizer.warehouse.views_table import read
from services.rim.telemetry.metrics import begin, counter, histogram
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


#: Among the names of tables: what is too old in Postgres.
_SERVED: Final = "serving"


class Maintenance:
    """One round every so often over the tables of one stream. The next round repeats failed or interrupted work."""

    def __init__(
        self,
        location: str,
        kept: Sequence[Table],
        retention: Retention,
        *,
        vacuum_hours: int,
        clock_ms: Callable[[], int],
        stop: threading.Event,
        turn: AbstractContextManager[Any] | None = None,
        serving: Serving | None = None,
        own: OwnRetention | None = None,
        rounds: Rounds | None = None,
    ) -> None:
        """`turn` is held while these tables' files are rewritten that batches merge into, as they do: neither overtakes the other.

        `serving` is for the tables of views: what is too old goes there, too. `own` is what customers have set, for once a day.
        `rounds` know what is due, and note what is done.
        """
        self._turn = turn or nullcontext()
        self._location = location
        self._tables = kept
        self._serving = serving
        self._own = own
        self._retention = retention
        self._vacuum_hours = vacuum_hours
        self._clock_ms = clock_ms
        self._stop = stop
        self._rounds = rounds
        #: The day on which each table was last clustered.
        self._clustered: dict[str, int] = {}
        #: The day on which customers' own retention was last seen to, by table; Postgres's under `_SERVED`.
        self._seen_to: dict[str, int] = {}
        begin(FINALIZER_MAINTENANCE_FAILURES, [table.name for table in kept])

    @staticmethod
    def of(
        settings: FinalizerSettings,
        kept: Sequence[Table],
        clock_ms: Callable[[], int],
        stop: threading.Event,
        *,
        turn: AbstractContextManager[Any] | None = None,
        serving: Serving | None = None,
        rounds: Rounds | None = None,
    ) -> "Maintenance":
        """As the settings say."""
        return Maintenance(
            settings.warehouse_dir,
            kept,
            Retention.of(settings),
            vacuum_hours=settings.vacuum_hours,
            clock_ms=clock_ms,
            stop=stop,
            turn=turn,
            serving=serving,
            own=OwnRetention(settings),
            rounds=rounds,
        )

    def run_if_due(self, spark: SparkSession, *, although_stopping: bool = False) -> bool:
        """Does a round of what is due; whether anything was. A table that fails waits for the next.

        Raises `Fenced`, `ServingAway`.
        """
        assert self._rounds is not None, "rounds know what is due"
        due = self._rounds.due(self._names())
        if due:
            self._run(spark, due, although_stopping=although_stopping)
        return bool(due)

    def run(self, spark: SparkSession) -> Sequence[str]:
        """Deletes what is too old, joins small files, and removes files that no version needs any more.

        Returns the tables that could not be maintained. Raises `Fenced`, `ServingAway`.
        """
        return self._run(spark, self._names(), although_stopping=False)

    def _names(self) -> list[str]:
        return [*(table.name for table in self._tables), *([] if self._serving is None else [_SERVED])]

    def _run(self, spark: SparkSession, names: Sequence[str], *, although_stopping: bool) -> Sequence[str]:
        now_ms = self._clock_ms()
        failed: list[str] = []
        own = self._own.days() if self._own is not None else {}
        for table in self._tables:
            if table.name not in names:
                continue
            if self._stop.is_set() and not although_stopping:
                return failed
            step()
            try:
                with histogram(FINALIZER_MAINTENANCE_SECONDS).labels(table.name).time():
                    self._keep(spark, table, own or {}, now_ms)
            except (PySparkException, Py4JJavaError) as error:
                # A disk that is full, files that a reader has removed, a writer that was quicker: records come first.
                failed.append(table.name)
                counter(FINALIZER_MAINTENANCE_FAILURES).labels(table.name).inc()
                log.error("not_maintained", table=table.name, error=str(error).partition("\n")[0][:500])
            self._note(table.name)
        if self._serving is not None and _SERVED in names:
            step()
            self._expire_served(self._serving, now_ms)
            with self._turn:
                # What is not known now is seen to in the next round.
                if self._own is not None and own is not None and self._seen_to.get(_SERVED) != now_ms // DAY_MS:
                    self._own.expire_served(self._serving, own, now_ms)
                    self._seen_to[_SERVED] = now_ms // DAY_MS
            self._note(_SERVED)
        log.info("maintained", tables=names, failed=failed)
        return failed

    def _note(self, name: str) -> None:
        if self._rounds is not None:
            self._rounds.done(name)

    def _expire_served(self, serving: Serving, now_ms: int) -> None:
        days = self._retention.days[tables.ROLLUPS.name]
        serving.expire(
            rollups_before_ms=(now_ms // DAY_MS - days) * DAY_MS if days else None,
            views_since_hour=first_kept_hour(now_ms, self._retention.recent_days),
            turn=self._turn,
        )

    def _keep(self, spark: SparkSession, table: Table, own: Days, now_ms: int) -> None:
        if not holds_data(spark, table.path(self._location)):
            return
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
            is_deleted = False
            try:
                for part in self._own.deletable(spark, table, too_old):
                    self._rewrite(spark, f"DELETE FROM {table.sql_name(self._location)} WHERE {part}")  # noqa: S608 - as above
                    is_deleted = True
            except ObjectsFailed as error:
                log.warning("recordings_kept", problem=str(error))
                return
            if not is_deleted:
                return
            self._rewrite(spark, f"REORG TABLE {table.sql_name(self._location)} APPLY (PURGE)")
        self._seen_to[table.name] = now_ms // DAY_MS

    def _rewrite(self, spark: SparkSession, statement: str) -> None:
        step()
        with self._turn:
            spark.sql(statement)


def vacuum(spark: SparkSession, location: str, table: Table, *, hours: int) -> None:
    """Removes the files that no version of the last `hours` needs. Readers of an older version fail."""
    step()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {table.sql_name(location)} RETAIN {hours} HOURS")
