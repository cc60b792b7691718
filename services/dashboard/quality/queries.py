"""The dashboard's questions to Postgres: only sums of hours in schema `serving`. `statements` has the SQL."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

import psycopg
from psycopg.rows import tuple_row

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.quality import statements as sql
from services.dashboard.quality.figures import RollupSum
from services.dashboard.quality.statements import LEVEL_MAX
from services.rim.database.pool import Postgres

CUSTOMERS_MAX: Final = 200

#: Clients are read by hour up to so many hours, and by whole day beyond.
_HOURS_BY_SOURCE_MAX: Final = 48


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
    #: customer → the clients whose start-up times are in `startups`; by hour or by whole day, as `by_source`
    sources: dict[str, list[str]] = field(default_factory=dict)
    #: customer → client → its part of `sums` and `startups`, where `sources` has more than one; of whole days if the hours are many
    by_source: dict[str, dict[str, tuple[RollupSum, dict[int, int]]]] = field(default_factory=dict)
    #: Customers with fewer views than those of `sums`, which holds `CUSTOMERS_MAX` at most.
    customers_omitted: int = 0
    #: customer → the dimensions of which values are added up under "(other)"
    gathered: dict[str, list[str]] = field(default_factory=dict)


class Serving(Protocol):
    """Where the quality table comes from."""

    async def rollups_since(self, since: datetime, scope: CustomerScope) -> Rollups:
        """The sums of these customers' hours from that of `since` on; raises `PostgresAway`, `NotPublished` or `QueryRefused`."""
        ...


class PostgresServing:
    """`Serving` on the serving database."""

    def __init__(self, dsn: str, *, connections_max: int, seconds_max: float) -> None:
        self.postgres: Final = Postgres(
            dsn, service="dashboard", connections_max=connections_max, seconds_max=seconds_max
        )

    async def open(self) -> None:
        """Starts the pool; does not wait for Postgres."""
        await self.postgres.open()

    async def close(self) -> None:
        """Closes all connections."""
        await self.postgres.close()

    async def rollups_since(self, since: datetime, scope: CustomerScope) -> Rollups:
        """See `Serving`. One snapshot for all statements."""
        return await self.postgres.ask(partial(_read, since=since, scope=scope))


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


async def _read(connection: psycopg.AsyncConnection, since: datetime, scope: CustomerScope) -> Rollups:
    since_hour = int(since.timestamp()) // 3600
    listed, first = blocks_since(since_hour)
    wanted: dict[str, object] = {
        "levels": [one[0] for one in listed],
        "blocks": [one[1] for one in listed],
        "first": first,
        "since_hour": since_hour,
    }
    since_day = since.replace(hour=0, minute=0, second=0, microsecond=0)
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(sql.NEWEST)
        newest_hour, published_at = await cursor.fetchone() or (None, None)
        own = list(scope.own) if scope.all_but is None else None
        all_but = list(scope.all_but) if scope.all_but else None
        seen = {"customers_max": CUSTOMERS_MAX, "own": own, "all_but": all_but}
        await cursor.execute(sql.ROLLUPS, {**wanted, **seen})
        rows = await cursor.fetchall()
        sums = [RollupSum(*row[:-1]) for row in rows]
        customers: int = rows[0][-1] if rows else 0
        customer_ids = [customer.customer_id for customer in sums]
        await cursor.execute(sql.STARTUPS, {**wanted, "customers": customer_ids})
        # A row a customer: thousands of small rows would cost the page's process more than Postgres.
        startups = {
            customer_id: dict(zip(buckets, counts, strict=True))
            for customer_id, buckets, counts in await cursor.fetchall()
        }
        await cursor.execute(sql.GATHERED, {"since_day": since_day, "customers": customer_ids})
        gathered: dict[str, list[str]] = dict(await cursor.fetchall())
    is_short = newest_hour is not None and newest_hour - since < timedelta(hours=_HOURS_BY_SOURCE_MAX)
    grain, start = ("hour", since) if is_short else ("day", since_day)
    of_sources = {"grain": grain, "since": start, "since_hour": int(start.timestamp()) // 3600}
    sources, by_source = await _read_by_source(connection, of_sources, customer_ids)
    return Rollups(sums, startups, newest_hour, published_at, sources, by_source, customers - len(sums), gathered)


async def _read_by_source(
    connection: psycopg.AsyncConnection, wanted: dict[str, object], customer_ids: list[str]
) -> tuple[dict[str, list[str]], dict[str, dict[str, tuple[RollupSum, dict[int, int]]]]]:
    """`sources` and `by_source` of `Rollups`."""
    sources: dict[str, list[str]] = {}
    parts: dict[str, dict[str, tuple[RollupSum, dict[int, int]]]] = {}
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(sql.SUMS_BY_SOURCE, {**wanted, "customers": customer_ids})
        for customer_id, *sums, source, has_startups in await cursor.fetchall():
            parts.setdefault(customer_id, {})[source] = RollupSum(customer_id, *sums), {}
            if has_startups:
                sources.setdefault(customer_id, []).append(source)
        by_source = {customer_id: parts[customer_id] for customer_id, names in sources.items() if len(names) > 1}
        if by_source:
            await cursor.execute(sql.STARTUPS_BY_SOURCE, {**wanted, "customers": list(by_source)})
            for customer_id, source, buckets, counts in await cursor.fetchall():
                by_source[customer_id][source][1].update(zip(buckets, counts, strict=True))
    return sources, by_source
