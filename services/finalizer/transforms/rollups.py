"""From views to rollups: exact sums, histograms and sketches that add up over time, customers and dimensions.

A *group* is one row of table `rollups`: a grain, a start, a customer, and members of a set of dimensions (`dimensions` names
them joined by +, the empty text for the total; `members` holds their values in that order, null where unknown).
Inside this module a group is *narrow*: one row with its sums (`metric` null) and one a bucket of each histogram, so that
merging is adding up. Stored it is *wide*: one row with its histograms as maps.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType

from services.finalizer.transforms.views import DAY_MS, HOUR_MS, rollup_end_ms
from shared.histogram import BUCKET_OF_ZERO, GAMMA

MINUTE_MS: Final = 60_000

#: Fields of a view that rollups may be broken down by.
DIMENSIONS: Final = (
    "country",
    "device",
    "os",
    "browser",
    "player_name",
    "cdn",
    "stream_type",
    "video_id",
    "experiment",
)
Sets = tuple[tuple[str, ...], ...]

#: What has a histogram: startup over the views that started, rebuffering over all views.
METRICS: Final = ("startup_ms", "rebuffer_ms")

#: 2^12 registers: distinct viewers within about 2 % (one standard deviation), 4 KB at most.
UNIQUES_LOG2_REGISTERS: Final = 12
#: A longer value is cut: clients choose them, and an index entry of Postgres holds 2.7 KB.
MEMBER_CHARACTERS_MAX: Final = 100

GROUP: Final = ("grain", "start_ms", "hour", "customer_id", "dimensions", "members")


#: Of every sum the field that is summed; of any size.
_SUMS: Final = {
    "watch_ms": "watch_ms",
    "playing_ms": "playing_ms",
    "rebuffer_count": "rebuffer_count",
    "rebuffer_ms": "rebuffer_ms",
    "seek_count": "seek_count",
    "seek_ms": "seek_ms",
    "bitrate_integral": "bitrate_integral",
    "bitrate_time_ms": "bitrate_time_ms",
    "beacons": "beacon_count",
    "duplicates": "duplicate_count",
}
#: Of every count of views the field that says whether a view counts, None for all.
_COUNTS: Final[dict[str, str | None]] = {
    "views": None,
    "started": "startup_ms",
    "startup_failures": "startup_failed",
    "playback_failures": "playback_failed",
    "exits_before_start": "ebvs",
    "views_dropped": "view_dropped",
}
#: What a group measures, by the type of its column, in the order of the serving table. Counts are unweighted: `sample_rate`
#: stays in the view's row.
MEASURES: Final[dict[str, str]] = {**dict.fromkeys(_COUNTS, "bigint"), **dict.fromkeys(_SUMS, "decimal(38,0)")}


def measures() -> dict[str, Column]:
    """Each measure over views."""
    counts = {
        name: sf.count("*") if field is None else sf.count(field) if name == "started" else sf.count_if(field)
        for name, field in _COUNTS.items()
    }
    return {**counts, **{name: _sum(field) for name, field in _SUMS.items()}}


def _sum(column: str) -> Column:
    """Exact for as many rows as there can be: 64 bits do not hold a busy hour, and would stop every later batch."""
    return sf.sum(sf.col(column).cast("decimal(38,0)"))


def minutes(views: DataFrame, sets: Sets) -> DataFrame:
    """Views -> narrow groups by minute. A view that was taken back counts nowhere."""
    placed = views.where(~sf.col("deleted")).select(
        "hour",
        (sf.floor(rollup_end_ms() / MINUTE_MS) * MINUTE_MS).cast(LongType()).alias("start_ms"),
        "customer_id",
        sf.explode(sf.array(*(_group(names, metric) for names in sets for metric in (None, *METRICS)))).alias("group"),
        sf.coalesce("viewer_user_id", "viewer_id").alias("viewer"),
        "startup_ms",
        "startup_failed",
        "playback_failed",
        "ebvs",
        "view_dropped",
        *_SUMS.values(),
    )
    # A metric that a view does not have falls into no bucket.
    counted = placed.where(sf.col("group.metric").isNull() | sf.col("group.bucket").isNotNull())
    grouped = counted.groupBy(
        sf.lit("minute").alias("grain"), "start_ms", "hour", "customer_id", *(f"group.{name}" for name in _OF_GROUP)
    )
    return grouped.agg(
        *(measure.alias(name) for name, measure in measures().items()),
        sf.hll_sketch_agg(sf.when(sf.col("group.metric").isNull(), sf.col("viewer")), UNIQUES_LOG2_REGISTERS).alias(
            "uniques"
        ),
    )


def coarser(narrow: DataFrame, grain: str) -> DataFrame:
    """Narrow groups of a finer grain -> those of `grain`, hour or day: all but a day's distinct viewers by adding up."""
    width_ms = HOUR_MS if grain == "hour" else DAY_MS
    start_ms = (sf.floor(sf.col("start_ms") / width_ms) * width_ms).cast(LongType())
    hour = sf.col("hour") if grain == "hour" else sf.lit(None).cast(LongType())
    placed = narrow.withColumns({"grain": sf.lit(grain), "start_ms": start_ms, "hour": hour})
    return placed.groupBy(*GROUP, "metric", "bucket").agg(
        *(sf.sum(name).alias(name) for name in MEASURES),
        sf.hll_union_agg("uniques", False).alias("uniques"),
    )


