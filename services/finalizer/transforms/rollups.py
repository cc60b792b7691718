"""Turns views into rollups: exact sums, histograms and sketches that add up over time, customers and dimensions.

A *group* is one row of table `rollups`: a grain, a start, a customer, and members of a set of dimensions. `dimensions` names the
set joined by +, and is empty for the total. `members` holds their values in that order, null where unknown. Inside this module
groups are `Groups`: their sums, their sketches, and, in a frame of its own, one row per histogram bucket. So merging is addition.
A stored group is *wide*: one row with its histograms as maps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType

from services.finalizer.transforms.views import DAY_MS, HOUR_MS, MINUTE_MS, rollup_end_ms
from shared.measures import COUNTED, COUNTS, DIMENSIONS, FIELDS, HISTOGRAMS, MEMBER_CHARACTERS_MAX, SUMMED
from shared.schemas.live import OTHER
from shared.statistics.histogram import BUCKET_OF_ZERO, GAMMA

Sets = tuple[tuple[str, ...], ...]

#: 2^12 registers: distinct viewers within about 2 % (one standard deviation), 4 KB at most.
UNIQUES_LOG2_REGISTERS: Final = 12
#: Members of a set of dimensions that a customer's hour keeps apart, by default: clients choose them.
MEMBERS_MAX: Final = 1_000

GROUP: Final = ("grain", "start_ms", "customer_id", "dimensions", "members")
_SET: Final = ("start_ms", "customer_id", "dimensions")


@dataclass(frozen=True)
class Groups:
    """Groups of any grains: `sums` and `sketches` have a row a group, `buckets` a row a bucket.

    Apart, because Spark computes sums in compiled code, but not where an aggregate beside them is an object such as a sketch.
    """

    #: With `MEASURES`.
    sums: DataFrame
    #: With `uniques`, the sketch of the viewers.
    sketches: DataFrame
    #: With `metric`, `bucket` and `count`.
    buckets: DataFrame

    def union(self, other: "Groups") -> "Groups":
        """Both; a group that is in both is there twice."""
        return Groups(*(mine.unionByName(its) for mine, its in zip(self._frames(), other._frames(), strict=True)))

    def map(self, change: Callable[[DataFrame], DataFrame]) -> "Groups":
        """Each frame changed alike."""
        return Groups(*map(change, self._frames()))

    def _frames(self) -> tuple[DataFrame, DataFrame, DataFrame]:
        return self.sums, self.sketches, self.buckets


#: What a group measures, by the type of its column, in the order of the serving table.
MEASURES: Final[dict[str, str]] = {**dict.fromkeys(COUNTED, "bigint"), **dict.fromkeys(SUMMED, "decimal(38,0)")}


# Columns are built once: each is dozens of calls to the JVM, and a batch would make thousands.


@cache
def measures() -> Sequence[Column]:
    """Each measure over views, under its name."""
    counts = {
        name: sf.count("*") if condition == "true" else sf.count_if(sf.expr(condition))
        for name, condition in COUNTED.items()
    }
    sums = {name: _sum(field) for name, field in SUMMED.items()}
    return [measure.alias(name) for name, measure in {**counts, **sums}.items()]


def _sum(column: str) -> Column:
    """Exact for as many rows as there can be: 64 bits do not hold a busy hour, and would stop every later batch.

    Summed in halves of 31 bits, each of which 64 bits do hold for 2^32 rows: a decimal a row takes ten times as long.
    """
    value = sf.col(column)
    high, low = sf.sum(sf.shiftright(value, 31)), sf.sum(value.bitwiseAND(sf.lit(2**31 - 1)))
    return (high.cast("decimal(20,0)") * sf.lit(2**31).cast("decimal(10,0)") + low).cast("decimal(38,0)")


def counted(views: DataFrame) -> DataFrame:
    """Views -> those that count, with what `minutes` needs of them. A view that was taken back counts nowhere."""
    return views.where(COUNTS).select(*_counted())


@cache
def _counted() -> Sequence[Column]:
    minute_ms = (sf.floor(rollup_end_ms() / MINUTE_MS) * MINUTE_MS).cast(LongType())
    viewer = sf.coalesce("viewer_user_id", "viewer_id")
    fields = map(sf.col, ("customer_id", *DIMENSIONS, *FIELDS))
    return [minute_ms.alias("start_ms"), viewer.alias("viewer"), *fields]


def minutes(views: DataFrame, sets: Sets) -> Groups:
    """Views of `counted` -> groups by minute."""
    placed = views.select(*_placed(sets))
    groups = placed.groupBy(*GROUP)
    # A metric that a view does not have falls into no bucket.
    buckets = placed.select(*_in_buckets()).where("bucket IS NOT NULL").groupBy(*GROUP, "metric", "bucket")
    return Groups(
        sums=groups.agg(*measures()),
        sketches=groups.agg(_sketch()),
        buckets=buckets.agg(_count()),
    )


@cache
def _placed(sets: Sets) -> Sequence[Column]:
    members = sf.inline(sf.array(*(_members(names) for names in sets)))
    fields = list(map(sf.col, ("start_ms", "customer_id", "viewer", *FIELDS)))
    return [sf.lit("minute").alias("grain"), members, *fields]


@cache
def _in_buckets() -> Sequence[Column]:
    buckets = sf.inline(sf.array(*(sf.struct(*_bucket(metric, bucket(metric))) for metric in HISTOGRAMS)))
    return [*map(sf.col, GROUP), buckets]


@cache
def _sketch() -> Column:
    return sf.hll_sketch_agg("viewer", UNIQUES_LOG2_REGISTERS).alias("uniques")


@cache
def _count() -> Column:
    return sf.count("*").alias("count")


def coarser(groups: Groups, grain: str) -> Groups:
    """Groups of a finer grain -> those of `grain`, hour or day: all but a day's distinct viewers by adding up."""
    return _added(groups.map(lambda frame: frame.withColumns(_at(grain))))


