"""Lands topics `beacons`, `late` and `rejected` as they are: append-only tables, each record once."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType

from services.finalizer import tables
from services.finalizer.jobs.batches import checkpoint_id, timed
from services.finalizer.jobs.warehouse import read
from services.finalizer.tables import RAW, Table
from services.finalizer.transforms.views import DAY_MS
from services.rim.crash_points import CrashPoints
from services.rim.kafka import BOOT_SECONDS_MAX, client_config
from services.rim.metrics import counter
from shared.metrics import FINALIZER_RAW_RECORDS
from shared.settings import Settings
from shared.topics import REJECTED


class RawLanding:
    """The work of a batch: one append a table, fenced by checkpoint and batch number, which Delta keeps in the commit itself.

    So the batch that is run again after a crash appends to the tables it had not reached, and to no other.
    """

    def __init__(self, warehouse: str, *, clock_ms: Callable[[], int], crash_points: CrashPoints) -> None:
        self._warehouse = warehouse
        self._clock_ms = clock_ms
        self._crash_points = crash_points

    def __call__(self, batch: DataFrame, batch_id: int) -> int:
        """Appends the batch; returns how many records it held."""
        # Kept: else every table would read the offsets from Kafka again.
        rows = records(batch, landed_at_ms=self._clock_ms()).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with timed("read", "raw"):
                counts = {row["topic"]: row["count"] for row in rows.groupBy("topic").count().collect()}
            for topic, table in RAW.items():
                if counts.get(topic):
                    with timed(table.name, "raw"):
                        self._append(rows.where(sf.col("topic") == topic), table, checkpoint_id(batch), batch_id)
                    counter(FINALIZER_RAW_RECORDS).labels(topic).inc(counts[topic])
                    self._crash_points.reach("raw_appended")
        finally:
            rows.unpersist()
        return sum(counts.values())

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


def records(batch: DataFrame, *, landed_at_ms: int) -> DataFrame:
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
        sf.when(sf.col("topic") == REJECTED.name, sf.get(reasons, sf.lit(0))["value"].cast("string")).alias("reason"),
    )


def starting_offsets(spark: SparkSession, warehouse: str, settings: Settings) -> str:
    """Where a stream without a checkpoint begins, as Spark takes it: after what the tables hold, else with the earliest.

    So a checkpoint that was lost doubles nothing, which the fence of batches alone would not see.
    """
    consumer = Consumer(client_config(settings, "finalizer-offsets") | {"group.id": "finalizer-offsets"})
    try:
        starts = {
            topic: _starts(consumer, topic, _held(spark, warehouse, table)) for topic, table in sorted(RAW.items())
        }
    finally:
        consumer.close()
    return json.dumps(starts)


def _held(spark: SparkSession, warehouse: str, table: Table) -> Mapping[int, int]:
    """The offset after the last that the table holds, by partition."""
    last = read(spark, warehouse, table).groupBy("kafka_partition").agg(sf.max("kafka_offset").alias("last"))
    return {row["kafka_partition"]: row["last"] + 1 for row in last.collect()}


def _starts(consumer: Any, topic: str, held: Mapping[int, int]) -> dict[str, int]:
    deadline = time.monotonic() + BOOT_SECONDS_MAX
    partitions = consumer.list_topics(topic, timeout=BOOT_SECONDS_MAX).topics[topic].partitions
    starts = {}
    for partition in partitions:
        seconds = max(0.1, deadline - time.monotonic())
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=seconds)
        # A topic that was made anew counts from 0 again: what the table holds was of the former one.
        start = held.get(partition, first)
        starts[str(partition)] = start if first <= start <= end else first
    return starts
