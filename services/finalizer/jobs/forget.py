"""Deletes one viewer's data from every table, and reports what was deleted from each."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from services.finalizer.driver import Driver, clock_ms
from services.finalizer.failures import JobFailed
from services.finalizer.jobs.maintenance import vacuum
from services.finalizer.serving.database import hash_of
from services.finalizer.serving.published import Slice
from services.finalizer.transforms.forgotten import Forgotten, frame_of
from services.finalizer.transforms.rows import columns_of
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.row_topics import RowTopic
from services.finalizer.warehouse.tables import Table
from services.finalizer.warehouse.views_table import read
from shared.partitioning import view_key
from shared.sources import SOURCES

log = structlog.get_logger(__name__)

#: A viewer with more views than this is no person: name the customer's own id instead of a shared one.
VIEWS_MAX = 100_000


class TooManyViews(JobFailed):
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
            f"{'rollups':20}{self.slices:>12,} slices recomputed without them",
            "",
            "The files that held them are deleted too; older versions of the tables cannot be read any more.",
            "Not reached: Kafka's topics, which keep records for their retention (7 days by default); backups;",
            "what is still open in the processor. Run it again when those have passed.",
        ]


def forget(driver: Driver, customer_id: str, viewer_id: str) -> Report:
    """Deletes all of a viewer: views, their beacons, rejected records, point look-ups; rebuilds the slices they were in.

    A viewer is known by `viewer_id` or `viewer_user_id`. Raw records are found by the keys of the viewer's views, and by the
    id as a whole JSON string in their bytes; applications' rows by the id as any of their values.
    May be repeated, and must be after a crash. Raises `TooManyViews`.
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    is_theirs = (sf.col("customer_id") == customer_id) & (
        sf.coalesce(sf.col("viewer_id") == viewer_id, sf.lit(False))
        | sf.coalesce(sf.col("viewer_user_id") == viewer_id, sf.lit(False))
    )
    found: set[tuple[str, int]] = set()
    keys: set[bytes] = set()
    slices: set[Slice] = set()
    for table in (tables.VIEWS, tables.REPROCESSED, tables.REPLACED):
        theirs = read(spark, warehouse, table).where(is_theirs).select("view_id", "day", "view_epoch", "source", "hour")
        for row in theirs.limit(VIEWS_MAX + 1).collect():
            found.add((row["view_id"], row["day"]))
            keys |= _keys(customer_id, row)
            slices.add(Slice(row["hour"], customer_id))
    if len(found) > VIEWS_MAX:
        raise TooManyViews(f"more than {VIEWS_MAX} views fit: that is no single viewer")
    # Before anything is deleted: afterwards the slices that counted them cannot be found.
    driver.serving.mark_dirty(slices)
    # And the list of who is refused: a serving database that is lost gets it from here.
    at_ms = clock_ms()
    forgotten = [Forgotten(customer_id, hash_of(viewer_id), at_ms)]
    frame_of(spark, forgotten).coalesce(1).write.format("delta").mode("append").save(tables.FORGOTTEN.path(warehouse))
    rows = {}
    for table in (tables.BRONZE, tables.LATE_RECORDS, tables.REJECTED):
        theirs = _of_raw(read(spark, warehouse, table), customer_id, viewer_id, keys)
        rows[table.name] = _delete_records(driver, table, theirs, ["day"])
    of_applications = driver.settings.row_topics
    for table in (tables.UNPARSED, *([tables.UNPARSED_ROWS] if of_applications else [])):
        theirs = _holding(_holding(read(spark, warehouse, table), viewer_id), customer_id)
        rows[table.name] = _delete_records(driver, table, theirs, ["topic"] if table is tables.UNPARSED_ROWS else [])
    for topic in of_applications:
        if "customer_id" in tables.ROWS[topic.name].schema.fieldNames():
            rows[topic.name] = _delete_rows(driver, topic, customer_id, viewer_id)
    driver.crash_points.reach("merged")
    rows["serving.views"] = driver.serving.forget_views(customer_id, [viewer_id], sorted(found), at_ms=at_ms)
    # The views last: by them a repetition finds the rest.
    for table in (tables.REPLACED, tables.REPROCESSED, tables.VIEWS):
        rows[table.name] = _delete(driver, table, is_theirs)
    driver.rebuilding.rebuild_dirty(spark, "forget")
    for table in tables.those_of(of_applications):
        spark.sql(f"REORG TABLE {table.sql_name(warehouse)} APPLY (PURGE)")
        vacuum(spark, warehouse, table, hours=0)
    log.info("forgotten", rows=rows, slices=len(slices))
    return Report(rows, len(slices))


