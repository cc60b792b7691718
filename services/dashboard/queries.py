"""What the dashboard asks Postgres: sums of the hourly rollups in schema `serving`, and nothing else."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import psycopg
import psycopg_pool
import structlog
from psycopg.rows import tuple_row

from services.dashboard.quality import RollupSum
from services.rim.postgres import tell_pool_errors_by_kind

log = structlog.get_logger(__name__)

CUSTOMERS_MAX: Final = 200

#: Columns as the fields of `RollupSum`, then how many customers there are.
_ROLLUPS: Final = """
    SELECT customer_id, sum(views)::bigint AS views, sum(started)::bigint AS started,
           sum(startup_failures)::bigint AS startup_failures, sum(playback_failures)::bigint AS playback_failures,
           sum(exits_before_start)::bigint AS exits_before_start, sum(watch_ms)::float8 AS watch_ms,
           sum(rebuffer_ms)::float8 AS rebuffer_ms, sum(bitrate_integral)::float8 AS bitrate_integral,
           sum(bitrate_time_ms)::float8 AS bitrate_time_ms, count(*) OVER () AS customers
    FROM serving.rollups_hourly WHERE hour >= %(since)s
    GROUP BY customer_id ORDER BY sum(views) DESC, customer_id LIMIT %(customers_max)s
"""
_STARTUPS: Final = """
    SELECT customer_id, bucket, sum(count)::bigint
    FROM serving.histograms_hourly
    WHERE metric = 'startup_ms' AND hour >= %(since)s AND customer_id = ANY(%(customers)s)
    GROUP BY customer_id, bucket
"""
_NEWEST: Final = "SELECT (SELECT max(hour) FROM serving.rollups_hourly), (SELECT published_at FROM serving.published)"


class PostgresAway(RuntimeError):
    """Postgres did not answer, or not in time; ask again later."""


class QueryRefused(RuntimeError):
    """Postgres answers and will not do what is asked: its tables are not those this version knows."""


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
    #: Customers with fewer views than those of `sums`, which holds `CUSTOMERS_MAX` at most.
    customers_omitted: int = 0


class Serving(Protocol):
    """Where the quality table comes from."""

    async def rollups_since(self, since: datetime) -> Rollups:
        """The sums of all hours from `since` on; raises `PostgresAway`, `NotPublished` or `QueryRefused`."""
        ...


class PostgresServing:
    """`Serving` on a pool of connections, read-only; every statement has a deadline."""

    def __init__(self, dsn: str, *, connections_max: int, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        tell_pool_errors_by_kind()
        self._pool = psycopg_pool.AsyncConnectionPool(
            dsn,
            min_size=0,
            max_size=connections_max,
            timeout=seconds_max,
            reconnect_timeout=seconds_max,
            max_waiting=10 * connections_max,
            open=False,
            check=psycopg_pool.AsyncConnectionPool.check_connection,
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
        try:
            async with self._pool.connection() as connection:
                return await _read(connection, since)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise NotPublished(str(error).partition("\n")[0]) from error
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout, psycopg_pool.TooManyRequests) as error:
            # The text may name hosts and users, so it is logged by kind alone.
            log.warning("postgres_away", kind=type(error).__name__)
            raise PostgresAway(type(error).__name__) from error
        except psycopg.Error as error:
            log.error("query_refused", kind=type(error).__name__, sqlstate=error.sqlstate)
            raise QueryRefused(type(error).__name__) from error


async def _configure(connection: psycopg.AsyncConnection) -> None:
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)


async def _read(connection: psycopg.AsyncConnection, since: datetime) -> Rollups:
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_ROLLUPS, {"since": since, "customers_max": CUSTOMERS_MAX})
        rows = await cursor.fetchall()
    sums = [RollupSum(*row[:-1]) for row in rows]
    customers: int = rows[0][-1] if rows else 0
    startups: dict[str, dict[int, int]] = {}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_STARTUPS, {"since": since, "customers": [customer.customer_id for customer in sums]})
        async for customer_id, bucket, count in cursor:
            startups.setdefault(customer_id, {})[bucket] = count
        await cursor.execute(_NEWEST)
        newest_hour, published_at = await cursor.fetchone() or (None, None)
    return Rollups(sums, startups, newest_hour, published_at, customers_omitted=customers - len(sums))
