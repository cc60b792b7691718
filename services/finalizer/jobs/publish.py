"""Fills an empty serving database from the warehouse, for example after the former one was lost."""

import structlog
from pyspark.sql import functions as sf

from services.finalizer.driver import Driver
from services.finalizer.serving.published import Slice
from services.finalizer.streaming.landing import RECORD_BYTES_EXPECTED
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.views_table import read

log = structlog.get_logger(__name__)


def publish(driver: Driver) -> int:
    """Publishes every slice of `views`, and the point look-ups of recent days, a day at a time; returns how many slices.

    Which generations are swapped in is known by what their swaps have put aside. May be repeated after a death: it begins
    again, and what is there already is replaced by the same.
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    # First these notes: from here on revisions that arrive land in what is put aside, too.
    for row in read(spark, warehouse, tables.REPLACED).select("for_generation").distinct().collect():
        driver.serving.note_swapped(row["for_generation"], is_in=True)
    views = read(spark, warehouse, tables.VIEWS)
    count = 0
    # The newest first: they are what people look at.
    for day in sorted((row["day"] for row in views.select("day").distinct().collect()), reverse=True):
        of_day = views.where(sf.col("day") == day)
        slices = of_day.where(sf.col("hour").isNotNull()).select("hour", "customer_id").distinct().collect()
        driver.serving.mark_dirty({Slice(row["hour"], row["customer_id"]) for row in slices})
        driver.landing.bring_recent(of_day, of_day.count() * RECORD_BYTES_EXPECTED)
        count += driver.rebuilding.rebuild_dirty(spark, "publish")
    log.info("slices_published", slices=count)
    return count
