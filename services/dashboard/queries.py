"""The dashboard's queries to Postgres: only sums of hours in schema `serving`, by blocks of hours."""

import asyncio
import os
import socket
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

import psycopg
import psycopg_pool
import structlog
from psycopg.rows import tuple_row

from services.dashboard.quality import RollupSum
from services.rim.database.postgres import log_pool_errors_by_kind

log = structlog.get_logger(__name__)

CUSTOMERS_MAX: Final = 200

#: Of the longest blocks of table `serving.blocks`: of 2^13 hours.
LEVEL_MAX: Final = 13

_WANTED: Final = f"""
    WITH wanted AS (
        SELECT b.* FROM unnest(%(levels)s::smallint[], %(blocks)s::bigint[]) AS one (level, block)
        JOIN serving.blocks AS b ON b.level = one.level AND b.block = one.block
        UNION ALL
        SELECT b.* FROM serving.blocks AS b WHERE b.level = {LEVEL_MAX} AND b.block >= %(first)s
    )
"""  # noqa: S608 - a number of ours
#: As the fields of `RollupSum`.
_SUMS: Final = """
    customer_id, sum(views)::bigint AS views, sum(started)::bigint AS started,
    sum(startup_failures)::bigint AS startup_failures, sum(playback_failures)::bigint AS playback_failures,
    sum(exits_before_start)::bigint AS exits_before_start, sum(watch_ms)::float8 AS watch_ms,
    sum(playing_ms)::float8 AS playing_ms, sum(rebuffer_ms)::float8 AS rebuffer_ms,
    sum(bitrate_integral)::float8 AS bitrate_integral, sum(bitrate_time_ms)::float8 AS bitrate_time_ms
"""
#: Then how many customers there are.
_ROLLUPS: Final = f"""{_WANTED}
    SELECT {_SUMS}, count(*) OVER () AS customers
    FROM wanted GROUP BY customer_id ORDER BY sum(views) DESC, customer_id LIMIT %(customers_max)s
"""  # noqa: S608 - SQL of ours
_STARTUPS: Final = f"""{_WANTED}
    SELECT customer_id, array_agg(bucket), array_agg(count) FROM (
        SELECT customer_id, bucket, sum(count)::bigint AS count
        FROM wanted, unnest(startup_ms_buckets, startup_ms_counts) AS histogram (bucket, count)
        WHERE customer_id = ANY(%(customers)s)
        GROUP BY customer_id, bucket
    ) AS counts GROUP BY customer_id
"""  # noqa: S608 - SQL of ours
#: Of each customer the clients whose start-up times are in its median: of the whole days that the hours lie in.
_SOURCES: Final = """
    SELECT customer_id, array_agg(DISTINCT members[1] ORDER BY members[1])
    FROM serving.rollups
    WHERE grain = 'day' AND dimensions = 'source' AND start >= %(since_day)s AND customer_id = ANY(%(customers)s)
      AND cardinality(startup_ms_buckets) > 0 AND members[1] IS NOT NULL
    GROUP BY customer_id
"""
_OF_SOURCES: Final = """
    FROM serving.rollups
    WHERE grain = %(grain)s AND dimensions = 'source' AND start >= %(since)s AND customer_id = ANY(%(customers)s)
      AND members[1] IS NOT NULL
"""
#: The sums of each client, then its name.
_BY_SOURCE: Final = f"""
    SELECT {_SUMS}, members[1] AS source {_OF_SOURCES} GROUP BY customer_id, members[1]
"""
_STARTUPS_BY_SOURCE: Final = f"""
    SELECT customer_id, source, array_agg(bucket), array_agg(count) FROM (
        SELECT customer_id, source, bucket, sum(count)::bigint AS count
        FROM (SELECT customer_id, members[1] AS source, startup_ms_buckets, startup_ms_counts {_OF_SOURCES}) AS wanted,
             unnest(startup_ms_buckets, startup_ms_counts) AS histogram (bucket, count)
        GROUP BY customer_id, source, bucket
    ) AS counts GROUP BY customer_id, source
"""  # noqa: S608 - SQL of ours
#: What clients are split by over more hours are whole days.
_HOURS_BY_SOURCE_MAX: Final = 48
#: Of each customer the dimensions of which it has more values than rollups keep apart, of the same days.
_GATHERED: Final = """
    SELECT customer_id, array_agg(DISTINCT dimensions ORDER BY dimensions)
    FROM serving.rollups
    WHERE grain = 'day' AND members[1] = '(other)' AND start >= %(since_day)s AND customer_id = ANY(%(customers)s)
    GROUP BY customer_id
"""
_NEWEST: Final = "SELECT (SELECT max(hour) FROM serving.rollups_hourly), (SELECT published_at FROM serving.published)"


