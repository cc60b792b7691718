"""Deletes one viewer's data, or all of a customer's, from every table, and reports what was deleted from each."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Final

import structlog
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from services.finalizer.driver import Driver, clock_ms
from services.finalizer.jobs.deletions.finding import PLACE, Subject, find, holding, holding_anywhere, is_keyed
from services.finalizer.jobs.maintenance import vacuum
from services.finalizer.progress import step
from services.finalizer.row_topics import RowTopic
from services.finalizer.serving import customer_limits
from services.finalizer.streaming.starting import note_landed
from services.finalizer.transforms.forgotten import frame_of
from services.finalizer.transforms.rows import columns_of
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.hadoop_files import holds_data
from services.finalizer.warehouse.scan import read_where
from services.finalizer.warehouse.tables import Table
from services.finalizer.warehouse.views_table import is_empty, read

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Report:
    """How many rows were deleted, by table."""

    rows: dict[str, int]
    slices: int


def forget(
    driver: Driver,
    customer_id: str,
    viewer_id: str | None,
    *,
    sessions: Sequence[str] = (),
    at_ms: int | None = None,
    turns: Sequence[AbstractContextManager[Any]] = (),
) -> Report:
    """Deletes views, their beacons, rejected records, rows of applications, point look-ups; rebuilds the slices they were in.

    Raw records are found by the keys of the viewer's views, and by the id as a whole JSON string in their bytes. Applications'
    rows are found by the id as any of their values. Views that began up to `at_ms` (now) are refused from now on. `turns` are
    held while tables are written. May be repeated, and must be after a crash. Raises `TooManyViews`.
    """
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    subject = Subject(customer_id, viewer_id, sessions)
    at_ms = clock_ms() if at_ms is None else at_ms
    # Before anything is deleted: the list of who is refused, which a serving database that is lost gets from here.
    refused = frame_of(spark, [subject.forgotten(at_ms)]).coalesce(1)
    refused.write.format("delta").mode("append").save(tables.FORGOTTEN.path(warehouse))
    # A checkpoint may be given up while topics still have what is deleted here.
    note_landed(spark, driver.settings)
    with _all(turns):
        driver.serving.refuse([subject.forgotten(at_ms)])
        report = (
            _forget_customer(driver, customer_id)
            if viewer_id is None
            else _forget_viewer(driver, subject, viewer_id, at_ms)
        )
    driver.rebuilding.rebuild_dirty(spark, "forget")
    with _all(turns):
        for table in tables.those_of(driver.settings.row_topics):
            step()
            if holds_data(spark, table.path(warehouse)):
                spark.sql(f"REORG TABLE {table.sql_name(warehouse)} APPLY (PURGE)")
                vacuum(spark, warehouse, table, hours=0)
    log.info("forgotten", rows=report.rows, slices=report.slices)
    return report


def _all(turns: Sequence[AbstractContextManager[Any]]) -> ExitStack:
    with ExitStack() as held:
        for turn in turns:
            held.enter_context(turn)
        return held.pop_all()


def _forget_viewer(driver: Driver, subject: Subject, viewer_id: str, at_ms: int) -> Report:
    spark, warehouse, customer_id = driver.spark, driver.settings.warehouse_dir, subject.customer_id
    found = find(driver, subject)
    # Before anything is deleted: afterwards the slices that counted them cannot be found.
    driver.serving.mark_dirty(found.slices)
    rows: dict[str, int] = {}
    for table in _filled(driver, rows, tables.RAW.values()):
        # What was rejected may be no JSON; beacons are, and hold ids as values.
        records = _named_by_key(driver, table, customer_id)
        by_id = (holding_anywhere if table is tables.REJECTED else holding)(records, viewer_id)
        theirs = _of_raw(records, by_id, found.keys)
        rows[table.name] = _delete_records(driver, table, theirs, ["day"])
    for table in _filled(driver, rows, _unparsed(driver)):
        theirs = holding(read(spark, warehouse, table), viewer_id, customer_id)
        rows[table.name] = _delete_records(driver, table, theirs, ["topic"] if table is tables.UNPARSED_ROWS else [])
    for topic in driver.settings.row_topics:
        table = tables.ROWS[topic.name]
        if "customer_id" in table.schema.fieldNames():
            is_without = is_empty(spark, warehouse, table)
            rows[topic.name] = 0 if is_without else _delete_rows(driver, topic, subject, viewer_id)
    driver.crash_points.reach("merged")
    rows["serving.views"] = driver.serving.forget_views(customer_id, [viewer_id], sorted(found.views), at_ms=at_ms)
    # The views last: by them a repetition finds the rest.
    for table in _OF_VIEWS:
        rows[table.name] = _delete(driver, table, subject.is_theirs, _VIEW_KEYS[table.name])
    return Report(rows, len(found.slices))


def _forget_customer(driver: Driver, customer_id: str) -> Report:
    """All rows of a customer, rollups included: no slice is left to be counted again."""
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    # First: a right that is missing is known before tables are read.
    rows = customer_limits.delete_counts(driver.settings.customers_database, customer_id)
    for table in _filled(driver, rows, tables.RAW.values()):
        records = _named_by_key(driver, table, customer_id)
        nameless = holding(records.where(sf.col("key").isNull()), customer_id)
        theirs = records.where(is_keyed(customer_id)).select(*PLACE, "day").union(nameless.select(*PLACE, "day"))
        rows[table.name] = _delete_records(driver, table, theirs, ["day"])
    for table in _filled(driver, rows, _unparsed(driver)):
        theirs = holding(read(spark, warehouse, table), customer_id)
        rows[table.name] = _delete_records(driver, table, theirs, ["topic"] if table is tables.UNPARSED_ROWS else [])
    driver.crash_points.reach("merged")
    rows |= driver.serving.forget_customer(customer_id)
    of_customer = sf.col("customer_id") == customer_id
    of_applications = [tables.ROWS[topic.name] for topic in driver.settings.row_topics]
    for table in (*_OF_VIEWS, tables.ROLLUPS, *of_applications):
        if "customer_id" in table.schema.fieldNames():
            rows[table.name] = _delete(driver, table, of_customer, ["customer_id"])
    return Report(rows, 0)


_OF_VIEWS: Final = (tables.REPLACED, tables.REPROCESSED, tables.VIEWS)
_VIEW_KEYS: Final = {
    tables.VIEWS.name: ("day", "customer_id", "view_id"),
    tables.REPROCESSED.name: ("generation", "day", "customer_id", "view_id"),
    tables.REPLACED.name: ("for_generation", "day", "customer_id", "view_id"),
}


def _unparsed(driver: Driver) -> list[Table]:
    return [tables.UNPARSED, *([tables.UNPARSED_ROWS] if driver.settings.row_topics else [])]


def _filled(driver: Driver, rows: dict[str, int], wanted: Iterable[Table]) -> Iterator[Table]:
    """Those of the tables that have rows, one after the other. Of the others `rows` says that none is deleted."""
    for table in wanted:
        if is_empty(driver.spark, driver.settings.warehouse_dir, table):
            rows[table.name] = 0
        else:
            yield table


def _named_by_key(driver: Driver, table: Table, customer_id: str) -> DataFrame:
    """The records of a raw table that may be the customer's by their key: it is the customer's, or they have none."""
    may = sf.col("key").isNull() | is_keyed(customer_id)
    return read_where(driver.spark, driver.settings.warehouse_dir, table, may)


def _of_raw(records: DataFrame, by_id: DataFrame, keys: Collection[bytes]) -> DataFrame:
    """The places of records of these keys, and of those found `by_id`: what was rejected may have no key."""
    of_views = records.sparkSession.createDataFrame([(bytearray(key),) for key in keys], "key binary")
    by_key = records.join(sf.broadcast(of_views), "key", "left_semi")
    return by_key.select(*PLACE, "day").union(by_id.select(*PLACE, "day"))


def _delete_rows(driver: Driver, topic: RowTopic, subject: Subject, viewer_id: str) -> int:
    """Deletes the customer's rows of an application that hold the id as a value, in any field, or are of the viewer's sessions."""
    table = tables.ROWS[topic.name]
    of_customer = sf.col("customer_id") == subject.customer_id
    rows = read_where(driver.spark, driver.settings.warehouse_dir, table, of_customer)
    plain = [name for name in columns_of(topic).fieldNames() if name not in topic.as_json]
    parts = [sf.to_json(sf.struct(*plain)), *(sf.coalesce(name, sf.lit("null")) for name in topic.as_json)]
    value = sf.encode(sf.concat(sf.lit("["), sf.concat_ws(",", *parts), sf.lit("]")), "utf-8")
    theirs = holding(rows.select(*PLACE, *table.partition_by, value.alias("value")), viewer_id)
    if topic.name == tables.RECORDING_INDEX and subject.sessions:
        recorded = rows.where(sf.col("session_id").isin(list(subject.sessions)))
        place = (*PLACE, *table.partition_by)
        theirs = theirs.select(*place).union(recorded.select(*place))
    return _delete_records(driver, table, theirs, table.partition_by)


def _delete_records(driver: Driver, table: Table, theirs: DataFrame, partition: Sequence[str]) -> int:
    """Deletes records by their place in their topic; the append time separates one of a recreated topic from a former one."""
    step()
    places = theirs.select(*PLACE, *partition).distinct().persist()
    try:
        count = places.count()
        if count:
            places.createOrReplaceTempView("gone")
            same = " AND ".join(f"stored.{name} = gone.{name}" for name in (*PLACE, *partition))
            place = table.sql_name(driver.settings.warehouse_dir)
            driver.spark.sql(f"MERGE INTO {place} AS stored USING gone ON {same} WHEN MATCHED THEN DELETE")
    finally:
        places.unpersist()
    return int(count)


def _delete(driver: Driver, table: Table, condition: Column, key: Sequence[str]) -> int:
    """Deletes rows by their keys: the condition itself would be in the table's log, and the viewer's id with it."""
    step()
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    if is_empty(spark, warehouse, table):
        return 0
    theirs = read_where(spark, warehouse, table, condition).select(*key).persist()
    try:
        count = theirs.count()
        if count:
            theirs.distinct().createOrReplaceTempView("gone")
            same = " AND ".join(f"stored.`{name}` = gone.`{name}`" for name in key)
            spark.sql(f"MERGE INTO {table.sql_name(warehouse)} AS stored USING gone ON {same} WHEN MATCHED THEN DELETE")
    finally:
        theirs.unpersist()
    return int(count)