@cache
def _at(grain: str) -> dict[str, Column]:
    width_ms = HOUR_MS if grain == "hour" else DAY_MS
    start_ms = (sf.floor(sf.col("start_ms") / width_ms) * width_ms).cast(LongType())
    return {"grain": sf.lit(grain), "start_ms": start_ms}


def _added(groups: Groups) -> Groups:
    """Groups of which several may have the same place -> one each."""
    sums, sketches = groups.sums.groupBy(*GROUP), groups.sketches.groupBy(*GROUP)
    buckets = groups.buckets.groupBy(*GROUP, "metric", "bucket")
    of_sums, of_sketches, of_buckets = _additions()
    return Groups(
        sums=sums.agg(*of_sums),
        sketches=sketches.agg(of_sketches),
        buckets=buckets.agg(of_buckets),
    )


@cache
def _additions() -> tuple[Sequence[Column], Column, Column]:
    sums = [sf.sum(name).alias(name) for name in MEASURES]
    return sums, sf.hll_union_agg("uniques", False).alias("uniques"), sf.sum("count").alias("count")


def crowded(hours: Groups, members_max: Column) -> DataFrame:
    """Groups by hour -> start, customer and dimensions where a customer's hour has more than `members_max` members.

    `members_max` may depend on `customer_id`.
    """
    return hours.sums.groupBy(*_SET).count().where(sf.col("count") > members_max).select(*_SET)


def crowding(hours: Groups, other_hours: DataFrame, members_max: Column) -> DataFrame:
    """Groups by hour, and rows of `rollups` of other hours -> one row.

    `groups`: how many are kept. `sets`: those of `crowded`.
    """
    places = hours.sums.select(*_SET, sf.lit(True).alias("is_wanted")).unionByName(
        other_hours.select(*_SET, sf.lit(False).alias("is_wanted"))
    )
    counts = places.groupBy(*_SET, "is_wanted").count()
    is_crowded = sf.col("is_wanted") & (sf.col("count") > members_max)
    return counts.agg(
        sf.sum(sf.least("count", members_max + 1)).alias("groups"),
        sf.collect_list(sf.when(is_crowded, sf.struct("customer_id", "dimensions"))).alias("sets"),
    )


def beyond(hours: Groups, members_max: Column) -> DataFrame:
    """Groups by hour -> `hour_ms`, customer, dimensions and members of those that a customer's hour does not keep apart.

    Kept are the `members_max` with the most views of each set of dimensions; of equal ones the first in the order of their texts.
    """
    order = Window.partitionBy(*_SET).orderBy(sf.desc("views"), "members")
    sets = sf.broadcast(crowded(hours, members_max))
    ranked = hours.sums.join(sets, list(_SET)).withColumn("place", sf.row_number().over(order))
    return ranked.where(sf.col("place") > members_max).select(
        sf.col("start_ms").alias("hour_ms"), "customer_id", "dimensions", "members"
    )


