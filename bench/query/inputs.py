"""Generates a warehouse: correlated views of 30 days, sorted by customer and hour."""

import shutil
import zlib
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

DAYS: Final = 30
CUSTOMERS: Final = 20
#: 2026-01-01 (UTC), days since 1970.
FIRST_DAY: Final = 20_454
DAY_MS: Final = 86_400_000
#: Rows of one file: what compaction makes.
_FILE_ROWS: Final = 500_000

#: Columns of a view as questions read them; what they do not read costs them nothing. `u1` … are independent random numbers.
_VIEWS: Final = """
    SELECT
        'customer_' || lpad(CAST(floor(20 * u1 * u1) AS integer)::varchar, 2, '0') AS customer_id,
        lpad(to_hex(n), 16, '0') AS view_id, false AS deleted,
        {day}::bigint * 86400000 + CAST(86399999 * u2 AS bigint) AS at_ms,
        at_ms // 3600000 AS hour, at_ms AS view_end_ms, at_ms AS last_append_ms, at_ms - 60000 AS first_append_ms,
        CASE WHEN u3 < 0.02 THEN NULL ELSE list_extract(['DE', 'US', 'FR', 'GB', 'IN', 'BR', 'JP', 'ES', 'IT', 'PL'],
            1 + CAST(floor(10 * u3 * u3) AS integer)) END AS country,
        list_extract(['akamai', 'fastly', 'cloudfront', 'own'], 1 + CAST(floor(4 * u4 * u4) AS integer)) AS cdn,
        list_extract(['phone', 'tv', 'desktop', 'tablet'], 1 + CAST(floor(4 * u5) AS integer)) AS device,
        list_extract(['iOS', 'Android', 'Windows', 'macOS', 'Tizen'], 1 + CAST(floor(5 * u5) AS integer)) AS os,
        list_extract(['Chrome', 'Safari', 'Firefox', 'Edge'], 1 + CAST(floor(4 * u2 * u2) AS integer)) AS browser,
        list_extract(['hls.js', 'dash.js', 'shaka'], 1 + CAST(floor(3 * u6 * u6) AS integer)) AS player_name,
        list_extract(['live', 'vod'], 1 + CAST(floor(2 * u6) AS integer)) AS stream_type,
        '4.' || CAST(floor(12 * u7) AS integer) AS player_version,
        CAST(3000 + floor(200 * u8 * u8) AS bigint) AS asn,
        'video ' || CAST(floor(20000 * u9 * u9 * u9) AS integer) AS video_title,
        'viewer ' || CAST(floor(1000000 * u10) AS integer) AS viewer_id, NULL::varchar AS viewer_user_id,
        'mux' AS source, NULL::varchar AS startup_unknown,
        CASE WHEN u11 < 0.95 THEN CAST(300 + 900 * -ln(1 - u12) * (1 + u3) AS bigint) END AS startup_ms,
        u11 > 0.99 AS startup_failed, u11 > 0.98 AS playback_failed, u11 BETWEEN 0.95 AND 0.98 AS ebvs, false AS view_dropped,
        CAST(1800000 * u13 AS bigint) AS watch_ms, CAST(watch_ms * 0.97 AS bigint) AS playing_ms,
        CAST(CASE WHEN u14 < 0.2 THEN 20000 * u14 * (1 + u4) ELSE 0 END AS bigint) AS rebuffer_ms,
        CAST(5 * u14 AS bigint) AS rebuffer_count, 0::bigint AS seek_count, 0::bigint AS seek_ms,
        CAST(4000000 * u8 AS bigint) AS avg_bitrate_bps, avg_bitrate_bps * watch_ms AS bitrate_integral,
        watch_ms AS bitrate_time_ms,
        10::bigint AS beacon_count, 0::bigint AS duplicate_count, {day}::bigint AS day,
        'id of ' || video_title AS video_id, 5400000::bigint AS video_duration_ms, watch_ms AS max_playhead_ms,
        at_ms - watch_ms AS view_start_ms,
        CASE WHEN u11 > 0.98 THEN 'code ' || CAST(floor(40 * u10 * u10) AS integer) END AS error_code,
        CASE WHEN u11 > 0.98 THEN 'text ' || CAST(floor(100 * u10 * u10) AS integer) END AS error_message
    FROM (SELECT i AS n, {randoms} FROM range({first}, {last}) AS numbers (i))
    ORDER BY {order}
"""
#: Orders of a table's rows: by customer and hour, and as views come.
SORTED: Final = "customer_id, hour"
LANDED: Final = "last_append_ms"


def generate(folder: Path, views: int) -> None:
    """Makes table `views` in a folder that has none of so many of these views."""
    table, mark = folder / "views", folder / f"{views}-{zlib.crc32(_VIEWS.encode()):x}.views"
    if mark.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    a_day = views // DAYS
    for day in range(DAYS):
        append(table, rows_of(day, day * a_day, a_day))
    assert DeltaTable(table).version() == DAYS - 1
    mark.touch()


def rows_of(day: int, first: int, views: int, order: str = SORTED) -> pa.Table:
    """So many views of a day (0: the first) in an order; `first` is the number of the first of them."""
    # Hashes, not random(): every run has the same views.
    randoms = ", ".join(f"(hash(i, {number}) % 1000000007) / 1000000007.0 AS u{number}" for number in range(1, 15))
    sql = _VIEWS.format(day=FIRST_DAY + day, first=first, last=first + views, randoms=randoms, order=order)
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        return connection.sql(sql).to_arrow_table().drop_columns(["at_ms"])


def append(table: Path, rows: pa.Table) -> None:
    """Appends rows to a table, as one file a day."""
    write_deltalake(
        table,
        rows,
        partition_by=["day"],
        mode="append",
        configuration={"delta.dataSkippingStatsColumns": "hour,customer_id"},
    )
