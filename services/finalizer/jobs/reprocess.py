"""Folds views again from table `bronze`, as a new generation in table `reprocessed`. Readers still see the present one.

`compare` shows what the generation would change, `swap` makes it visible to readers. Each step may be repeated after a crash.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.failures import JobFailed
from services.finalizer.transforms.forgotten import without_forgotten
from services.finalizer.transforms.views import DAY_MS, latest_per_view, parse
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.views_table import read

#: A view lasts a day and may be revised for hours after its end: beacons of so many days around it are read.
_DAYS_BEFORE: Final = 1
_DAYS_AFTER: Final = 2
#: Existing rows are searched up to so many days before the days that are folded: their first beacons may be gone.
_DAYS_STORED_BEFORE: Final = 7
#: So long a view may be open, ms: one whose newest beacons are younger may not be complete.
_OPEN_MS_MAX: Final = DAY_MS

#: Rows of a reprocess are older than every live revision of their generation. The number that the fold gives is not used: with
#: other limits it may count more revisions than the processor did.
REVISION: Final = 0


class NothingReprocessed(JobFailed):
    """There is no such generation."""


class BeaconsGone(JobFailed):
    """Table `bronze` does not reach back to the days that are asked for; the text says from when on it does."""


class GenerationSwapped(JobFailed):
    """The generation is read already, on some of these days: what it says there is not made over."""


class Made(NamedTuple):
    """How many views were folded again, and of how many `bronze` holds only a part: their rows stay as they are."""

    views: int
    partial: int


def make(
    spark: SparkSession, warehouse: str, days: tuple[int, int], generation: int, environ: Mapping[str, str]
) -> Made:
    """Folds the beacons of views that began on these days (since 1970, both included).

    Replaces what the generation held of these days. Raises `BeaconsGone`, `GenerationSwapped`.
    """
    first, last = days
    bronze = read(spark, warehouse, tables.BRONZE)
    _refuse_gone(bronze, first)
    _refuse_swapped(spark, warehouse, days, generation)
    beacons = bronze.where(sf.col("day").between(first - _DAYS_BEFORE, last + _DAYS_AFTER))
    records = folded(beacons, environ)
    let_in = without_forgotten(parse(records), read(spark, warehouse, tables.FORGOTTEN))
    made = latest_per_view(let_in).where(sf.col("reason").isNull() & sf.col("day").between(first, last))
    ends = beacons.groupBy("kafka_partition").agg(sf.max("kafka_timestamp_ms").alias("read_until_ms"))
    rows = _partial_marked(made, _stored(spark, warehouse, days), ends).withColumns(
        {
            "generation": sf.lit(generation).cast("bigint"),
            "revision": sf.lit(REVISION).cast("bigint"),
            "landed_at_ms": sf.lit(None).cast("bigint"),
        }
    )
    (
        rows.select(tables.REPROCESSED.schema.fieldNames())
        .write.format("delta")
        .mode("overwrite")
        # Spelt out: Delta does not resolve BETWEEN in here.
        .option("replaceWhere", f"generation = {generation} AND day >= {first} AND day <= {last}")
        .save(tables.REPROCESSED.path(warehouse))
    )
    written = with_partial(spark, warehouse, generation).where(sf.col("day").between(first, last))
    partial = written.where(sf.col("is_partial")).count()
    return Made(written.count() - partial, partial)


def _refuse_gone(bronze: DataFrame, first: int) -> None:
    oldest = bronze.agg(sf.min("day")).collect()[0][0]
    if oldest is None:
        raise BeaconsGone("table bronze is empty: there is nothing to make views of")
    if oldest > first:
        raise BeaconsGone(
            f"table bronze has nothing before {_date(oldest)}: reprocess --from {_date(oldest)};"
            " older views keep the rows they have"
        )


def _refuse_swapped(spark: SparkSession, warehouse: str, days: tuple[int, int], generation: int) -> None:
    put_aside = read(spark, warehouse, tables.REPLACED)
    if not put_aside.where((sf.col("for_generation") == generation) & sf.col("day").between(*days)).isEmpty():
        raise GenerationSwapped(
            f"generation {generation} is swapped in on these days: swap it back, or make a larger one"
        )


def _stored(spark: SparkSession, warehouse: str, days: tuple[int, int]) -> DataFrame:
    """When the first and last beacons of views came that may be those folded again."""
    first, last = days
    views = read(spark, warehouse, tables.VIEWS).where(sf.col("day").between(first - _DAYS_STORED_BEFORE, last))
    return views.select(
        "customer_id",
        "view_id",
        sf.col("first_append_ms").alias("stored_first_ms"),
        sf.col("last_append_ms").alias("stored_last_ms"),
    )


def _partial_marked(made: DataFrame, stored: DataFrame, ends: DataFrame) -> DataFrame:
    """Adds `is_partial`: whether the existing row was made from beacons that were not read.

    Earlier ones: retention has passed, or the view began before the days that are read, and a session's plays are numbered from
    its beginning. Later ones: `bronze` is behind topic `views`, or ends before the fold has seen the view's last finish.
    """
    joined = made.join(stored, ["customer_id", "view_id"], "left").join(sf.broadcast(ends), "kafka_partition", "left")
    lacks_first = sf.col("first_append_ms") > sf.col("stored_first_ms")
    lacks_last = (sf.col("last_append_ms") < sf.col("stored_last_ms")) & (
        sf.col("stored_last_ms") > sf.col("read_until_ms") - _OPEN_MS_MAX
    )
    return joined.withColumn("is_partial", sf.coalesce(lacks_first | lacks_last, sf.lit(False)))


def folded(beacons: DataFrame, environ: Mapping[str, str]) -> DataFrame:
    """Records of `bronze` -> records of topic `views`, by the processor's fold: each Kafka partition in its order."""
    # Of the environment only what the application reads: the rest may hold secrets, and this travels with the function.
    application = {name: value for name, value in environ.items() if name.startswith("VIDEO_VIEWS_")}

    def fold(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - where the function runs

        from services.finalizer.folding import columns_of  # noqa: PLC0415

        for columns in columns_of(batches, application):
            yield pa.RecordBatch.from_pydict(columns, schema=_arrow(pa))

    return (
        beacons.select("kafka_partition", "kafka_offset", "kafka_timestamp_ms", "key", "value")
        .repartition("kafka_partition")
        .sortWithinPartitions("kafka_partition", "kafka_offset")
        .mapInArrow(fold, "partition int, offset bigint, timestamp_ms bigint, value binary")
        .select("partition", "offset", sf.timestamp_millis("timestamp_ms").alias("timestamp"), "value")
    )


def _arrow(pa: Any) -> Any:
    return pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp_ms", pa.int64()),
            ("value", pa.binary()),
        ]
    )


def with_partial(spark: SparkSession, warehouse: str, generation: int) -> DataFrame:
    """The rows of a generation that was reprocessed, also those that are not swapped in."""
    rows = read(spark, warehouse, tables.REPROCESSED).where(sf.col("generation") == generation)
    return rows.withColumn("is_partial", sf.coalesce("is_partial", sf.lit(False)))


def of_generation(spark: SparkSession, warehouse: str, generation: int) -> DataFrame:
    """The rows of a generation that was reprocessed, as `views` would have them."""
    return with_partial(spark, warehouse, generation).where(~sf.col("is_partial")).drop("is_partial")


def days_of(rows: DataFrame, generation: int) -> list[int]:
    """The days of a generation's rows, since 1970. Raises `NothingReprocessed`."""
    days = sorted(row["day"] for row in rows.select("day").distinct().collect())
    if not days:
        raise NothingReprocessed(f"nothing was reprocessed as generation {generation}: run reprocess first")
    return days


_EPOCH: Final = date(1970, 1, 1)


def day_of(text: str) -> int:
    """2026-02-02 -> days since 1970. Raises `ValueError`."""
    return (date.fromisoformat(text) - _EPOCH).days


def _date(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()
