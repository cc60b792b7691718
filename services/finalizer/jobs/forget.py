"""Deletes one viewer's data from every table, and says what was deleted where."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from services.finalizer import tables
from services.finalizer.driver import Driver
from services.finalizer.jobs.maintenance import vacuum
from services.finalizer.jobs.warehouse import read
from services.finalizer.serving import Slice
from services.finalizer.tables import Table

log = structlog.get_logger(__name__)

#: A viewer with more views than this is no person: name the customer's own id instead of a shared one.
VIEWS_MAX = 100_000


class TooManyViews(RuntimeError):
    """The id fits more views than one viewer has."""


@dataclass(frozen=True)
class Report:
    """How many rows of one viewer were deleted, by table."""

    rows: dict[str, int]
    slices: int

    def lines(self) -> list[str]:
        """For people; holds no id."""
        deleted = [f"{name:20}{count:>12,} rows deleted" for name, count in self.rows.items()]
        return [
            *deleted,
            f"{'rollups':20}{self.slices:>12,} slices counted anew without them",
            "",
            "The files that held them are deleted too; older versions of the tables cannot be read any more.",
            "Not reached: Kafka's topics, which keep records for their retention (7 days by default); backups;",
            "what is still open in the processor. Run it again when those have passed.",
        ]


def forget(driver: Driver, customer_id: str, viewer_id: str) -> Report:
    """Deletes everything of a viewer: views, their beacons, what was set aside, point look-ups; rebuilds the slices they were in.

    A viewer is known by `viewer_id` or `viewer_user_id`. Raw records are found by the keys of the viewer's views and by the id
    itself in their bytes. May be repeated, and must be after a crash. Raises `TooManyViews`.
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    is_theirs = (sf.col("customer_id") == customer_id) & (
        sf.coalesce(sf.col("viewer_id") == viewer_id, sf.lit(False))
        | sf.coalesce(sf.col("viewer_user_id") == viewer_id, sf.lit(False))
    )
    found: set[tuple[str, str]] = set()
    slices: set[Slice] = set()
    for table in (tables.VIEWS, tables.REPROCESSED, tables.REPLACED):
        theirs = read(spark, warehouse, table).where(is_theirs).select("view_id", "hour")
        for row in theirs.limit(VIEWS_MAX + 1).collect():
            found.add((customer_id, row["view_id"]))
            slices.add(Slice(row["hour"], customer_id))
    if len(found) > VIEWS_MAX:
        raise TooManyViews(f"more than {VIEWS_MAX} views fit: that is no single viewer")
    # Before anything is deleted: afterwards nobody could tell which slices counted them.
    driver.serving.mark_dirty(slices)
    of_viewer = _of_raw(customer_id, viewer_id, sorted(view_id for _, view_id in found))
    in_bytes = sf.contains(sf.col("value"), sf.lit(viewer_id.encode()))
    rows = {}
    for table in (tables.BRONZE, tables.LATE, tables.REJECTED):
        rows[table.name] = _delete(driver, table, of_viewer)
    rows[tables.UNPARSED.name] = _delete(driver, tables.UNPARSED, in_bytes)
    driver.crash_points.reach("merged")
    rows["serving.views"] = driver.serving.forget_views(sorted(found))
    # The views last: by them a repetition finds the rest.
    for table in (tables.REPLACED, tables.REPROCESSED, tables.VIEWS):
        rows[table.name] = _delete(driver, table, is_theirs)
    driver.landing.rebuild_dirty(spark, "forget", 0)
    for table in tables.ALL:
        spark.sql(f"REORG TABLE {table.sql_name(warehouse)} APPLY (PURGE)")
        vacuum(spark, warehouse, table, hours=0)
    log.info("forgotten", rows=rows, slices=len(slices))
    return Report(rows, len(slices))


def _of_raw(customer_id: str, viewer_id: str, view_ids: Sequence[str]) -> Column:
    keys = [f"{customer_id}:{view_id}".encode() for view_id in view_ids]
    # A play after the first of a session has a view id with its number; the session's beacons have the key without it.
    keys += [key.rpartition(b".")[0] for key in keys if key.rpartition(b".")[2].isdigit()]
    by_key = sf.col("key").isin(*(sf.lit(bytearray(key)) for key in keys)) if keys else sf.lit(False)
    by_id = sf.contains(sf.col("value"), sf.lit(bytearray(viewer_id.encode())))
    of_customer = sf.startswith(sf.col("key"), sf.lit(bytearray(f"{customer_id}:".encode())))
    # What was rejected may have no key.
    return sf.coalesce(by_key, sf.lit(False)) | (
        sf.coalesce(by_id, sf.lit(False)) & (sf.col("key").isNull() | of_customer)
    )


def _delete(driver: Driver, table: Table, condition: Column) -> int:
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    theirs: DataFrame = read(spark, warehouse, table).where(condition)
    count = theirs.count()
    if count:
        delta = driver.spark._jvm.io.delta.tables.DeltaTable.forPath(  # type: ignore[union-attr]
            spark._jsparkSession, table.path(warehouse)
        )
        delta.delete(condition._jc)
    return int(count)
