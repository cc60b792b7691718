"""Makes a reprocessed generation visible to all readers, and reverts that.

A swap merges the rows of `reprocessed` into `views` in one commit; the higher (generation, revision) wins. It keeps the former rows
in `replaced`. Later revisions are written to both (`warehouse.merge_beside`), so that reverting the swap loses none of them.
Swaps form a stack: each has a larger generation than the one before. The newest is reverted first, since its `replaced` rows may
belong to the one before. Each step may be repeated after a crash.
"""

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.driver import Driver, clock_ms
from services.finalizer.failures import JobFailed
from services.finalizer.jobs.reprocess import days_of, of_generation
from services.finalizer.serving.published import Slice
from services.finalizer.streaming.landing import RECORD_BYTES_EXPECTED
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.views_table import KEY, NEWER, listed, read, same_view

log = structlog.get_logger(__name__)


class SwapOutOfOrder(JobFailed):
    """Another generation lies over this one, or this one is not swapped in; the text says what to do."""


def swap(driver: Driver, generation: int) -> int:
    """Brings the generation to all readers; returns how many views it concerns. Raises `NothingReprocessed`, `SwapOutOfOrder`.

    Readers of `views` see it in one commit. Rollups and the serving copy follow at once, in one transaction for all their slices
    (up to `slices_max`).
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    newest = max(driver.serving.swapped(), default=0)
    if newest > generation:
        raise SwapOutOfOrder(
            f"generation {newest} is swapped in: swap it back first, or reprocess these days as a larger generation"
        )
    rows = of_generation(spark, warehouse, generation).persist()
    try:
        days = days_of(rows, generation)
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
    """Reverts a swap: every view is as it would be without the swap; returns the number of views concerned.

    Raises `SwapOutOfOrder`.
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    swapped_in = driver.serving.swapped()
    if generation not in swapped_in:
        raise SwapOutOfOrder(f"generation {generation} is not swapped in: there is nothing to take back")
    if max(swapped_in) != generation:
        raise SwapOutOfOrder(
            f"generation {max(swapped_in)} was swapped in after {generation}: swap-back --generation {max(swapped_in)} first"
        )
    former = read(spark, warehouse, tables.REPLACED).where(sf.col("for_generation") == generation).persist()
    try:
        views = 0 if former.isEmpty() else _take_back(driver, former, generation)
    finally:
        former.unpersist()
    # The note last: until it is gone this can be repeated, also when nothing is left of what was put aside.
    spark.sql(f"DELETE FROM {tables.REPLACED.sql_name(warehouse)} WHERE for_generation = {generation}")  # noqa: S608
    driver.serving.note_swapped(generation, is_in=False)
    log.info("swapped_back", generation=generation, views=views)
    return views


def _take_back(driver: Driver, former: DataFrame, generation: int) -> int:
    days = days_of(former, generation)
    _mark_both(driver, former, days)
    # A row is reverted only if the swap has written it: later revisions stay, of any generation.
    swapped = f"stored.generation = {generation} AND stored.revision = landed.swapped_revision"
    _merge(
        driver.spark,
        driver.settings.warehouse_dir,
        former,
        days,
        f"WHEN MATCHED AND {swapped} AND landed.absent = 1 THEN DELETE",
        f"WHEN MATCHED AND {swapped} THEN UPDATE SET "
        + listed(f"stored.`{name}` = landed.`{name}`" for name in tables.VIEWS.schema.fieldNames()),
    )
    driver.crash_points.reach("merged")
    return _publish(driver, former, days, f"swap back {generation}")


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
    """Marks the present and the future slices of these views as dirty, before anything changes."""
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
    """Brings hot rows and rollups up to what `views` says of these views now; returns how many they are."""
    count = changed.count()
    size_bytes = count * RECORD_BYTES_EXPECTED
    now = read(driver.spark, driver.settings.warehouse_dir, tables.VIEWS).where(sf.col("day").isin(days))
    # Not by the newest: of a swap that is taken back, the larger generation would be the wrong one.
    driver.landing.restate_recent(changed.select(*KEY).join(now, list(KEY), "left"), size_bytes)
    driver.rebuilding.rebuild_dirty(driver.spark, why)
    return count