class PostgresAway(RuntimeError):
    """Postgres did not answer, or not in time; ask again later."""


class QueryRefused(RuntimeError):
    """Postgres answers and refuses the query: its tables are not those this version knows."""


class NotPublished(RuntimeError):
    """Postgres answers, but the serving tables are not there: no finalizer has published yet."""


@dataclass(frozen=True)
class Rollups:
    """Sums of one moment: they agree with each other."""

    sums: list[RollupSum]
    #: customer → histogram bucket → count
    startups: dict[str, dict[int, int]]
    #: Start of the newest hour that is published at all.
    newest_hour: datetime | None
    #: When the finalizer last published anything, of any hour.
    published_at: datetime | None
    #: customer → the clients whose start-up times are in `startups`
    sources: dict[str, list[str]] = field(default_factory=dict)
    #: customer → client → its part of `sums` and `startups`, where there is more than one; of whole days where they are many
    by_source: dict[str, dict[str, tuple[RollupSum, dict[int, int]]]] = field(default_factory=dict)
    #: Customers with fewer views than those of `sums`, which holds `CUSTOMERS_MAX` at most.
    customers_omitted: int = 0
    #: customer → the dimensions of which values are added up under "(other)"
    gathered: dict[str, list[str]] = field(default_factory=dict)


class Serving(Protocol):
    """Where the quality table comes from."""

    async def rollups_since(self, since: datetime) -> Rollups:
        """The sums of all hours from that of `since` on; raises `PostgresAway`, `NotPublished` or `QueryRefused`."""
        ...


class _Asking:
    """One question on its way: the connection that it holds, so that a deadline can end it."""

    def __init__(self) -> None:
        self.connection: psycopg.AsyncConnection | None = None
        self.is_abandoned = False

    def abandon(self) -> None:
        """Ends the question without the server's help, which a stopped server cannot give. The pool discards the connection."""
        self.is_abandoned = True
        if self.connection is None or self.connection.closed:
            return
        with socket.socket(fileno=os.dup(self.connection.fileno())) as same:
            # The waiting statement reads the end of the stream, and fails as with any server that goes away.
            same.shutdown(socket.SHUT_RDWR)


class PostgresServing:
    """`Serving` on a pool of connections, read-only.

    A question is answered within `seconds_max`, also where Postgres accepts connections and is stopped: the server's own
    statement timeout does not run then.
    """

    def __init__(self, dsn: str, *, connections_max: int, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._connections_max = connections_max
        log_pool_errors_by_kind()
        self._pool = psycopg_pool.AsyncConnectionPool(
            dsn,
            min_size=0,
            max_size=connections_max,
            timeout=seconds_max,
            reconnect_timeout=seconds_max,
            max_waiting=10 * connections_max,
            open=False,
            configure=_configure,
            kwargs={
                "application_name": "playhead-dashboard",
                "connect_timeout": max(2, round(seconds_max)),
                "options": f"-c statement_timeout={round(seconds_max * 1_000)} -c default_transaction_read_only=on",
            },
        )

    async def open(self) -> None:
        """Starts the pool; does not wait for Postgres."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Closes all connections."""
        await self._pool.close(timeout=self._seconds_max)

    async def rollups_since(self, since: datetime) -> Rollups:
        """See `Serving`. One snapshot for all statements."""
        asking = _Asking()
        task = asyncio.create_task(self._asked(asking, since))
        try:
            done, _ = await asyncio.wait({task}, timeout=self._seconds_max)
        finally:
            # The deadline has passed, or the page that asked has gone.
            if not task.done():
                asking.abandon()
                task.add_done_callback(_forget)
        if not done:
            log.warning("postgres_away", kind="deadline")
            raise PostgresAway("deadline")
        return task.result()

    async def _asked(self, asking: _Asking, since: datetime) -> Rollups:
        try:
            return await self._read_on_a_live_connection(asking, since)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise NotPublished(str(error).partition("\n")[0]) from error
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout, psycopg_pool.TooManyRequests) as error:
            # The text may name hosts and users, so it is logged by kind alone.
            log.warning("postgres_away", kind=type(error).__name__)
            raise PostgresAway(type(error).__name__) from error
        except psycopg.Error as error:
            log.error("query_refused", kind=type(error).__name__, sqlstate=error.sqlstate)
            raise QueryRefused(type(error).__name__) from error

    async def _read_on_a_live_connection(self, asking: _Asking, since: datetime) -> Rollups:
        """Connections that a server's restart has broken are tried once each; each is discarded as it fails."""
        for _ in range(self._connections_max):
            try:
                async with self._pool.connection() as asking.connection:
                    return await _read(asking.connection, since)
            except psycopg.OperationalError:
                if asking.connection is None or not asking.connection.broken or asking.is_abandoned:
                    raise
                asking.connection = None
        async with self._pool.connection() as asking.connection:
            return await _read(asking.connection, since)


