"""Lands topics `beacons`, `late` and `rejected` unchanged: append-only tables, each record once, one stream per topic."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType

from services.finalizer.progress import Turn
from services.finalizer.streaming.batches import checkpoint_id, timed
from services.finalizer.transforms.views import DAY_MS
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.tables import RAW, Table
from services.finalizer.warehouse.views_table import read
from services.rim.kafka.connection import BOOT_SECONDS_MAX, client_config
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import counter
from shared.metrics import FINALIZER_RAW_RECORDS
from shared.settings import Settings
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


def starting_offsets(spark: SparkSession, warehouse: str, settings: Settings, topic: str, topic_id: str) -> str:
    """Where a stream without a checkpoint begins, as Spark takes it: after what its table holds, else with the earliest.

    So a checkpoint that was lost doubles nothing, which the fence of batches alone would not see.
    """
    consumer = Consumer(client_config(settings, "finalizer-offsets") | {"group.id": "finalizer-offsets"})
    try:
        return json.dumps({topic: _starts(consumer, topic, held(spark, warehouse, RAW[topic], topic_id))})
    finally:
        consumer.close()


def held(spark: SparkSession, warehouse: str, table: Table, topic_id: str) -> Mapping[int, int]:
    """The offset after the last that the table holds of this topic, by partition: a recreated one counts from 0 again."""
    # Rows without an id are of a version before it was kept.
    of_topic = read(spark, warehouse, table).where(sf.coalesce("topic_id", sf.lit(topic_id)) == topic_id)
    last = of_topic.groupBy("kafka_partition").agg(sf.max("kafka_offset").alias("last"))
    return {row["kafka_partition"]: row["last"] + 1 for row in last.collect()}


def _starts(consumer: Any, topic: str, held: Mapping[int, int]) -> dict[str, int]:
    deadline = time.monotonic() + BOOT_SECONDS_MAX
    partitions = consumer.list_topics(topic, timeout=BOOT_SECONDS_MAX).topics[topic].partitions
    starts = {}
    for partition in partitions:
        seconds = max(0.1, deadline - time.monotonic())
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=seconds)
        # What was deleted since is lost, and no reason to stop here: the gap is that of the checkpoint that was given up.
        start = max(first, held.get(partition, first))
        # Only rows without an id can be of a topic that had more.
        starts[str(partition)] = start if start <= end else first
    return starts
