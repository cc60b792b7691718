"""Rebuilds dirty slices: table `rollups` from table `views`, and the serving copy of it."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import structlog
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.serving.published import Group, Rebuilt, Slice
from services.finalizer.streaming.kept import keep
from services.finalizer.streaming.recount import Recount, recount
from services.finalizer.transforms.rollups import (
    MEASURES,
    MEMBERS_MAX,
    Groups,
    Sets,
    beyond,
    coarser,
    counted,
    crowding,
    gathered,
    minutes,
    narrow,
    wide,
)
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.scan import read_where
from services.finalizer.warehouse.views_table import in_slices, listed
from shared.measures import HISTOGRAMS

log = structlog.get_logger(__name__)

#: What the driver holds at a time; a group has a sketch of up to 4 KB.
GROUPS_MAX: Final = 100_000
#: Delta keeps the largest version of each such name in the table's log.
_FENCED: Final = "rollups"
NO_OWN: Final[Mapping[str, int]] = MappingProxyType({})
NO_MINUTES: Final[Mapping[Slice, Collection[int]]] = MappingProxyType({})


class Crowded(Exception):
    """Slices of which some minutes are counted again have more members than are kept apart: they must be counted whole."""


class TooManyGroups(Exception):
    """The slices have more groups than are published at once: fewer slices have fewer."""

    def __init__(self, groups: int) -> None:
        super().__init__(f"{groups} groups")
        self.groups = groups


def rebuild(
    spark: SparkSession,
    warehouse: str,
    wanted: Sequence[Slice],
    sets: Sets,
    *,
    version: int,
    members_max: int = MEMBERS_MAX,
    own_members_max: Mapping[str, int] = NO_OWN,
    groups_max: int = GROUPS_MAX,
    minutes_of: Mapping[Slice, Collection[int]] = NO_MINUTES,
) -> Rebuilt:
    """Replaces the slices in table `rollups`, and the days they are of, by what the views say now; returns the serving rows.

    A customer's hour keeps `members_max` members of each set of dimensions, or so many as `own_members_max` says of the customer.

    In slices of `minutes_of` only these minutes (0 to 59) have changed since they were last rebuilt, with the same `sets` and
    with no members added up. The other minutes are read from table `rollups`. Raises `Crowded` if they have too many members now.

    Raises `TooManyGroups`, before anything is written, where several slices have more than `groups_max` groups. One slice is
    rebuilt however many it has: of each set of dimensions at most its members and those of its day's 24 hours.

    May be repeated: it depends on the views alone, and on hours that are not dirty. It is one commit of the table. It is left out
    if the table has a commit of the same or a larger `version`, so an overtaken driver replaces no newer rows.
    """
    days = sorted({one.hour // 24 for one in wanted})
    of_days = {Slice(one.hour // 24, one.customer_id) for one in wanted}
    again = recount(wanted, minutes_of)
    of_other_hours = (sf.col("grain") == "hour") & in_slices(list(of_days), "day") & ~in_slices(wanted)
    of_stored = of_other_hours | again.other_minutes() if again.parts else of_other_hours
    stored = read_where(spark, warehouse, tables.ROLLUPS, sf.col("day").isin(*days) & of_stored)
    # Found by the files' bounds of `hour`: a session's views may be any time after its first day.
    views = read_where(spark, warehouse, tables.VIEWS, again.views())
    columns = tables.ROLLUPS.schema.fieldNames()
    with ExitStack() as kept:
        # Sums, sketches and buckets each read them: kept, they are planned and read from the table once.
        other_hours = keep(kept, stored.where(of_other_hours))
        other_minutes = narrow(keep(kept, stored.where(again.other_minutes()))) if again.parts else None
        by_minute, by_hour = _hours(kept, minutes(keep(kept, counted(views)), sets), other_minutes)
        limit = _limit(members_max, own_members_max)
        count, sets_beyond = _counted(by_hour, other_hours, limit)
        if count > groups_max and len(wanted) > 1:
            raise TooManyGroups(count)
        if sets_beyond and again.parts:
            raise Crowded
        if sets_beyond:
            by_minute, by_hour = _gathered(kept, by_minute, by_hour, limit)
        by_day = coarser(by_hour.union(narrow(other_hours)), "day")
        # Minutes stay in the warehouse: they are too many for the page, and its history needs none.
        served_rows = keep(kept, wide(by_hour.union(by_day)).select(columns))
        served = served_rows.collect()
        rows = wide(by_minute).select(columns).unionByName(served_rows)
        _replace(warehouse, rows, again, of_days, version)
    return Rebuilt(slices=wanted, measures=list(MEASURES), groups=[_group(row) for row in served])


def with_minutes(spark: SparkSession, warehouse: str, wanted: Sequence[Slice]) -> set[Slice]:
    """Those of some slices of which table `rollups` has all minutes: together these have the hour's views."""
    total = (sf.col("dimensions") == "") & (sf.col("grain") != "day") & in_slices(wanted)
    stored = read_where(
        spark, warehouse, tables.ROLLUPS, sf.col("day").isin(*{one.hour // 24 for one in wanted}) & total
    )
    of_minutes = sf.sum(sf.when(sf.col("grain") == "minute", sf.col("views")).otherwise(-sf.col("views")))
    found = stored.groupBy("hour", "customer_id").agg(of_minutes.alias("beyond")).where("beyond = 0").collect()
    return {Slice(row["hour"], row["customer_id"]) for row in found}


def _limit(members_max: int, own: Mapping[str, int]) -> Column:
    if not own:
        return sf.lit(members_max)
    # No more entries than slices are rebuilt at once.
    entries = sf.create_map(*(sf.lit(part) for entry in own.items() for part in entry))
    return sf.coalesce(sf.try_element_at(entries, sf.col("customer_id")), sf.lit(members_max))


def _hours(kept: ExitStack, groups: Groups, other_minutes: Groups | None = None) -> tuple[Groups, Groups]:
    by_minute = groups.map(partial(keep, kept))
    of_hours = by_minute if other_minutes is None else by_minute.union(other_minutes)
    return by_minute, coarser(of_hours, "hour").map(partial(keep, kept))


def _counted(by_hour: Groups, other_hours: DataFrame, members_max: Column) -> tuple[int, int]:
    """How many groups of hours are kept apart or added up to days, and how many sets of dimensions have too many members."""
    row = crowding(by_hour, other_hours, members_max).collect()[0]
    # At most a row a slice and set of dimensions.
    for one in row["sets"]:
        log.warning("members_beyond", customer_id=one["customer_id"], dimensions=one["dimensions"])
    return row["groups"] or 0, len(row["sets"])


def _gathered(kept: ExitStack, by_minute: Groups, by_hour: Groups, members_max: Column) -> tuple[Groups, Groups]:
    """Groups by minute -> those of minutes and of hours. A customer's hour keeps so many members of each set of dimensions."""
    others = keep(kept, beyond(by_hour, members_max))
    return _hours(kept, gathered(by_minute, others))


def _replace(warehouse: str, rows: DataFrame, again: Recount, of_days: set[Slice], version: int) -> None:
    # Customers' names are checked when a view is parsed: letters, digits, _ and -.
    whole_days = " OR ".join(f"(day = {one.hour:d} AND customer_id = '{one.customer_id}')" for one in sorted(of_days))
    days = sorted({one.hour for one in of_days})
    # Few files: one a core that computes them. In one alone, the other cores would wait for it.
    files = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    rows.coalesce(files).write.format("delta").mode("overwrite").option(
        "replaceWhere",
        f"day IN ({listed(map(str, days))}) AND (({again.replaced()}) OR (grain = 'day' AND ({whole_days})))",
    ).option("txnAppId", _FENCED).option("txnVersion", version).save(tables.ROLLUPS.path(warehouse))


def _group(row: Row) -> Group:
    histograms: list[Any] = []
    for metric in HISTOGRAMS:
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