def wide(narrow: DataFrame) -> DataFrame:
    """Narrow groups -> one row each: the columns of table `rollups`."""
    is_sums = sf.col("metric").isNull()
    return narrow.groupBy(*GROUP).agg(
        sf.floor(sf.first("start_ms") / DAY_MS).cast(LongType()).alias("day"),
        *(sf.max(sf.when(is_sums, sf.col(name))).alias(name) for name in MEASURES),
        sf.first(sf.when(is_sums, sf.col("uniques")), ignorenulls=True).alias("uniques"),
        *(
            sf.map_from_entries(
                sf.collect_list(sf.when(sf.col("metric") == metric, sf.struct("bucket", "views")))
            ).alias(f"{metric}_histogram")
            for metric in METRICS
        ),
    )


def narrow(rollups: DataFrame) -> DataFrame:
    """Rows of table `rollups` -> narrow groups."""
    sums = rollups.select(*GROUP, *_bucket(None, None), *MEASURES, "uniques")
    histograms = [
        rollups.select(*GROUP, sf.explode(f"{metric}_histogram").alias("bucket", "count")).select(
            *GROUP,
            sf.lit(metric).alias("metric"),
            "bucket",
            *(sf.col("count").alias(name) if name == "views" else _no(name) for name in MEASURES),
            sf.lit(None).cast("binary").alias("uniques"),
        )
        for metric in METRICS
    ]
    return reduce(DataFrame.unionByName, histograms, sums)


_OF_GROUP: Final = ("dimensions", "members", "metric", "bucket")


def _group(names: Sequence[str], metric: str | None) -> Column:
    members = sf.array(*(_member(name) for name in names)).cast("array<string>")
    metric_and_bucket = _bucket(metric, bucket(metric) if metric else None)
    return sf.struct(sf.lit("+".join(names)).alias("dimensions"), members.alias("members"), *metric_and_bucket)


def _bucket(metric: str | None, its_bucket: Column | None) -> tuple[Column, Column]:
    return (
        sf.lit(metric).cast("string").alias("metric"),
        (sf.lit(None) if its_bucket is None else its_bucket).cast(IntegerType()).alias("bucket"),
    )


def _member(name: str) -> Column:
    # Postgres has no text with a zero character.
    return sf.replace(sf.substring(name, 1, MEMBER_CHARACTERS_MAX), sf.lit("\0"), sf.lit("\ufffd"))


def _no(measure: str) -> Column:
    return sf.lit(None).cast(MEASURES[measure]).alias(measure)


def bucket(metric: str) -> Column:
    """The histogram bucket of a column, as `shared.histogram.bucket_of` defines it; null stays null."""
    value = sf.col(metric)
    log = sf.floor(sf.ln(value) / sf.lit(math.log(GAMMA))).cast(IntegerType())
    return sf.when(value > 0, log).when(value <= 0, sf.lit(BUCKET_OF_ZERO))