def _keys(customer_id: str, view: Row) -> set[bytes]:
    """The keys of a view's beacons."""
    keys = {view_key(customer_id, view["view_id"])}
    if SOURCES[view["source"]].has_plays and view["view_epoch"] > 1:
        # A later play of a session: its beacons have the session's key, its row a number after it.
        keys.add(view_key(customer_id, view["view_id"].removesuffix(f".{view['view_epoch']}")))
    return keys


def _of_raw(records: DataFrame, customer_id: str, viewer_id: str, keys: Collection[bytes]) -> DataFrame:
    of_views = records.sparkSession.createDataFrame([(bytearray(key),) for key in keys], "key binary")
    of_customer = sf.startswith(sf.col("key"), sf.lit(bytearray(f"{customer_id}:".encode())))
    # What was rejected may have no key; then only its bytes show whose it is.
    by_id = _holding(records.where(sf.col("key").isNull() | of_customer), viewer_id)
    return (
        records.join(sf.broadcast(of_views), "key", "left_semi")
        .select(*_PLACE, "day")
        .union(by_id.select(*_PLACE, "day"))
    )


def _delete_rows(driver: Driver, topic: RowTopic, customer_id: str, viewer_id: str) -> int:
    """Deletes the customer's rows of an application that hold the id as a value, in any field."""
    table = tables.ROWS[topic.name]
    rows = read(driver.spark, driver.settings.warehouse_dir, table).where(sf.col("customer_id") == customer_id)
    plain = [name for name in columns_of(topic).fieldNames() if name not in topic.as_json]
    parts = [sf.to_json(sf.struct(*plain)), *(sf.coalesce(name, sf.lit("null")) for name in topic.as_json)]
    value = sf.encode(sf.concat(sf.lit("["), sf.concat_ws(",", *parts), sf.lit("]")), "utf-8")
    theirs = _holding(rows.select(*_PLACE, *table.partition_by, value.alias("value")), viewer_id)
    return _delete_records(driver, table, theirs, table.partition_by)


def _holding(records: DataFrame, wanted: str) -> DataFrame:
    """The records whose JSON holds the text as a whole string value."""

    def kept(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - where the function runs

        from services.finalizer.warehouse.json_strings import holds_value  # noqa: PLC0415

        for batch in batches:
            values = batch.column("value").to_pylist()
            yield batch.filter(pa.array([holds_value(value, wanted) for value in values], pa.bool_()))

    # Others need no look at every string: an id has its own bytes, or an escape somewhere.
    value = sf.col("value")
    may = sf.contains(value, sf.lit(bytearray(wanted.encode()))) | sf.contains(value, sf.lit(bytearray(b"\\")))
    columns = [name for name in (*_PLACE, "topic", "day", "value") if name in records.columns]
    few = records.where(sf.coalesce(may, sf.lit(False))).select(columns)
    return few.mapInArrow(kept, few.schema)


_PLACE: Final = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms")


def _delete_records(driver: Driver, table: Table, theirs: DataFrame, partition: Sequence[str]) -> int:
    """Deletes records by their place in their topic; the append time separates one of a recreated topic from a former one."""
    places = theirs.select(*_PLACE, *partition).distinct().persist()
    try:
        count = places.count()
        if count:
            places.createOrReplaceTempView("gone")
            same = " AND ".join(f"stored.{name} = gone.{name}" for name in (*_PLACE, *partition))
            place = table.sql_name(driver.settings.warehouse_dir)
            driver.spark.sql(f"MERGE INTO {place} AS stored USING gone ON {same} WHEN MATCHED THEN DELETE")
    finally:
        places.unpersist()
    return int(count)


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
