"""Lands topics `beacons`, `late` and `rejected` unchanged: append-only tables, each record once, one stream per topic."""

from collections.abc import Callable

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType

from services.finalizer.progress import Turn
from services.finalizer.streaming.batches import checkpoint_id, timed
from services.finalizer.transforms.views import DAY_MS
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.tables import RAW, Table
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import counter
from shared.metrics import FINALIZER_RAW_RECORDS
from shared.topics import REJECTED


class RawLanding:
    """The work of a topic's batches: one append each, fenced by checkpoint and batch number, which Delta keeps in the commit.

    So the batch that is run again after a crash appends nothing that the table has.
    """

    def __init__(
        self, warehouse: str, topic: str, topic_id: str, *, clock_ms: Callable[[], int], crash_points: CrashPoints
    ) -> None:
        self._warehouse = warehouse
        self._topic = topic
        self._topic_id = topic_id
        self._clock_ms = clock_ms
        self._crash_points = crash_points
        #: Held while the table's files are written: a file that no commit names yet looks like one that nobody needs.
        self.turn = Turn()

    def __call__(self, batch: DataFrame, batch_id: int) -> int:
        """Appends the batch; returns how many records it held."""
        table = RAW[self._topic]
        # Kept: else counting would read the offsets from Kafka again.
        rows = records(batch, topic_id=self._topic_id, landed_at_ms=self._clock_ms()).persist(
            StorageLevel.MEMORY_AND_DISK
        )
        try:
            with timed("read", table.name):
                count = rows.count()
            if count:
                with self.turn, timed("append", table.name):
                    self._append(rows, table, checkpoint_id(batch), batch_id)
                counter(FINALIZER_RAW_RECORDS).labels(self._topic).inc(count)
                self._crash_points.reach("raw_appended")
        finally:
            rows.unpersist()
        return count

    def _append(self, rows: DataFrame, table: Table, checkpoint: str, batch_id: int) -> None:
        (
            rows.select(table.schema.fieldNames())
            .coalesce(1)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", f"{checkpoint}/{table.name}")
            .option("txnVersion", batch_id)
            .save(table.path(self._warehouse))
        )


def records(batch: DataFrame, *, topic_id: str, landed_at_ms: int) -> DataFrame:
    """Records as the Kafka source gives them -> the columns of the raw tables."""
    headers = sf.coalesce("headers", sf.array().cast(tables.BRONZE.schema["headers"].dataType))
    append_ms = sf.unix_millis("timestamp")
    reasons = sf.filter("headers", lambda header: header["key"] == "reason")
    return batch.select(
        "topic",
        sf.col("partition").cast(IntegerType()).alias("kafka_partition"),
        sf.col("offset").cast(LongType()).alias("kafka_offset"),
        append_ms.alias("kafka_timestamp_ms"),
        sf.floor(append_ms / DAY_MS).cast(LongType()).alias("day"),
        "key",
        "value",
        headers.alias("headers"),
        sf.lit(landed_at_ms).cast(LongType()).alias("landed_at_ms"),
        sf.lit(topic_id).alias("topic_id"),
        sf.when(sf.col("topic") == REJECTED.name, sf.get(reasons, sf.lit(0))["value"].cast("string")).alias("reason"),
    )
