"""The fold of the benchmark's views as SQL windows, as a warehouse would do it without the processor's code.

It supports only these views (no gaps, no other sources, no lateness), and must give the same rows.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

#: The fields of a view that both folds compute and that are compared.
COLUMNS: Final = (
    "customer_id",
    "view_id",
    "first_append_ms",
    "last_append_ms",
    "view_start_ms",
    "view_end_ms",
    "end_reason",
    "player_name",
    "video_id",
    "startup_ms",
    "watch_ms",
    "playing_ms",
    "rebuffer_count",
    "rebuffer_ms",
    "seek_count",
    "seek_ms",
    "bitrate_integral",
    "bitrate_time_ms",
    "beacon_count",
)

_ATTRIBUTES: Final = {
    "view_start": "bigint",
    "player_name": "string",
    "video_id": "string",
    "video_source_bitrate": "bigint",
    "view_time_to_first_frame": "bigint",
    "view_watch_time": "bigint",
    "view_rebuffer_count": "bigint",
    "view_rebuffer_duration": "bigint",
    "view_seek_count": "bigint",
    "view_seek_duration": "bigint",
    "view_playing_time_ms_cumulative": "bigint",
}
_SCHEMA: Final = (
    "customer_id string, view_id string, event string, client_time_ms bigint, clock_offset_ms bigint, seq bigint,"
    f" attrs struct<{', '.join(f'{name}: {kind}' for name, kind in _ATTRIBUTES.items())}>"
)

_FOLD: Final = """
    WITH beacon_rows AS (
        SELECT append_ms, b.customer_id, b.view_id, b.event, b.seq, b.client_time_ms + b.clock_offset_ms AS at_ms,
               b.clock_offset_ms, b.attrs.*
        FROM beacons
    ), once AS (
        SELECT *, row_number() OVER (PARTITION BY customer_id, view_id, seq ORDER BY append_ms) AS copy FROM beacon_rows
    ), placed AS (
        SELECT *,
               last_value(video_source_bitrate, true) OVER so_far AS bitrate,
               last_value(CASE WHEN event IN ('playing', 'rebufferend', 'seekend') THEN 'playing'
                               WHEN event IN ('rebufferstart', 'seekstart', 'viewend') THEN 'not' END, true) OVER so_far
                   AS state,
               lead(at_ms) OVER (PARTITION BY customer_id, view_id ORDER BY seq) - at_ms AS until_next_ms
        FROM once WHERE copy = 1
        WINDOW so_far AS (PARTITION BY customer_id, view_id ORDER BY seq)
    )
    SELECT customer_id, view_id, min(append_ms) AS first_append_ms, max(append_ms) AS last_append_ms,
           max_by(view_start, seq) FILTER (WHERE view_start IS NOT NULL) + max(clock_offset_ms) AS view_start_ms,
           max(at_ms) AS view_end_ms, 'clean' AS end_reason,
           max_by(player_name, seq) FILTER (WHERE player_name IS NOT NULL) AS player_name,
           max_by(video_id, seq) FILTER (WHERE video_id IS NOT NULL) AS video_id,
           max_by(view_time_to_first_frame, seq) FILTER (WHERE view_time_to_first_frame IS NOT NULL) AS startup_ms,
           max_by(view_watch_time, seq) FILTER (WHERE view_watch_time IS NOT NULL) AS watch_ms,
           max_by(view_playing_time_ms_cumulative, seq) FILTER (WHERE view_playing_time_ms_cumulative IS NOT NULL)
               AS playing_ms,
           max_by(view_rebuffer_count, seq) FILTER (WHERE view_rebuffer_count IS NOT NULL) AS rebuffer_count,
           max_by(view_rebuffer_duration, seq) FILTER (WHERE view_rebuffer_duration IS NOT NULL) AS rebuffer_ms,
           max_by(view_seek_count, seq) FILTER (WHERE view_seek_count IS NOT NULL) AS seek_count,
           max_by(view_seek_duration, seq) FILTER (WHERE view_seek_duration IS NOT NULL) AS seek_ms,
           sum(CASE WHEN state = 'playing' THEN bitrate * until_next_ms END) AS bitrate_integral,
           sum(CASE WHEN state = 'playing' THEN until_next_ms END) AS bitrate_time_ms,
           count(*) AS beacon_count
    FROM placed GROUP BY customer_id, view_id
    HAVING bool_or(event = 'viewend')
"""


def fold(bronze: DataFrame) -> DataFrame:
    """Records of `bronze` -> one row a view that has ended."""
    parsed = bronze.select(
        sf.col("kafka_timestamp_ms").alias("append_ms"),
        sf.from_json(sf.col("value").cast("string"), _SCHEMA).alias("b"),
    )
    parsed.createOrReplaceTempView("beacons")
    return bronze.sparkSession.sql(_FOLD).select(*COLUMNS)


def hashed(views: DataFrame) -> tuple[int, int]:
    """How many rows there are, and a hash of all of them in any order."""
    one: Column = sf.xxhash64(*(sf.coalesce(sf.col(name).cast("string"), sf.lit("-")) for name in COLUMNS))
    row = views.agg(sf.count("*").alias("rows"), sf.sum(one.cast("decimal(38,0)")).alias("hash")).collect()[0]
    return row["rows"], int(row["hash"] or 0)
