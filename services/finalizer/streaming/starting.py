"""Where a stream without a checkpoint begins: after what the warehouse has had of its topic, whether or not that is still there."""

import json
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming.stream import checkpoint
from services.finalizer.warehouse import identity, landed, tables
from services.finalizer.warehouse.tables import RAW, Table
from services.finalizer.warehouse.views_table import is_empty, read
from services.rim.kafka.connection import BOOT_SECONDS_MAX, client_config
from services.rim.kafka.watermarks import watermarks
from shared.settings import Settings
from shared.topics import VIEWS


def note_landed(spark: SparkSession, settings: FinalizerSettings) -> None:
    """Notes in the warehouse how far each stream has come, by its checkpoint: rows that are about to be deleted do not say it."""
    names = [VIEWS.name, *(table.name for table in RAW.values()), *(topic.name for topic in settings.row_topics)]
    rows = [
        (topic, ids[topic], partition, end)
        for folder in (checkpoint(settings, name) for name in names)
        if (ids := identity.noted_topics(spark, folder))
        for (topic, partition), end in landed.landed_to(spark, folder).items()
        if topic in ids
    ]
    if rows:
        ends = spark.createDataFrame(rows, tables.LANDED.schema).coalesce(1)
        ends.write.format("delta").mode("append").save(tables.LANDED.path(settings.warehouse_dir))


def starting_offsets(spark: SparkSession, warehouse: str, kafka: Settings, topic: str, topic_id: str) -> str:
    """Where a stream without a checkpoint begins, as Spark takes it: after what was landed of each partition, else at the earliest.

    So a checkpoint that was lost doubles no raw record, and brings back nothing that was deleted.
    """
    known = landed_before(spark, warehouse, topic, topic_id)
    if not known:
        return "earliest"
    consumer = Consumer(client_config(kafka, "finalizer-offsets") | {"group.id": "finalizer-offsets"})
    try:
        return json.dumps({topic: _starts(consumer, topic, known)})
    finally:
        consumer.close()


def landed_before(spark: SparkSession, warehouse: str, topic: str, topic_id: str) -> Mapping[int, int]:
    """The offset after the last that is known to have landed, by partition; a topic that was recreated counts from 0 again."""
    known: dict[int, int] = {}
    if not is_empty(spark, warehouse, tables.LANDED):
        of_topic = (sf.col("topic") == topic) & (sf.col("topic_id") == topic_id)
        noted = read(spark, warehouse, tables.LANDED).where(of_topic)
        ends = noted.groupBy("kafka_partition").agg(sf.max("next_offset").alias("end")).collect()
        known = {row["kafka_partition"]: row["end"] for row in ends}
    if topic in RAW:
        for partition, end in held(spark, warehouse, RAW[topic], topic_id).items():
            known[partition] = max(end, known.get(partition, end))
    return known


def held(spark: SparkSession, warehouse: str, table: Table, topic_id: str) -> Mapping[int, int]:
    """The offset after the last that a raw table holds of this topic, by partition."""
    if is_empty(spark, warehouse, table):
        return {}
    # Rows without an id are of a version before it was kept.
    of_topic = read(spark, warehouse, table).where(sf.coalesce("topic_id", sf.lit(topic_id)) == topic_id)
    last = of_topic.groupBy("kafka_partition").agg(sf.max("kafka_offset").alias("last"))
    return {row["kafka_partition"]: row["last"] + 1 for row in last.collect()}


def _starts(consumer: Any, topic: str, known: Mapping[int, int]) -> dict[str, int]:
    deadline = time.monotonic() + BOOT_SECONDS_MAX
    partitions = consumer.list_topics(topic, timeout=BOOT_SECONDS_MAX).topics[topic].partitions
    starts = {}
    for partition in partitions:
        seconds = max(0.1, deadline - time.monotonic())
        first, end = watermarks(consumer, TopicPartition(topic, partition), seconds)
        # What was deleted since is lost, and no reason to stop here: the gap is that of the checkpoint that was given up.
        start = max(first, known.get(partition, first))
        # Only rows without an id can be of a topic that had more.
        starts[str(partition)] = start if start <= end else first
    return starts
