"""Makes views anew from table `bronze`, as a new generation beside the one that is read; compares; swaps; swaps back.

`reprocessed` holds the new generation. A swap brings it into `views` in one commit, where (generation, revision) decides, and
leaves in `replaced` what stood there. Revisions that arrive later land in both (`warehouse.merge_beside`), so that taking the
swap back loses none of them. Each step may be repeated after a crash.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import structlog
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer import tables
from services.finalizer.driver import Driver, clock_ms
from services.finalizer.jobs.warehouse import KEY, NEWER, listed, read, same_view
from services.finalizer.serving import Slice
from services.finalizer.transforms.rollups import MEASURES, measures
from services.finalizer.transforms.views import latest_per_view, parse

log = structlog.get_logger(__name__)

#: A view lasts a day and may be revised for hours after its end: beacons of so many days around it are read.
_DAYS_BEFORE: Final = 1
_DAYS_AFTER: Final = 2

#: Columns in which two rows of one view differ although they say the same.
_OF_ARRIVAL: Final = ("generation", "revision", "kafka_partition", "kafka_offset", "kafka_timestamp_ms", "landed_at_ms")


class NothingReprocessed(RuntimeError):
    """There is no such generation."""


@dataclass(frozen=True)
class Difference:
    """What a swap would change, over the reprocessed days."""

    days: tuple[int, int]
    #: By measure: what is read now, and what would be.
    sums: Mapping[str, tuple[int, int]]
    same: int
    changed: int
    #: Views that only the new generation has, and that only the present one has (which a swap leaves as they are).
    added: int
    not_made: int
    #: Columns in which changed views differ, and in how many.
    columns: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"days {self.days[0]} to {self.days[1]} since 1970"
        yield f"{'':24}{'now':>20}{'reprocessed':>20}"
        for name, (now, then) in self.sums.items():
            yield f"{name:24}{now:>20,}{then:>20,}"
        yield f"views: {self.same:,} same, {self.changed:,} changed, {self.added:,} added, {self.not_made:,} not made anew"
        for name, views in sorted(self.columns.items(), key=lambda one: -one[1]):
            yield f"  {name} differs in {views:,}"


def make(
    spark: SparkSession, warehouse: str, days: tuple[int, int], generation: int, environ: Mapping[str, str]
) -> int:
    """Folds the beacons of views that began on these days (since 1970, both included); returns how many views there are.

    Replaces what the generation held of these days.
    """
    first, last = days
    beacons = read(spark, warehouse, tables.BRONZE).where(
        sf.col("day").between(first - _DAYS_BEFORE, last + _DAYS_AFTER)
    )
    records = folded(beacons, environ)
    made = latest_per_view(parse(records)).where(sf.col("reason").isNull() & sf.col("day").between(first, last))
    rows = made.withColumns(
        {"generation": sf.lit(generation).cast("bigint"), "landed_at_ms": sf.lit(None).cast("bigint")}
    )
    (
        rows.select(tables.REPROCESSED.schema.fieldNames())
        .write.format("delta")
        .mode("overwrite")
        # Spelt out: Delta does not resolve BETWEEN in here.
        .option("replaceWhere", f"generation = {generation} AND day >= {first} AND day <= {last}")
        .save(tables.REPROCESSED.path(warehouse))
    )
    return of_generation(spark, warehouse, generation).where(sf.col("day").between(first, last)).count()


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


def of_generation(spark: SparkSession, warehouse: str, generation: int) -> DataFrame:
    """The rows of a generation that was reprocessed."""
    return read(spark, warehouse, tables.REPROCESSED).where(sf.col("generation") == generation)


def compare(spark: SparkSession, warehouse: str, generation: int) -> Difference:
    """What swapping the generation in would change. Raises `NothingReprocessed`."""
    new = of_generation(spark, warehouse, generation).persist()
    try:
        days = _days(new, generation)
        now = read(spark, warehouse, tables.VIEWS).where(sf.col("day").between(*days))
        pairs = now.alias("now").join(new.alias("new"), list(KEY), "full_outer")
        both = sf.col("now.revision").isNotNull() & sf.col("new.revision").isNotNull()
        columns = [name for name in tables.VIEWS.schema.fieldNames() if name not in {*_OF_ARRIVAL, *KEY}]
        differs = {name: both & ~_same(name) for name in columns}
        any_differs = sf.lit(False)
        for condition in differs.values():
            any_differs = any_differs | condition
        row = pairs.agg(
            sf.count_if(both & ~any_differs).alias("same"),
            sf.count_if(any_differs).alias("changed"),
            sf.count_if(sf.col("now.revision").isNull()).alias("added"),
            sf.count_if(sf.col("new.revision").isNull()).alias("not_made"),
            *(sf.count_if(condition).alias(f"in_{name}") for name, condition in differs.items()),
        ).collect()[0]
        sums_now, sums_new = _sums(now), _sums(new)
    finally:
        new.unpersist()
    return Difference(
        days=days,
        sums={name: (sums_now[name], sums_new[name]) for name in MEASURES},
        same=row["same"],
        changed=row["changed"],
        added=row["added"],
        not_made=row["not_made"],
        columns={name: row[f"in_{name}"] for name in columns if row[f"in_{name}"]},
    )


def _same(name: str) -> Column:
    kind = tables.VIEWS.schema[name].dataType.typeName()
    now, new = sf.col(f"now.{name}"), sf.col(f"new.{name}")
    if kind == "map":
        # Spark compares no maps.
        now, new = (sf.sort_array(sf.map_entries(column)) for column in (now, new))
    return now.eqNullSafe(new)


def _sums(views: DataFrame) -> dict[str, int]:
    row = (
        views.where(~sf.col("deleted")).agg(*(measure.alias(name) for name, measure in measures().items())).collect()[0]
    )
    return {name: int(row[name] or 0) for name in MEASURES}


def swap(driver: Driver, generation: int) -> int:
    """Brings the generation to all readers; returns how many views it concerns. Raises `NothingReprocessed`.

    Readers of `views` see it in one commit. Rollups and the serving copy follow at once, in one transaction for all their slices
    (up to `slices_max`).
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    rows = of_generation(spark, warehouse, generation).persist()
    try:
        days = _day_list(rows, generation)
        # First the note: from here on what arrives lands in what is put aside, too.
        driver.serving.note_swapped(generation, is_in=True)
        _put_aside(spark, warehouse, rows, generation)
        _mark_both(driver, rows, days)
        _merge(
            spark,
            warehouse,
            rows.withColumn("landed_at_ms", sf.lit(clock_ms()).cast("bigint")),
            days,
            f"WHEN MATCHED AND ({NEWER}) THEN UPDATE SET *",
            "WHEN NOT MATCHED THEN INSERT *",
        )
        driver.crash_points.reach("merged")
        views = _publish(driver, rows, days, f"swap {generation}")
    finally:
        rows.unpersist()
    log.info("swapped", generation=generation, views=views)
    return views


