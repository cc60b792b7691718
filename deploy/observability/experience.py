"""What viewers experience, for Grafana: the panels of one dashboard over the serving copy in Postgres, as SQL.

A slice is a customer's hour. Sums of hot rows answer for slices that changed lately, rollups for all others, as on the page: no
view counts twice. This dashboard shows all customers, and no viewer's id; docs/observability.md has its user's rights.
"""

from typing import Final, NamedTuple

from shared.statistics.histogram import BUCKET_OF_ZERO, GAMMA

#: The text of the customer's choice, as `'acme', 'globex'`.
_CUSTOMERS: Final = "${customer:sqlstring}"
CUSTOMERS: Final = (
    "SELECT customer_id FROM serving.rollups WHERE grain = 'hour' AND dimensions = '' GROUP BY 1"
    " UNION SELECT customer_id FROM serving.hot_slices ORDER BY 1"
)
_FROM: Final = "$__timeFrom()::timestamptz"
_TO: Final = "$__timeTo()::timestamptz"
#: Hours of the range: the first and the last may be cut by it, and are whole here.
_WITHIN: Final = f"{{at}} > {_FROM} - interval '1 hour' AND {{at}} < {_TO}"
_MEASURES: Final = (
    *("views", "started", "startup_failures", "playback_failures", "exits_before_start"),
    *("watch_ms", "rebuffer_ms", "bitrate_integral", "bitrate_time_ms"),
)


def _of(table: str) -> str:
    return ", ".join(f"{table}.{name}" for name in _MEASURES)


_HOT: Final = f"""
hot AS (
    SELECT h.hour, h.customer_id FROM serving.hot_slices AS h, serving.coverage AS c
    WHERE c.is_whole AND h.customer_id IN ({_CUSTOMERS}) AND {_WITHIN.format(at="to_timestamp(h.hour * 3600)")}
)"""  # noqa: S608 - SQL of ours
_COLD: Final = f"""
    r.grain = 'hour' AND r.customer_id IN ({_CUSTOMERS}) AND {_WITHIN.format(at="r.start")}
    AND NOT EXISTS (
        SELECT FROM hot WHERE hot.customer_id = r.customer_id AND hot.hour = extract(epoch FROM r.start)::bigint / 3600
    )"""  # noqa: S608 - SQL of ours
#: The sums of each customer's hours.
_SUMS: Final = f"""WITH {_HOT}, hours AS (
    SELECT r.start AS time, r.customer_id, {_of("r")} FROM serving.rollups AS r WHERE r.dimensions = '' AND {_COLD}
    UNION ALL
    SELECT to_timestamp(s.start * 3600), s.customer_id, {_of("s")}
    FROM hot JOIN serving.sums AS s ON s.grain = 'hour' AND s.start = hot.hour AND s.customer_id = hot.customer_id
)"""  # noqa: S608 - SQL of ours
_STARTUPS: Final = f"""WITH {_HOT}, counted AS (
    SELECT r.start AS time, h.bucket, h.count
    FROM serving.rollups AS r, unnest(r.startup_ms_buckets, r.startup_ms_counts) AS h (bucket, count)
    WHERE r.dimensions = '' AND {_COLD}
    UNION ALL
    SELECT to_timestamp(i.hour * 3600), i.bucket, i.count
    FROM hot JOIN serving.histograms AS i ON i.hour = hot.hour AND i.customer_id = hot.customer_id
    WHERE i.metric = 'startup_ms'
), ranked AS (
    SELECT time, bucket, sum(sum(count)) OVER (PARTITION BY time ORDER BY bucket) AS seen,
           sum(sum(count)) OVER (PARTITION BY time) AS total
    FROM counted GROUP BY time, bucket
)"""  # noqa: S608 - SQL of ours
_VALUE: Final = f"CASE WHEN bucket = {BUCKET_OF_ZERO} THEN 0 ELSE 2 * power({GAMMA}, bucket + 1) / (1 + {GAMMA}) END"


def _ratio(above: str, below: str) -> str:
    return f"sum({above})::float8 / nullif(sum({below}), 0)::float8"


_TABLE: Final = (
    f"sum(views)::float8 AS views, {_ratio('rebuffer_ms', 'watch_ms')} AS rebuffer_fraction,"
    f" {_ratio('playback_failures', 'views')} AS playback_failure_fraction,"
    f" {_ratio('exits_before_start', 'views')} AS exit_before_start_fraction"
)


def _over_time(figure: str) -> str:
    return f"{_SUMS}\nSELECT time, customer_id AS metric, {figure} AS value FROM hours GROUP BY 1, 2 ORDER BY 1"


def _startup(share: float) -> str:
    """The smallest value of whose rank is at least this share (nearest rank, within 1 %)."""
    return f"min({_VALUE}) FILTER (WHERE seen >= greatest(1, ceil({share} * total)))"


class SqlPanel(NamedTuple):
    """One panel: its title, unit (a name of Grafana's), its statement, and its form."""

    title: str
    unit: str
    sql: str
    kind: str = "lines"
    meaning: str = ""


PANELS: Final = (
    SqlPanel(
        "Viewers",
        "short",
        f"""SELECT at AS time, customer_id AS metric, viewers AS value FROM serving.live_by_minute
WHERE dimension = '' AND customer_id IN ({_CUSTOMERS}) AND $__timeFilter(at) ORDER BY 1""",  # noqa: S608 - SQL of ours
    ),
    SqlPanel("Views finished", "short", _over_time("sum(views)::float8")),
    SqlPanel(
        "Rebuffer percentage",
        "percentunit",
        _over_time(_ratio("rebuffer_ms", "watch_ms")),
        "lines",
        "time spent waiting for data, of the time that was watched",
    ),
    SqlPanel("Playback failures", "percentunit", _over_time(_ratio("playback_failures", "views"))),
    SqlPanel("Exits before start", "percentunit", _over_time(_ratio("exits_before_start", "views"))),
    SqlPanel("Average bitrate", "bps", _over_time(_ratio("bitrate_integral", "bitrate_time_ms"))),
    SqlPanel(
        "Start-up time",
        "ms",
        f"{_STARTUPS}\nSELECT time, {_startup(0.5)} AS median, {_startup(0.95)} AS p95 FROM ranked GROUP BY 1 ORDER BY 1",
        "lines",
        "within 1 %",
    ),
    SqlPanel(
        "By CDN, over the range",
        "short",
        f"""WITH {_HOT}, views AS (
    SELECT r.members[1] AS cdn, {_of("r")} FROM serving.rollups AS r WHERE r.dimensions = 'cdn' AND {_COLD}
    UNION ALL
    SELECT left(v.cdn, 100), 1, NULL, v.startup_failed::int, v.playback_failed::int, v.ebvs::int,
           v.watch_ms, v.rebuffer_ms, v.bitrate_integral, v.bitrate_time_ms
    FROM hot JOIN serving.views AS v ON v.hour = hot.hour AND v.customer_id = hot.customer_id AND NOT v.deleted
)
SELECT coalesce(cdn, '(unknown)') AS cdn, {_TABLE} FROM views GROUP BY 1 ORDER BY 2 DESC""",  # noqa: S608 - SQL of ours
        "table",
    ),
    SqlPanel(
        "By customer, over the range",
        "short",
        f"{_SUMS}\nSELECT customer_id AS customer, {_TABLE} FROM hours GROUP BY 1 ORDER BY 2 DESC",
        "table",
    ),
)
