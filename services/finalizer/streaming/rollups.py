"""Rebuilds dirty slices: table `rollups` from table `views`, and the serving copy of it."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.serving.published import Group, Rebuilt, Slice
from services.finalizer.streaming.kept import keep
from services.finalizer.transforms.rollups import (
    MEASURES,
    MEMBERS_MAX,
    METRICS,
    Groups,
    Sets,
    beyond,
    coarser,
    counted,
    crowded,
    gathered,
    minutes,
    narrow,
    wide,
)
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.views_table import in_slices, listed, read

log = structlog.get_logger(__name__)


def rebuild(
    spark: SparkSession, warehouse: str, wanted: Sequence[Slice], sets: Sets, *, members_max: int = MEMBERS_MAX
) -> Rebuilt:
    """Replaces the slices in table `rollups`, and the days they are of, by what the views say now; returns the serving rows.

    May be repeated: it depends on the views alone, and on hours that are not dirty. One commit of the table.
    """
    days = sorted({one.hour // 24 for one in wanted})
    of_days = {Slice(one.hour // 24, one.customer_id) for one in wanted}
    stored = read(spark, warehouse, tables.ROLLUPS).where(sf.col("day").isin(*days))
    other_hours = stored.where((sf.col("grain") == "hour") & in_slices(list(of_days), "day") & ~in_slices(wanted))
    # Found by the files' bounds of `hour`: a session's views may be any time after its first day.
    views = read(spark, warehouse, tables.VIEWS).where(in_slices(wanted))
    columns = tables.ROLLUPS.schema.fieldNames()
    with ExitStack() as kept:
        # Sums, sketches and buckets each read them: kept, they are planned and read from the table once.
        by_minute, by_hour = _bounded(kept, minutes(keep(kept, counted(views)), sets), members_max)
        by_day = coarser(by_hour.union(narrow(keep(kept, other_hours))), "day")
        # Minutes stay in the warehouse: they are too many for the page, and its history needs none.
        served_rows = keep(kept, wide(by_hour.union(by_day)).select(columns))
        served = served_rows.collect()
        _replace(warehouse, wide(by_minute).select(columns).unionByName(served_rows), days, wanted, of_days)
    return Rebuilt(slices=wanted, measures=list(MEASURES), groups=[_group(row) for row in served])


def _bounded(kept: ExitStack, groups: Groups, members_max: int) -> tuple[Groups, Groups]:
    """Groups by minute -> those of minutes and of hours. A customer's hour keeps so many members of each set of dimensions."""
    by_minute = groups.map(partial(keep, kept))
    by_hour = coarser(by_minute, "hour").map(partial(keep, kept))
    # At most a row a slice and set of dimensions.
    for row in (sets := crowded(by_hour, members_max).collect()):
        log.warning("members_beyond", customer_id=row["customer_id"], dimensions=row["dimensions"])
    if not sets:
        return by_minute, by_hour
    by_minute = gathered(by_minute, keep(kept, beyond(by_hour, members_max))).map(partial(keep, kept))
    return by_minute, coarser(by_minute, "hour").map(partial(keep, kept))


def _replace(
    warehouse: str, rows: DataFrame, days: Sequence[int], wanted: Sequence[Slice], of_days: set[Slice]
) -> None:
    def condition(slices: Sequence[Slice], column: str) -> str:
        return " OR ".join(
            f"({column} IN ({listed(str(hour) for hour in hours)}) AND customer_id = '{customer}')"
            for customer, hours in _by_customer(slices).items()
        )

    # Few files: one a core that computes them. In one alone, the other cores would wait for it.
    files = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    # Customers' names are checked when a view is parsed: letters, digits, _ and -.
    rows.coalesce(files).write.format("delta").mode("overwrite").option(
        "replaceWhere",
        f"day IN ({listed(map(str, days))}) AND ((grain <> 'day' AND ({condition(wanted, 'hour')}))"
        f" OR (grain = 'day' AND ({condition(sorted(of_days), 'day')})))",
    ).save(tables.ROLLUPS.path(warehouse))


def _by_customer(slices: Sequence[Slice]) -> dict[str, list[int]]:
    hours: dict[str, list[int]] = {}
    for one in slices:
        hours.setdefault(one.customer_id, []).append(one.hour)
    return hours


def _group(row: Row) -> Group:
    histograms: list[Any] = []
    for metric in METRICS:
        counts = sorted(row[f"{metric}_histogram"].items())
        histograms += [[bucket for bucket, _ in counts], [count for _, count in counts]]
    return Group(
        grain=row["grain"],
        start_ms=row["start_ms"],
        customer_id=row["customer_id"],
        dimensions=row["dimensions"],
        members=row["members"],
        measures=[row[name] for name in MEASURES],
        uniques=bytes(row["uniques"]),
        histograms=histograms,
    )
