"""A table that is read by a condition: which files are looked at, and how often they are looked up."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.warehouse import scan, tables
from services.finalizer.warehouse.scan import read_where
from services.finalizer.warehouse.views_table import is_empty
from tests.integration.finalizer.finalizing import MORNING_MS, a_view
from tests.integration.finalizer.warehouse.warehousing import DAY_MS, Warehouse

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DAY = MORNING_MS // DAY_MS


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[list[int]]:
    """The numbers of the jobs that Spark runs meanwhile, once they have run."""
    context, jobs = spark.sparkContext, list[int]()
    context.setJobGroup("counted", "")
    before = set(context.statusTracker().getJobIdsForGroup("counted"))
    try:
        yield jobs
    finally:
        jobs += sorted(set(context.statusTracker().getJobIdsForGroup("counted")) - before)
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def test_the_files_of_a_condition_are_looked_up_once_and_no_others_are_read(warehouse: Warehouse) -> None:
    # A file for each of three days.
    views = [
        a_view(f"{name}{number}", hour=number, day=DAY + number, first_append_ms=MORNING_MS + number * DAY_MS)
        for number in range(3)
        for name in "abc"
    ]
    warehouse.land(views, rebuilds=False)
    # The former row of a view is only marked as deleted in its file.
    warehouse.land([a_view("a1", revision=2, hour=2, day=DAY + 1, first_append_ms=MORNING_MS + DAY_MS)], rebuilds=False)
    spark, location = warehouse.spark, warehouse.settings.warehouse_dir
    hour = MORNING_MS // 3_600_000
    conditions = {
        # By the day's folder, by the bounds of a file, by both, and by neither.
        "day": (sf.col("day").isin(DAY + 1, DAY + 9), {"a1", "b1", "c1"}, 2),
        "hour": ((sf.col("hour") == hour) & (sf.col("customer_id") == "acme"), {"a0", "b0", "c0"}, 1),
        "both": (sf.col("day").isin(DAY + 1) & (sf.col("hour") == hour + 2), {"a1"}, 1),
        "none": (sf.col("beacon_count") == 5, {f"{name}{number}" for name in "abc" for number in range(3)}, 4),
    }
    # What Delta knows of a version it works out when it is first asked: of its files, and of their bounds.
    for column in ("day", "hour"):
        read_where(spark, location, tables.VIEWS, sf.col(column) > 0).collect()
    for name, (condition, wanted, files) in conditions.items():
        with counted_jobs(spark) as jobs:
            found = read_where(spark, location, tables.VIEWS, condition)
            rows = found.select("view_id", "revision").collect()
        assert {row["view_id"] for row in rows} == wanted, name
        assert len(rows) == len(wanted), f"{name}: a row that was replaced was read"
        assert {row["revision"] for row in rows if row["view_id"] == "a1"} <= {2}
        assert len(found.inputFiles()) == files, name
        # One looks the files up, the other reads them.
        assert len(jobs) == 2, name
        assert _is_one_part(found), name


def test_what_is_read_of_few_bytes_is_one_part(
    warehouse: Warehouse, several_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.land([a_view("one"), a_view("two", day=DAY + 1)], rebuilds=False)

    def read() -> DataFrame:
        return read_where(warehouse.spark, warehouse.settings.warehouse_dir, tables.VIEWS, sf.col("day") > 0)

    assert _is_one_part(read())
    monkeypatch.setattr(scan, "_ONE_TASK_BYTES_MAX", 1_000)
    assert not _is_one_part(read())
    assert sorted(row["view_id"] for row in read().select("view_id").collect()) == ["one", "two"]


def _is_one_part(frame: DataFrame) -> bool:
    """Whether Spark knows that all rows are in one task, so that it need not exchange them."""
    plan: Any = frame
    return str(plan._jdf.queryExecution().executedPlan().outputPartitioning()) == "SinglePartition"


def test_a_table_is_known_to_be_empty_until_it_has_rows(warehouse: Warehouse) -> None:
    def empty() -> set[str]:
        location = warehouse.settings.warehouse_dir
        return {table.name for table in tables.OF_VIEWS if is_empty(warehouse.spark, location, table)}

    everywhere = {table.name for table in tables.OF_VIEWS}
    assert empty() == everywhere
    warehouse.land([a_view("one")], rebuilds=False)
    assert empty() == everywhere - {"views"}
    # By another process, as a reprocess is one.
    place = f"{warehouse.settings.warehouse_dir}/unparsed"
    value = pa.table({"reason": ["invalid"], "value": [b"x"]})
    write_deltalake(place, value, mode="append", schema_mode="merge")
    assert empty() == everywhere - {"views", "unparsed"}
