"""Reads and writes of the Delta tables: the only place that does."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer import tables
from services.finalizer.serving import Rebuilt, Slice
from services.finalizer.transforms.rollups import measures, slices

_KEY = ("day", "customer_id", "view_id")
_RECORD = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms")


def set_aside(
    spark: SparkSession, warehouse_dir: Path, rows: DataFrame, offsets: tuple[int, int] | None, *, landed_at_ms: int
) -> None:
    """Puts the rows that have a reason into table `unparsed`, each once however often and by whichever checkpoint it comes.

    `offsets` are the smallest and the largest of these rows: as literals they spare the reading of all other files.
    """
    if offsets is None:
        return
    columns = tables.UNPARSED.schema.fieldNames()
    aside = rows.where(sf.col("reason").isNotNull())
    aside.withColumn("landed_at_ms", sf.lit(landed_at_ms)).select(columns).createOrReplaceTempView("aside")
    # The append time tells a topic that was made anew from the former one, whose offsets it counts again.
    same_record = " AND ".join(f"stored.{name} = aside.{name}" for name in _RECORD)
    spark.sql(
        f"MERGE INTO {tables.UNPARSED.sql_name(warehouse_dir)} AS stored USING aside"  # noqa: S608 - our names, integers
        f" ON stored.kafka_offset BETWEEN {offsets[0]:d} AND {offsets[1]:d} AND {same_record}"
        f" WHEN NOT MATCHED THEN INSERT ({_list(f'`{name}`' for name in columns)})"
        f" VALUES ({_list(f'aside.`{name}`' for name in columns)})"
    )


def stored_slices(spark: SparkSession, warehouse_dir: Path, views: DataFrame, days: Sequence[int]) -> set[Slice]:
    """The slices in which older revisions of these views stand now."""
    stored = spark.read.format("delta").load(tables.VIEWS.path(warehouse_dir)).where(sf.col("day").isin(*days))
    keys = sf.broadcast(views.select(*_KEY))
    found = stored.join(keys, list(_KEY), "left_semi").select("hour", "customer_id").distinct().collect()
    return {Slice(row["hour"], row["customer_id"]) for row in found}


def merge_views(
    spark: SparkSession,
    warehouse_dir: Path,
    views: DataFrame,
    days: Sequence[int],
    *,
    revises: bool,
    landed_at_ms: int,
) -> None:
    """Upserts views, at most one row each; of a view that is stored the larger (generation, revision) stays.

    `days` are all days of `views`: as literals they spare the reading of every other day's files. `revises` says whether any
    row could be newer than a stored one; if none can, nothing stored is rewritten.
    """
    columns = tables.VIEWS.schema.fieldNames()
    views.withColumn("landed_at_ms", sf.lit(landed_at_ms)).select(columns).createOrReplaceTempView("landed")
    same_view = " AND ".join(f"stored.{name} = landed.{name}" for name in _KEY)
    newer = (
        "landed.generation > stored.generation"
        " OR (landed.generation = stored.generation AND landed.revision > stored.revision)"
    )
    update = (
        f"WHEN MATCHED AND ({newer}) THEN UPDATE SET {_list(f'stored.`{name}` = landed.`{name}`' for name in columns)}"
    )
    # All that is put into the text is ours: names of columns and days as integers.
    spark.sql(
        f"MERGE INTO {tables.VIEWS.sql_name(warehouse_dir)} AS stored USING landed"  # noqa: S608
        f" ON stored.day IN ({_list(str(int(day)) for day in days)}) AND {same_view}"
        f" {update if revises else ''}"
        f" WHEN NOT MATCHED THEN INSERT ({_list(f'`{name}`' for name in columns)})"
        f" VALUES ({_list(f'landed.`{name}`' for name in columns)})"
    )


def rebuild(spark: SparkSession, warehouse_dir: Path, wanted: Sequence[Slice]) -> Rebuilt:
    """The slices as the views say they are now."""
    views = spark.read.format("delta").load(tables.VIEWS.path(warehouse_dir)).where(_in_slices(wanted))
    rows = slices(views).collect()
    names = list(measures())
    return Rebuilt(
        slices=wanted,
        measures=names,
        sums=[
            (row["hour"], row["customer_id"], *(row[name] for name in names)) for row in rows if row["metric"] is None
        ],
        buckets=[
            (row["hour"], row["customer_id"], row["metric"], row["bucket"], row["views"])
            for row in rows
            if row["metric"] is not None
        ],
    )


def _in_slices(wanted: Collection[Slice]) -> Column:
    customers_by_hour = defaultdict(set)
    for one in wanted:
        customers_by_hour[one.hour].add(one.customer_id)
    # Hours that have the same customers share a condition, so that it stays short.
    hours_by_customers = defaultdict(list)
    for hour, customers in customers_by_hour.items():
        hours_by_customers[tuple(sorted(customers))].append(hour)
    conditions = [
        sf.col("hour").isin(*hours) & sf.col("customer_id").isin(*customers)
        for customers, hours in hours_by_customers.items()
    ]
    return reduce(or_, conditions)


def _list(parts: Iterable[str]) -> str:
    return ", ".join(parts)
