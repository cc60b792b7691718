"""From views to hourly slices: exact sums, and histograms whose buckets add up over hours and customers."""

import math
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType

from shared.histogram import BUCKET_OF_ZERO, GAMMA

#: What has a histogram: startup over the views that started, rebuffering over all views.
METRICS: Final = ("startup_ms", "rebuffer_ms")


def measures() -> dict[str, Column]:
    """The sums of a slice by name, in the order of the serving table.

    Counts are unweighted: `sample_rate` stays in the view's row.
    """
    return {
        "views": sf.count("*"),
        "started": sf.count("startup_ms"),
        "startup_failures": sf.count_if("startup_failed"),
        "playback_failures": sf.count_if("playback_failed"),
        "exits_before_start": sf.count_if("ebvs"),
        "views_dropped": sf.count_if("view_dropped"),
        "watch_ms": _sum("watch_ms"),
        "playing_ms": _sum("playing_ms"),
        "rebuffer_count": _sum("rebuffer_count"),
        "rebuffer_ms": _sum("rebuffer_ms"),
        "seek_count": _sum("seek_count"),
        "seek_ms": _sum("seek_ms"),
        "bitrate_integral": _sum("bitrate_integral"),
        "bitrate_time_ms": _sum("bitrate_time_ms"),
        "beacons": _sum("beacon_count"),
        "duplicates": _sum("duplicate_count"),
    }


def _sum(column: str) -> Column:
    """Exact for as many rows as there can be: 64 bits do not hold a busy hour, and would stop every later batch."""
    return sf.sum(sf.col(column).cast("decimal(38,0)"))


def slices(views: DataFrame) -> DataFrame:
    """Views -> the rows of their slices (hour, customer_id), in one pass over them.

    A row with `metric` null holds the slice's sums; every other one the count, in `views`, of that metric's `bucket`.
    """
    bucketed = views.withColumns({f"{metric}_bucket": bucket(metric) for metric in METRICS})
    keys = [sf.col("hour"), sf.col("customer_id")]
    buckets = [sf.col(f"{metric}_bucket") for metric in METRICS]
    grouped = bucketed.groupingSets([keys, *([*keys, one] for one in buckets)], *keys, *buckets)
    sums = grouped.agg(
        *(sf.when(sf.grouping(f"{metric}_bucket") == 0, sf.lit(metric)).alias(f"{metric}_of") for metric in METRICS),
        *(measure.alias(name) for name, measure in measures().items()),
    )
    rows = sums.select(
        "hour",
        "customer_id",
        sf.coalesce(*(sf.col(f"{metric}_of") for metric in METRICS)).alias("metric"),
        sf.coalesce(*(sf.col(f"{metric}_bucket") for metric in METRICS)).alias("bucket"),
        *measures(),
    )
    # A metric that a view does not have falls into no bucket.
    return rows.where(sf.col("metric").isNull() | sf.col("bucket").isNotNull())


def bucket(metric: str) -> Column:
    """The histogram bucket of a column, as `shared.histogram.bucket_of` defines it; null stays null."""
    value = sf.col(metric)
    log = sf.floor(sf.ln(value) / sf.lit(math.log(GAMMA))).cast(IntegerType())
    return sf.when(value > 0, log).when(value <= 0, sf.lit(BUCKET_OF_ZERO))
