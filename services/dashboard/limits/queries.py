"""The limits of one customer, and their recent refusals, as collectors and finalizer write them to Postgres."""

from functools import partial
from typing import Annotated, Any, Final, Protocol

import msgspec
import psycopg
from psycopg.rows import dict_row

from services.rim.database.pool import NotPublished, Postgres

#: The rates that a collector holds a customer to, in the order of the page; docs/collector.md has their meaning.
RATES: Final = (
    "beacons_per_second",
    "new_views_per_second",
    "spans_per_second",
    "calls_per_second",
    "recordings_per_minute",
    "bytes_per_second",
    "bytes_per_day",
    "cpu_ms_per_second",
)
MEMBERS: Final = "members_max"

_OWN: Final = "SELECT * FROM limits.customers WHERE customer_id = %(customer)s"
_DEFAULTS: Final = "SELECT name, value FROM limits.defaults"
_REFUSED: Final = """
    SELECT name, sum(requests)::bigint AS requests, sum(amount)::float8 AS amount,
        (extract(epoch FROM max(last_at)) * 1000)::bigint AS last_ms
    FROM limits.refused WHERE customer_id = %(customer)s AND hour > now() - interval '25 hours' GROUP BY name
"""
#: The bucket that all collectors fill drains by the limit of a day.
_STORED: Final = """
    SELECT greatest(0, bytes - bytes_per_day / 86400 * greatest(0, extract(epoch FROM now() - changed_at)::float8)) AS bytes
    FROM limits.stored WHERE customer_id = %(customer)s
"""
_COLLECTORS: Final = "SELECT count(*) AS count FROM limits.collectors WHERE reported_at > now() - interval '1 minute'"
_GATHERED: Final = """
    SELECT dimensions, sum(views)::bigint AS views FROM serving.rollups
    WHERE grain = 'day' AND members[1] = '(other)' AND customer_id = %(customer)s
      AND start >= date_trunc('day', now(), 'UTC') - interval '1 day'
    GROUP BY dimensions ORDER BY dimensions
"""


class Limit(msgspec.Struct, frozen=True):
    """A limit of a customer, and what it refused in the last 24 hours."""

    name: str
    #: In force; None without a limit, or where no service has said its default yet.
    value: float | None
    #: False: the default.
    is_own: bool
    refused_requests: int = 0
    #: What these requests held, in the limit's unit.
    refused_amount: float = 0.0
    last_refused_ms: int | None = None


class AskedLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters."""

    customer: Annotated[str, msgspec.Meta(description="a customer")]


class CustomerLimits(msgspec.Struct, frozen=True):
    """All limits of one customer."""

    #: When they were read, ms since 1970.
    now_ms: int
    customer_id: str
    limits: list[Limit]
    #: Of the day's bytes, those that all collectors have taken.
    stored_bytes: float
    #: Processes that reported within a minute: each holds the customer to its rates alone.
    collectors: int
    #: Dimensions → views under "(other)", today and yesterday; None where nothing has been published.
    gathered: dict[str, int] | None = None


class LimitsSource(Protocol):
    """Where the page of limits comes from."""

    async def of(self, customer_id: str, now_ms: int) -> CustomerLimits | None:
        """The limits of a customer; None if there is no such one. Raises `PostgresAway`, `NotPublished` or `QueryRefused`."""
        ...


class PostgresLimits:
    """`LimitsSource` on the customers' database and the serving one, which may be the same."""

    def __init__(self, customers: Postgres, serving: Postgres) -> None:
        self._customers = customers
        self._serving = serving

    async def of(self, customer_id: str, now_ms: int) -> CustomerLimits | None:
        """See `LimitsSource`."""
        found = await self._customers.ask(partial(_read, customer_id=customer_id))
        if found is None:
            return None
        try:
            gathered = await self._serving.ask(partial(_read_gathered, customer_id=customer_id))
        except NotPublished:
            gathered = None
        return CustomerLimits(now_ms, **found, gathered=gathered)


async def _read(connection: psycopg.AsyncConnection, customer_id: str) -> dict[str, Any] | None:
    wanted = {"customer": customer_id}
    async with connection.cursor(row_factory=dict_row) as cursor:
        own = await (await cursor.execute(_OWN, wanted)).fetchone()
        if own is None:
            return None
        defaults = {row["name"]: row["value"] for row in await (await cursor.execute(_DEFAULTS)).fetchall()}
        refused = {row.pop("name"): row for row in await (await cursor.execute(_REFUSED, wanted)).fetchall()}
        stored = await (await cursor.execute(_STORED, wanted)).fetchone()
        collectors = await (await cursor.execute(_COLLECTORS)).fetchone()
    limits = []
    for name in (*RATES, MEMBERS):
        value, lately = own[name], refused.get(name)
        counts = (lately["requests"], lately["amount"], lately["last_ms"]) if lately else ()
        limits.append(Limit(name, defaults.get(name) if value is None else value, value is not None, *counts))
    return {
        "customer_id": customer_id,
        "limits": limits,
        "stored_bytes": stored["bytes"] if stored else 0.0,
        "collectors": collectors["count"] if collectors else 0,
    }


async def _read_gathered(connection: psycopg.AsyncConnection, customer_id: str) -> dict[str, int]:
    cursor = await connection.execute(_GATHERED, {"customer": customer_id})
    return dict(await cursor.fetchall())
