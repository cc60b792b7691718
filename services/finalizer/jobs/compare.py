"""Compares a reprocessed generation with the present rows: what would a swap change?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.jobs.reprocess import days_of, with_partial
from services.finalizer.transforms.rollups import MEASURES, measures
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.views_table import KEY, read

#: Columns in which two rows of one view differ although they say the same.
_OF_ARRIVAL: Final = ("generation", "revision", "kafka_partition", "kafka_offset", "kafka_timestamp_ms", "landed_at_ms")


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
    not_reprocessed: int
    #: Views of which `bronze` holds only a part: a swap leaves them as they are, too.
    partial: int
    #: Columns in which changed views differ, and in how many.
    columns: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"days {self.days[0]} to {self.days[1]} since 1970"
        yield f"{'':24}{'now':>20}{'after a swap':>20}"
        for name, (now, then) in self.sums.items():
            yield f"{name:24}{now:>20,}{then:>20,}"
        yield f"views: {self.same:,} same, {self.changed:,} changed, {self.added:,} added, {self.not_reprocessed:,} not reprocessed"
        if self.partial:
            yield f"       {self.partial:,} kept as they are: bronze holds only a part of their beacons"
        for name, views in sorted(self.columns.items(), key=lambda one: -one[1]):
            yield f"  {name} differs in {views:,}"


def compare(spark: SparkSession, warehouse: str, generation: int) -> Difference:
    """What swapping the generation in would change. Raises `NothingReprocessed`."""
    reprocessed = with_partial(spark, warehouse, generation).persist()
    try:
        days = days_of(reprocessed, generation)
        new = reprocessed.where(~sf.col("is_partial")).drop("is_partial")
        now = read(spark, warehouse, tables.VIEWS).where(sf.col("day").between(days[0], days[-1]))
        pairs = now.alias("now").join(new.alias("new"), list(KEY), "full_outer")
        both = sf.col("now.revision").isNotNull() & sf.col("new.revision").isNotNull()
        columns = [name for name in tables.VIEWS.schema.fieldNames() if name not in {*_OF_ARRIVAL, *KEY}]
        # A live revision of this generation stays unchanged.
        wins = both & (sf.col("now.generation") < generation)
        differs = {name: wins & ~_same(name) for name in columns}
        any_differs = sf.lit(False)
        for condition in differs.values():
            any_differs = any_differs | condition
        partial = reprocessed.where(sf.col("is_partial")).count()
        row = pairs.agg(
            sf.count_if(both & ~any_differs).alias("same"),
            sf.count_if(any_differs).alias("changed"),
            sf.count_if(sf.col("now.revision").isNull()).alias("added"),
            sf.count_if(sf.col("new.revision").isNull()).alias("not_reprocessed"),
            *(sf.count_if(condition).alias(f"in_{name}") for name, condition in differs.items()),
        ).collect()[0]
        kept = reprocessed.where(sf.col("is_partial")).join(now.select(*KEY), list(KEY), "left_semi").count()
        stays = now.join(new.select(*KEY), list(KEY), "left_anti").unionByName(
            now.where(sf.col("generation") >= generation).join(new.select(*KEY), list(KEY), "left_semi")
        )
        swapped = new.join(now.where(sf.col("generation") >= generation).select(*KEY), list(KEY), "left_anti")
        sums_now, sums_then = _sums(now), _sums(stays.unionByName(swapped))
    finally:
        reprocessed.unpersist()
    return Difference(
        days=(days[0], days[-1]),
        sums={name: (sums_now[name], sums_then[name]) for name in MEASURES},
        same=row["same"],
        changed=row["changed"],
        added=row["added"],
        not_reprocessed=row["not_reprocessed"] - kept,
        partial=partial,
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
    row = views.where(~sf.col("deleted")).agg(*measures()).collect()[0]
    return {name: int(row[name] or 0) for name in MEASURES}