def _forget(task: asyncio.Task[Rollups]) -> None:
    """The outcome is not needed any more; its error is that of the abandoned connection."""
    if not task.cancelled():
        task.exception()


def blocks_since(hour: int) -> tuple[list[tuple[int, int]], int]:
    """The blocks that together are all hours from this one on (since 1970).

    As (level, block): block b of level n is the 2^n hours from b * 2^n on. At most one of each level but the highest, of which
    the second part names the first that is whole.
    """
    found = []
    for level in range(LEVEL_MAX):
        if hour >> level & 1:
            found.append((level, hour >> level))
            hour += 1 << level
    return found, hour >> LEVEL_MAX


async def _configure(connection: psycopg.AsyncConnection) -> None:
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)


async def _read(connection: psycopg.AsyncConnection, since: datetime) -> Rollups:
    listed, first = blocks_since(int(since.timestamp()) // 3600)
    wanted = {"levels": [one[0] for one in listed], "blocks": [one[1] for one in listed], "first": first}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_ROLLUPS, {**wanted, "customers_max": CUSTOMERS_MAX})
        rows = await cursor.fetchall()
    sums = [RollupSum(*row[:-1]) for row in rows]
    customers: int = rows[0][-1] if rows else 0
    startups: dict[str, dict[int, int]] = {}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_STARTUPS, {**wanted, "customers": [customer.customer_id for customer in sums]})
        # A row a customer: thousands of small rows would cost the page's process more than Postgres.
        for customer_id, buckets, counts in await cursor.fetchall():
            startups[customer_id] = dict(zip(buckets, counts, strict=True))
        since_day = since.replace(hour=0, minute=0, second=0, microsecond=0)
        customer_ids = [customer.customer_id for customer in sums]
        await cursor.execute(_SOURCES, {"since_day": since_day, "customers": customer_ids})
        sources: dict[str, list[str]] = dict(await cursor.fetchall())
        await cursor.execute(_GATHERED, {"since_day": since_day, "customers": customer_ids})
        gathered: dict[str, list[str]] = dict(await cursor.fetchall())
        await cursor.execute(_NEWEST)
        newest_hour, published_at = await cursor.fetchone() or (None, None)
    mixed = [customer_id for customer_id, names in sources.items() if len(names) > 1]
    is_short = newest_hour is not None and newest_hour - since < timedelta(hours=_HOURS_BY_SOURCE_MAX)
    grain, start = ("hour", since) if is_short else ("day", since_day)
    by_source = await _read_by_source(connection, {"grain": grain, "since": start, "customers": mixed}) if mixed else {}
    omitted = customers - len(sums)
    return Rollups(sums, startups, newest_hour, published_at, sources, by_source, omitted, gathered)


async def _read_by_source(
    connection: psycopg.AsyncConnection, wanted: dict[str, object]
) -> dict[str, dict[str, tuple[RollupSum, dict[int, int]]]]:
    found: dict[str, dict[str, tuple[RollupSum, dict[int, int]]]] = {}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_BY_SOURCE, wanted)
        for *sums, source in await cursor.fetchall():
            found.setdefault(sums[0], {})[source] = RollupSum(*sums), {}
        await cursor.execute(_STARTUPS_BY_SOURCE, wanted)
        for customer_id, source, buckets, counts in await cursor.fetchall():
            found[customer_id][source][1].update(zip(buckets, counts, strict=True))
    return found