def swap_back(driver: Driver, generation: int) -> int:
    """Takes a swap back: every view stands as if it had not been; returns how many views it concerned.

    Raises `NothingReprocessed`.
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    former = read(spark, warehouse, tables.REPLACED).where(sf.col("for_generation") == generation).persist()
    try:
        days = _day_list(former, generation)
        _mark_both(driver, former, days)
        # What stands there is taken back only if the swap has put it there: later revisions stay, of any generation.
        swapped = f"stored.generation = {generation} AND stored.revision = landed.swapped_revision"
        _merge(
            spark,
            warehouse,
            former,
            days,
            f"WHEN MATCHED AND {swapped} AND landed.absent = 1 THEN DELETE",
            f"WHEN MATCHED AND {swapped} THEN UPDATE SET "
            + listed(f"stored.`{name}` = landed.`{name}`" for name in tables.VIEWS.schema.fieldNames()),
        )
        driver.crash_points.reach("merged")
        views = _publish(driver, former, days, f"swap back {generation}")
    finally:
        former.unpersist()
    driver.serving.note_swapped(generation, is_in=False)
    spark.sql(f"DELETE FROM {tables.REPLACED.sql_name(warehouse)} WHERE for_generation = {generation}")  # noqa: S608
    log.info("swapped_back", generation=generation, views=views)
    return views


def _put_aside(spark: SparkSession, warehouse: str, rows: DataFrame, generation: int) -> None:
    """The rows of `views` that the generation may replace, and a mark for every view that has none; each view once."""
    aside = read(spark, warehouse, tables.REPLACED).where(sf.col("for_generation") == generation)
    keys = rows.select(*KEY, sf.col("revision").alias("swapped_revision")).join(aside, list(KEY), "left_anti")
    former = keys.join(read(spark, warehouse, tables.VIEWS), list(KEY), "left").withColumns(
        {
            "absent": sf.when(sf.col("revision").isNull(), 1).otherwise(0),
            "for_generation": sf.lit(generation).cast("bigint"),
        }
    )
    # A mark is older than every revision.
    marked = former.withColumns(
        {name: sf.coalesce(name, sf.lit(0).cast("bigint")) for name in ("generation", "revision")}
    )
    columns = tables.REPLACED.schema.fieldNames()
    marked.select(columns).write.format("delta").mode("append").save(tables.REPLACED.path(warehouse))


def _mark_both(driver: Driver, rows: DataFrame, days: list[int]) -> None:
    """The slices in which these views stand, and those that they will stand in, are dirty before anything changes."""
    now = read(driver.spark, driver.settings.warehouse_dir, tables.VIEWS).where(sf.col("day").isin(days))
    stored = now.join(rows.select(*KEY), list(KEY), "left_semi").select("hour", "customer_id")
    wanted = rows.where(sf.col("hour").isNotNull()).select("hour", "customer_id")
    found = stored.union(wanted).distinct().collect()
    driver.serving.mark_dirty({Slice(row["hour"], row["customer_id"]) for row in found})


def _merge(spark: SparkSession, warehouse: str, landed: DataFrame, days: list[int], *clauses: str) -> None:
    landed.createOrReplaceTempView("landed")
    spark.sql(
        f"MERGE INTO {tables.VIEWS.sql_name(warehouse)} AS stored USING landed ON {same_view(days)} {' '.join(clauses)}"
    )


def _publish(driver: Driver, changed: DataFrame, days: list[int], why: str) -> int:
    """Brings rollups and point look-ups up to what `views` says of these views now; returns how many they are."""
    keys = [(row["customer_id"], row["view_id"]) for row in changed.select("customer_id", "view_id").collect()]
    now = read(driver.spark, driver.settings.warehouse_dir, tables.VIEWS).where(sf.col("day").isin(days))
    recent = driver.landing.recent(now.join(changed.select(*KEY), list(KEY), "left_semi"))
    # A look-up keeps the larger generation: of a swap that is taken back, that would be the wrong one.
    driver.serving.forget_views(keys)
    driver.landing.rebuild_dirty(driver.spark, why, 0, recent)
    return len(keys)


def _days(rows: DataFrame, generation: int) -> tuple[int, int]:
    days = _day_list(rows, generation)
    return days[0], days[-1]


def _day_list(rows: DataFrame, generation: int) -> list[int]:
    days = sorted(row["day"] for row in rows.select("day").distinct().collect())
    if not days:
        raise NothingReprocessed(f"nothing was reprocessed as generation {generation}: run reprocess first")
    return days


def day_of(text: str) -> int:
    """2026-02-02 -> days since 1970. Raises `ValueError`."""
    return (date.fromisoformat(text) - date(1970, 1, 1)).days
