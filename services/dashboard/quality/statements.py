"""The statements of the quality table: the warehouse's rollups, and the sums of views of slices that have changed since.

A slice is a customer's hour. Blocks of hours hold the rollups of every slice. Of a hot slice (`serving.hot_slices`) the sums of
its views are added and its rollup is taken away, in one snapshot: so each slice has one owner, and each view counts once.
"""

from typing import Final

#: Of the longest blocks of table `serving.blocks`: of 2^13 hours.
LEVEL_MAX: Final = 13

#: As the fields of `RollupSum`, after the customer.
_COUNTS: Final = ("views", "started", "startup_failures", "playback_failures", "exits_before_start")
_AMOUNTS: Final = ("watch_ms", "playing_ms", "rebuffer_ms", "bitrate_integral", "bitrate_time_ms")
_LISTED: Final = ", ".join((*_COUNTS, *_AMOUNTS))
_SUMS: Final = ", ".join(
    ["customer_id", *(f"sum({name})::bigint AS {name}" for name in _COUNTS)]
    + [f"sum({name})::float8 AS {name}" for name in _AMOUNTS]
)


def _of(table: str, sign: str = "") -> str:
    return ", ".join(f"{sign}{table}.{name}" for name in (*_COUNTS, *_AMOUNTS))


#: Hot slices from hour `since_hour` on (since 1970). Until all their views are there, none is hot.
_HOT: Final = """
    hot AS (
        SELECT h.hour, h.customer_id FROM serving.hot_slices AS h, serving.coverage AS c
        WHERE c.is_whole AND h.hour >= %(since_hour)s
    )
"""
_SUMS_OF_HOT: Final = """
    hot JOIN serving.sums AS s ON s.grain = 'hour' AND s.start = hot.hour AND s.customer_id = hot.customer_id
"""
_STARTUPS_OF_HOT: Final = """
    hot JOIN serving.histograms AS i
          ON i.metric = 'startup_ms' AND i.hour = hot.hour AND i.customer_id = hot.customer_id
"""


def _rollups_of_hot(dimensions: str) -> str:
    return f"""
        hot JOIN serving.rollups AS r ON r.customer_id = hot.customer_id AND r.dimensions = '{dimensions}'
                                     AND r.grain = 'hour' AND r.start = to_timestamp(hot.hour * 3600)
    """


