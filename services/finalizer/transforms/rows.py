"""Turns records of a topic of rows into columns of its table: parses, separates invalid records, keeps the newest."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from services.finalizer.row_topics import RowTopic
from services.finalizer.transforms.spark_schema import never_null, spark_schema
from services.finalizer.transforms.views import DAY_MS, INVALID, UNDECODABLE, UNKNOWN_VERSION

_CORRUPT: Final = "_corrupt"


def columns_of(topic: RowTopic) -> StructType:
    """The schema's fields as columns, those that no column can hold as text."""
    return spark_schema(topic.schema, as_text=topic.as_json)


def parse(records: DataFrame, topic: RowTopic) -> DataFrame:
    """Records as the Kafka source gives them -> the columns of the table but `landed_at_ms`, and `value` and `reason`.

    `reason` is null for a row; otherwise it says why this code cannot read the record: one of `views.REASONS`.
    """
    fields = columns_of(topic)
    text = sf.col("value").cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = records.select(
        sf.from_json(text, StructType([*fields.fields]).add(_CORRUPT, StringType()), options).alias("row"),
        sf.is_valid_utf8(text).alias("is_text"),
        sf.col("key").cast("string").alias("_key"),
        # The bytes as they came: a repair needs them.
        "value",
        sf.col("partition").cast(IntegerType()).alias("kafka_partition"),
        sf.col("offset").cast(LongType()).alias("kafka_offset"),
        sf.unix_millis("timestamp").alias("kafka_timestamp_ms"),
    )
    flat = parsed.select("*", f"row.{_CORRUPT}", *(f"row.`{name}`" for name in fields.fieldNames())).drop("row")
    if topic.tombstone_of is not None:
        is_tombstone = sf.col("value").isNull() & sf.col("_key").isNotNull()
        flat = flat.withColumns(
            {
                topic.tombstone_of: sf.when(is_tombstone, sf.col("_key")).otherwise(sf.col(topic.tombstone_of)),
                "deleted": is_tombstone,
            }
        )
    judged = flat.withColumn("reason", _reason(topic)).drop("is_text", "_key", _CORRUPT)
    if topic.day_of is not None:
        judged = judged.withColumn("day", sf.floor(sf.col(topic.day_of) / DAY_MS).cast(LongType()))
    return judged


def newest(rows: DataFrame, topic: RowTopic) -> DataFrame:
    """The newest row of each key, of those without a reason. The order is total: of equal ones the later record wins."""
    order = [sf.col(name).desc() for name in (*topic.revised_by, "kafka_partition", "kafka_offset")]
    rank = sf.row_number().over(Window.partitionBy(*topic.key).orderBy(*order))
    return rows.where(sf.col("reason").isNull()).withColumn("rank", rank).where(sf.col("rank") == 1).drop("rank")


def _reason(topic: RowTopic) -> Column:
    """Why the flat row cannot be used, or null. The first that holds is given."""
    unreadable = sf.col("value").isNull() | ~sf.col("is_text") | sf.col(_CORRUPT).isNotNull()
    reason = (
        sf.when(sf.col("schema_version") > topic.schema_version, sf.lit(UNKNOWN_VERSION))
        .when(unreadable, sf.lit(UNDECODABLE))
        .when(_any(sf.col(name).isNull() for name in never_null(topic.schema)), sf.lit(INVALID))
    )
    return reason if topic.tombstone_of is None else sf.when(~sf.col("deleted"), reason)


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions)