def gathered(groups: Groups, others: DataFrame) -> Groups:
    """Groups by minute, with the members of `others` (see `beyond`) added up under "(other)". Totals stay exact."""
    hour_ms = (sf.floor(sf.col("start_ms") / HOUR_MS) * HOUR_MS).cast(LongType())
    places = others.withColumn("is_other", sf.lit(True))

    def renamed(frame: DataFrame) -> DataFrame:
        other = sf.transform("members", lambda _: sf.lit(OTHER))
        named = frame.withColumn("hour_ms", hour_ms).join(
            places, ["hour_ms", "customer_id", "dimensions", "members"], "left"
        )
        members = sf.when(sf.col("is_other"), other).otherwise(sf.col("members"))
        return named.withColumn("members", members).drop("hour_ms", "is_other")

    return _added(groups.map(renamed))


def wide(groups: Groups) -> DataFrame:
    """Groups -> one row each: the columns of table `rollups`."""
    no_bucket, no_sketch, objects_of, placed = _widened()
    objects = groups.sketches.withColumns(no_bucket).unionByName(groups.buckets.withColumns(no_sketch))
    gathered = objects.groupBy(*GROUP).agg(*objects_of)
    # Not broadcast, which would be a Spark job of its own.
    return groups.sums.join(gathered.hint("merge"), list(GROUP)).withColumns(placed)


@cache
def _widened() -> tuple[dict[str, Column], dict[str, Column], Sequence[Column], dict[str, Column]]:
    no_bucket = {
        "metric": sf.lit(None).cast("string"),
        "bucket": sf.lit(None).cast("int"),
        "count": sf.lit(None).cast("bigint"),
    }
    no_sketch = {"uniques": sf.lit(None).cast("binary")}
    histograms = [
        sf.map_from_entries(sf.collect_list(sf.when(sf.col("metric") == metric, sf.struct("bucket", "count")))).alias(
            f"{metric}_histogram"
        )
        for metric in HISTOGRAMS
    ]
    hour = sf.floor(sf.col("start_ms") / HOUR_MS).cast(LongType())
    placed = {
        "day": sf.floor(sf.col("start_ms") / DAY_MS).cast(LongType()),
        "hour": sf.when(sf.col("grain") != "day", hour),
    }
    return no_bucket, no_sketch, [sf.first("uniques", ignorenulls=True).alias("uniques"), *histograms], placed


def narrow(rollups: DataFrame) -> Groups:
    """Rows of table `rollups` -> groups."""
    buckets = [
        rollups.selectExpr(*GROUP, f"'{metric}' AS metric", f"explode({metric}_histogram) AS (bucket, count)")
        for metric in HISTOGRAMS
    ]
    return Groups(
        sums=rollups.select(*GROUP, *MEASURES),
        sketches=rollups.select(*GROUP, "uniques"),
        buckets=reduce(DataFrame.unionByName, buckets),
    )


def _members(names: Sequence[str]) -> Column:
    members = sf.array(*(_member(name) for name in names)).cast("array<string>")
    return sf.struct(sf.lit("+".join(names)).alias("dimensions"), members.alias("members"))


def _bucket(metric: str, its_bucket: Column) -> tuple[Column, Column]:
    return sf.lit(metric).alias("metric"), its_bucket.cast(IntegerType()).alias("bucket")


def _member(name: str) -> Column:
    # Postgres has no text with a zero character.
    return sf.replace(sf.substring(name, 1, MEMBER_CHARACTERS_MAX), sf.lit("\0"), sf.lit("\ufffd"))


def bucket(metric: str) -> Column:
    """The histogram bucket of a column, as `shared.statistics.histogram.bucket_of` defines it; null stays null."""
    value = sf.col(metric)
    log = sf.floor(sf.ln(value) / sf.lit(math.log(GAMMA))).cast(IntegerType())
    return sf.when(value > 0, log).when(value <= 0, sf.lit(BUCKET_OF_ZERO))