_WANTED: Final = f"""
    WITH {_HOT}, wanted AS (
        SELECT b.* FROM unnest(%(levels)s::smallint[], %(blocks)s::bigint[]) AS one (level, block)
        JOIN serving.blocks AS b ON b.level = one.level AND b.block = one.block
        UNION ALL
        SELECT b.* FROM serving.blocks AS b WHERE b.level = {LEVEL_MAX} AND b.block >= %(first)s
    )
"""  # noqa: S608 - SQL of ours
#: The sums of each customer that may be seen, then how many such customers there are.
ROLLUPS: Final = f"""{_WANTED}
    SELECT {_SUMS}, count(*) OVER () AS customers FROM (
        SELECT customer_id, {_LISTED} FROM wanted
        UNION ALL SELECT s.customer_id, {_of("s")} FROM {_SUMS_OF_HOT}
        UNION ALL SELECT r.customer_id, {_of("r", "-")} FROM {_rollups_of_hot("")}
    ) AS found
    WHERE (%(own)s::text[] IS NULL OR customer_id = ANY(%(own)s))
      AND (%(all_but)s::text[] IS NULL OR NOT customer_id = ANY(%(all_but)s))
    GROUP BY customer_id HAVING sum(views) > 0 ORDER BY sum(views) DESC, customer_id LIMIT %(customers_max)s
"""  # noqa: S608 - SQL of ours
STARTUPS: Final = f"""{_WANTED}
    SELECT customer_id, array_agg(bucket), array_agg(count) FROM (
        SELECT customer_id, bucket, sum(count)::bigint AS count FROM (
            SELECT customer_id, bucket, count
            FROM wanted, unnest(startup_ms_buckets, startup_ms_counts) AS histogram (bucket, count)
            UNION ALL SELECT i.customer_id, i.bucket, i.count FROM {_STARTUPS_OF_HOT}
            UNION ALL SELECT r.customer_id, histogram.bucket, -histogram.count
            FROM {_rollups_of_hot("")}, unnest(r.startup_ms_buckets, r.startup_ms_counts) AS histogram (bucket, count)
        ) AS found
        WHERE customer_id = ANY(%(customers)s)
        GROUP BY customer_id, bucket HAVING sum(count) > 0
    ) AS counts GROUP BY customer_id
"""  # noqa: S608 - SQL of ours
_STARTUPS_COUNTED: Final = "coalesce((SELECT sum(one) FROM unnest(startup_ms_counts) AS one), 0)"
_BY_SOURCE: Final = """
    FROM serving.rollups
    WHERE grain = %(grain)s AND dimensions = 'source' AND start >= %(since)s AND members[1] IS NOT NULL
"""
#: The sums of each client, then its name, and whether its start-up times are in the customer's median.
SUMS_BY_SOURCE: Final = f"""
    WITH {_HOT}
    SELECT {_SUMS}, source, sum(startups) > 0 AS has_startups FROM (
        SELECT customer_id, members[1] AS source, {_LISTED}, {_STARTUPS_COUNTED} AS startups {_BY_SOURCE}
        UNION ALL SELECT s.customer_id, s.source, {_of("s")}, coalesce((
            SELECT sum(i.count) FROM serving.histograms AS i
            WHERE i.metric = 'startup_ms' AND i.hour = s.start AND i.customer_id = s.customer_id AND i.source = s.source
        ), 0) FROM {_SUMS_OF_HOT}
        UNION ALL SELECT r.customer_id, r.members[1], {_of("r", "-")}, -{_STARTUPS_COUNTED} FROM {_rollups_of_hot("source")}
    ) AS found
    WHERE customer_id = ANY(%(customers)s) GROUP BY customer_id, source HAVING sum(views) > 0 ORDER BY source
"""  # noqa: S608 - SQL of ours
STARTUPS_BY_SOURCE: Final = f"""
    WITH {_HOT}
    SELECT customer_id, source, array_agg(bucket), array_agg(count) FROM (
        SELECT customer_id, source, bucket, sum(count)::bigint AS count FROM (
            SELECT customer_id, source, bucket, count
            FROM (SELECT customer_id, members[1] AS source, startup_ms_buckets, startup_ms_counts {_BY_SOURCE}) AS wanted,
                 unnest(startup_ms_buckets, startup_ms_counts) AS histogram (bucket, count)
            UNION ALL SELECT i.customer_id, i.source, i.bucket, i.count FROM {_STARTUPS_OF_HOT}
            UNION ALL SELECT r.customer_id, r.members[1], histogram.bucket, -histogram.count
            FROM {_rollups_of_hot("source")},
                 unnest(r.startup_ms_buckets, r.startup_ms_counts) AS histogram (bucket, count)
        ) AS found
        WHERE customer_id = ANY(%(customers)s)
        GROUP BY customer_id, source, bucket HAVING sum(count) > 0
    ) AS counts GROUP BY customer_id, source
"""  # noqa: S608 - SQL of ours
#: Of each customer the dimensions of which it has more values than rollups keep apart, of the same days.
GATHERED: Final = """
    SELECT customer_id, array_agg(DISTINCT dimensions ORDER BY dimensions)
    FROM serving.rollups
    WHERE grain = 'day' AND members[1] = '(other)' AND start >= %(since_day)s AND customer_id = ANY(%(customers)s)
    GROUP BY customer_id
"""
#: The start of the newest hour that has views, and when the figures were last brought up to date.
NEWEST: Final = """
    SELECT greatest(
        (SELECT max(hour) FROM serving.rollups_hourly),
        (SELECT to_timestamp(max(h.hour) * 3600) FROM serving.hot_slices AS h, serving.coverage AS c WHERE c.is_whole)
    ), (SELECT published_at FROM serving.published)
"""
