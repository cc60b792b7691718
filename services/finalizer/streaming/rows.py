"""Lands a topic of rows: one merge per batch. The merge may be repeated, so no crash and no new checkpoint doubles a row."""

from collections.abc import Callable, Iterable

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.progress import Turn
from services.finalizer.row_topics import PLACE, RowTopic
from services.finalizer.streaming.batches import checkpoint_id, timed
from services.finalizer.transforms.rows import newest, parse
from services.finalizer.transforms.views import REASONS
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.views_table import read
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import begin, counter
from shared.metrics import FINALIZER_ROWS, FINALIZER_UNPARSED


class RowLanding:
    """The work of a batch of a topic of rows."""

    def __init__(
        self, warehouse: str, topic: RowTopic, *, clock_ms: Callable[[], int], crash_points: CrashPoints
    ) -> None:
        self._warehouse = warehouse
        self._topic = topic
        self._table = tables.ROWS[topic.name]
        self._clock_ms = clock_ms
        self._crash_points = crash_points
        #: Held while the table's files are rewritten: by a merge, or by maintenance.
        self.turn = Turn()
        begin(FINALIZER_UNPARSED, REASONS)

    def __call__(self, batch: DataFrame, batch_id: int) -> int:
        """Lands the batch; returns how many records it held."""
        topic, spark = self._topic, batch.sparkSession
        landed_at_ms = sf.lit(self._clock_ms()).cast("long")
        # Kept: else every use would read the offsets from Kafka again.
        rows = parse(batch, topic).withColumn("landed_at_ms", landed_at_ms).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with timed("read", topic.name):
                counts = {row["reason"]: row["count"] for row in rows.groupBy("reason").count().collect()}
            aside = {reason: count for reason, count in counts.items() if reason is not None}
            if aside:
                with self.turn, timed("unparsed", topic.name):
                    self._append_unparsed(rows, checkpoint_id(batch), batch_id)
                self._crash_points.reach("unparsed")
            if counts.get(None):
                with self.turn, timed("merge", topic.name):
                    self._merge(spark, newest(rows, topic))
                self._crash_points.reach("merged")
        finally:
            rows.unpersist()
        counter(FINALIZER_ROWS).labels(topic.name).inc(counts.get(None, 0))
        for reason, count in aside.items():
            counter(FINALIZER_UNPARSED).labels(reason).inc(count)
        return sum(counts.values())

    def _append_unparsed(self, rows: DataFrame, checkpoint: str, batch_id: int) -> None:
        """Appends those with a reason, but for those that are there: fenced by the batch, and known by their place.

        Appends of several streams never conflict, as merges would.
        """
        table, name = tables.UNPARSED_ROWS, self._topic.name
        there = read(rows.sparkSession, self._warehouse, table).where(sf.col("topic") == name).select(*PLACE)
        aside = rows.where(sf.col("reason").isNotNull()).join(there, list(PLACE), "left_anti")
        (
            aside.withColumn("topic", sf.lit(name))
            .select(table.schema.fieldNames())
            .coalesce(1)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", f"{checkpoint}/{table.name}/{name}")
            .option("txnVersion", batch_id)
            .save(table.path(self._warehouse))
        )

    def _merge(self, spark: SparkSession, rows: DataFrame) -> None:
        table, revised_by = self._table, self._topic.revised_by
        columns = table.schema.fieldNames()
        rows.select(columns).createOrReplaceTempView("landed")
        conditions = [f"stored.`{name}` = landed.`{name}`" for name in self._topic.key]
        if self._topic.day_of is not None:
            conditions.insert(0, self._days(rows))
        # A revision stays under the day that its row is stored under.
        # All that is put into the text is ours: names of columns and days as integers.
        assigned = _listed(f"stored.`{name}` = landed.`{name}`" for name in columns if name != "day")
        revises = f" WHEN MATCHED AND {_newer(revised_by)} THEN UPDATE SET {assigned}" if revised_by else ""
        spark.sql(
            f"MERGE INTO {table.sql_name(self._warehouse)} AS stored USING landed"  # noqa: S608
            f" ON {' AND '.join(conditions)}"
            f"{revises} WHEN NOT MATCHED THEN INSERT ({_listed(f'`{name}`' for name in columns)})"
            f" VALUES ({_listed(f'landed.`{name}`' for name in columns)})"
        )

    def _days(self, rows: DataFrame) -> str:
        """Where a stored row can be: as literals they spare the reading of every other day's files."""
        found = rows.agg(sf.collect_set("day").alias("days")).collect()[0]["days"]
        apart = self._topic.days_apart
        days = sorted({day + offset for day in found for offset in range(-apart, apart + 1)})
        return f"stored.day IN ({_listed(str(int(day)) for day in days)})"


def _newer(revised_by: tuple[str, ...]) -> str:
    """Whether what landed is newer than what is stored: the first column that differs decides."""
    both = tuple(_listed(f"{side}.`{name}`" for name in revised_by) for side in ("landed", "stored"))
    return f"struct({both[0]}) > struct({both[1]})"


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
