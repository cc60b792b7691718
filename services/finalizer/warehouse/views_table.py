"""Reads and writes tables `views` and `unparsed`, batch by batch. No other module does."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.serving.published import Slice
from services.finalizer.transforms.views import minute_of_hour
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.scan import read_where
from services.finalizer.warehouse.table_log import is_known_empty
from services.finalizer.warehouse.tables import Table

KEY = ("day", "customer_id", "view_id")
_RECORD = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms")


def read(spark: SparkSession, warehouse: str, table: Table) -> DataFrame:
    """A table as it is now."""
    return spark.read.format("delta").load(table.path(warehouse))


def is_empty(spark: SparkSession, warehouse: str, table: Table) -> bool:
    """Whether a table is known to have no rows now: most tables of most installations have none."""
    return is_known_empty(spark, table.path(warehouse))


def insert_unparsed(
    spark: SparkSession, warehouse: str, rows: DataFrame, offsets: tuple[int, int] | None, *, landed_at_ms: int
) -> None:
    """Writes the rows that have a reason to table `unparsed`, each once, for any number of repetitions and checkpoints.

    `offsets` are the smallest and the largest of these rows: as literals they spare the reading of all other files.
    """
    if offsets is None:
        return
    columns = tables.UNPARSED.schema.fieldNames()
    aside = rows.where(sf.col("reason").isNotNull())
    aside.withColumn("landed_at_ms", sf.lit(landed_at_ms)).select(columns).createOrReplaceTempView("aside")
    # The append time separates a recreated topic from the former one, whose offsets it counts again.
    same_record = " AND ".join(f"stored.{name} = aside.{name}" for name in _RECORD)
    spark.sql(
        f"MERGE INTO {tables.UNPARSED.sql_name(warehouse)} AS stored USING aside"  # noqa: S608 - our names, integers
        f" ON stored.kafka_offset BETWEEN {offsets[0]:d} AND {offsets[1]:d} AND {same_record}"
        f" WHEN NOT MATCHED THEN INSERT ({listed(f'`{name}`' for name in columns)})"
        f" VALUES ({listed(f'aside.`{name}`' for name in columns)})"
    )


def stored_slices(
    spark: SparkSession, warehouse: str, views: DataFrame, days: Sequence[int]
) -> dict[Slice, frozenset[int]]:
    """The slices that hold older revisions of these views, and the minutes (0 to 59) in which they count."""
    stored = read_where(spark, warehouse, tables.VIEWS, sf.col("day").isin(*days))
    keys = sf.broadcast(views.select(*KEY))
    found = stored.join(keys, list(KEY), "left_semi").groupBy("hour", "customer_id")
    minutes = found.agg(sf.collect_set(minute_of_hour()).alias("minutes")).collect()
    return {Slice(row["hour"], row["customer_id"]): frozenset(row["minutes"]) for row in minutes}


def merge_views(
    spark: SparkSession, warehouse: str, views: DataFrame, days: Sequence[int], *, revises: bool, landed_at_ms: int
) -> None:
    """Upserts views, at most one row each; of a view that is stored the larger (generation, revision) stays.

    `days` are all days of `views`: as literals they spare the reading of every other day's files. `revises` says whether any
    row could be newer than a stored one; if none can, nothing stored is rewritten.
    """
    columns = tables.VIEWS.schema.fieldNames()
    views.withColumn("landed_at_ms", sf.lit(landed_at_ms)).select(columns).createOrReplaceTempView("landed")
    # All that is put into the text is ours: names of columns and days as integers.
    spark.sql(
        f"MERGE INTO {tables.VIEWS.sql_name(warehouse)} AS stored USING landed"  # noqa: S608
        f" ON {same_view(days)}"
        f" {f'WHEN MATCHED AND ({NEWER}) THEN UPDATE SET {_assigned(columns)}' if revises else ''}"
        f" WHEN NOT MATCHED THEN INSERT ({listed(f'`{name}`' for name in columns)})"
        f" VALUES ({listed(f'landed.`{name}`' for name in columns)})"
    )


def merge_beside(
    spark: SparkSession, warehouse: str, views: DataFrame, days: Sequence[int], *, landed_at_ms: int
) -> None:
    """Upserts views into what swaps have put aside, each generation by itself, so that a swap that is taken back lacks none."""
    put_aside = read(spark, warehouse, tables.REPLACED).where(sf.col("day").isin(*days))
    columns = [*tables.VIEWS.schema.fieldNames(), "absent"]
    (
        views.withColumns({"landed_at_ms": sf.lit(landed_at_ms), "absent": sf.lit(0)})
        .join(sf.broadcast(put_aside.select("for_generation", *KEY)), list(KEY))
        .where(sf.col("generation") < sf.col("for_generation"))
        .select(*columns, "for_generation")
        .createOrReplaceTempView("landed")
    )
    spark.sql(
        f"MERGE INTO {tables.REPLACED.sql_name(warehouse)} AS stored USING landed"
        f" ON {same_view(days)} AND stored.for_generation = landed.for_generation"
        f" WHEN MATCHED AND (stored.absent = 1 OR {NEWER}) THEN UPDATE SET {_assigned(columns)}"
    )


#: Whether the landed row replaces the stored one.
NEWER = (
    "landed.generation > stored.generation"
    " OR (landed.generation = stored.generation AND landed.revision > stored.revision)"
)


def same_view(days: Sequence[int]) -> str:
    """The condition of a merge that `landed` and `stored` are of one view; every day of `landed` is named."""
    keys = " AND ".join(f"stored.{name} = landed.{name}" for name in KEY)
    return f"stored.day IN ({listed(str(int(day)) for day in days)}) AND {keys}"


def in_slices(wanted: Collection[Slice], hour: str = "hour") -> Column:
    """Whether a row is of one of these slices (or, with another column's name, of its customer's days)."""
    customers_by_hour = defaultdict(set)
    for one in wanted:
        customers_by_hour[one.hour].add(one.customer_id)
    # Hours that have the same customers share a condition, so that it stays short.
    hours_by_customers = defaultdict(list)
    for one_hour, customers in customers_by_hour.items():
        hours_by_customers[tuple(sorted(customers))].append(one_hour)
    conditions = [
        sf.col(hour).isin(*hours) & sf.col("customer_id").isin(*customers)
        for customers, hours in hours_by_customers.items()
    ]
    return reduce(or_, conditions)


def listed(parts: Iterable[str]) -> str:
    """Parts with commas between them."""
    return ", ".join(parts)


def _assigned(columns: Iterable[str]) -> str:
    return listed(f"stored.`{name}` = landed.`{name}`" for name in columns)
