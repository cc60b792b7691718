"""A table that is read by a condition: which files are looked at, and how often they are looked up."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from services.finalizer.warehouse import tables
from services.finalizer.warehouse.scan import read_where
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
    for number in range(3):
        began_ms = MORNING_MS + number * DAY_MS
        views = [a_view(f"{name}{number}", hour=number, day=DAY + number, first_append_ms=began_ms) for name in "abc"]
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
