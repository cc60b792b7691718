"""Write keys of customers, in the customers' database: made, changed, replaced, revoked. Collectors read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.rim.database import locks
from shared.write_keys import CUSTOMERS_MAX, ENDED_AT, IN_FORCE, KEY_PLACES_MAX, PLACES

#: Of one customer, those that are revoked or expired not counted.
KEYS_MAX: Final = 100
#: Of one customer, those that ended last. They are never all forgotten: the id of a customer that has keys is no key.
ENDED_KEYS_MAX: Final = 100
#: Of all customers of an organisation together: no organisation takes the places of the others.
ORGANISATION_PLACES_MAX: Final = KEY_PLACES_MAX // 10

_COLUMNS: Final = (
    "key, customer_id, name, origins, beacons_per_second, bytes_per_second, made_by, created_at, expires_at, revoked_at"
)
_LIST: Final = f"SELECT {_COLUMNS} FROM collector.keys WHERE customer_id = %s AND key > %s ORDER BY key LIMIT %s"  # noqa: S608
_FIND: Final = f"SELECT {_COLUMNS} FROM collector.keys WHERE key = %s FOR UPDATE"  # noqa: S608 - SQL of ours
_NEW_CUSTOMER: Final = "INSERT INTO collector.customers (customer_id) VALUES (%s) ON CONFLICT DO NOTHING"
#: A customer without keys has its id as one: it stays in force until it is revoked as any other.
_KEEP_ID: Final = """
    INSERT INTO collector.keys (key, customer_id, name, made_by)
    SELECT customer_id, customer_id, 'The customer''s id', %s FROM collector.customers AS c
    WHERE customer_id = %s AND keys = '{}' AND NOT EXISTS (SELECT FROM collector.keys AS k WHERE k.customer_id = c.customer_id)
    ON CONFLICT DO NOTHING
"""
_ADD: Final = f"""
    INSERT INTO collector.keys (key, customer_id, name, origins, beacons_per_second, bytes_per_second, made_by)
    SELECT %s, %s, %s, %s, %s, %s, %s
    WHERE (SELECT count(*) FROM collector.keys WHERE customer_id = %s AND {IN_FORCE}) < {KEYS_MAX} RETURNING {_COLUMNS}
"""  # noqa: S608 - SQL of ours
#: Who makes keys waits for others: two who count at a time would both take the last place.
_LOCK: Final = f"SELECT pg_advisory_xact_lock({locks.KEYS})"
_HAS_ROOM: Final = f"""
    SELECT (SELECT count(*) FROM collector.customers) <= %(customers_max)s AND coalesce(sum({PLACES}), 0) <= %(places_max)s
        AND coalesce(sum({PLACES}) FILTER (WHERE customer_id = ANY(%(beside)s)), 0) <= %(organisation_max)s
    FROM collector.keys WHERE {IN_FORCE}
"""  # noqa: S608 - SQL of ours
_FORGET: Final = f"""
    DELETE FROM collector.keys WHERE key IN (
        SELECT key FROM collector.keys WHERE customer_id = %s AND NOT {IN_FORCE} ORDER BY {ENDED_AT} DESC, key OFFSET %s
    )
"""  # noqa: S608 - SQL of ours
_CHANGE: Final = f"""
    UPDATE collector.keys SET name = %s, origins = %s, beacons_per_second = %s, bytes_per_second = %s WHERE key = %s
    RETURNING {_COLUMNS}
"""  # noqa: S608 - SQL of ours
_EXPIRE: Final = "UPDATE collector.keys SET expires_at = least(expires_at, now() + %s) WHERE key = %s"
_REVOKE: Final = "UPDATE collector.keys SET revoked_at = now() WHERE key = %s AND revoked_at IS NULL"


class KeyUnknown(LookupError):
    """There is no such key for the asker."""


class TooManyKeys(ValueError):
    """The customer has as many keys as it may."""


class NoPlaceForKey(ValueError):
    """The organisation or the installation has as many keys and origins of keys as it may, or as many customers."""


@dataclass(frozen=True)
class KeyRow:
    """A write key. Rates are of one collector process; None: what the customer has."""

    key: str
    customer_id: str
    name: str
    origins: list[str]
    beacons_per_second: float | None
    bytes_per_second: float | None
    made_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True)
class KeyTerms:
    """The purpose of a key and its limits."""

    name: str
    origins: Sequence[str] = ()
    beacons_per_second: float | None = None
    bytes_per_second: float | None = None


async def keys_of(connection: psycopg.AsyncConnection, customer_id: str, *, after: str, rows_max: int) -> list[KeyRow]:
    """A customer's keys by their text, those behind `after`."""
    async with connection.cursor(row_factory=class_row(KeyRow)) as cursor:
        await cursor.execute(_LIST, (customer_id, after, rows_max))
        return await cursor.fetchall()


async def find_key(connection: psycopg.AsyncConnection, key: str) -> KeyRow:
    """One key, locked. Raises `KeyUnknown`."""
    async with connection.cursor(row_factory=class_row(KeyRow)) as cursor:
        found = await (await cursor.execute(_FIND, (key,))).fetchone()
    if found is None:
        raise KeyUnknown
    return found


async def add_key(
    connection: psycopg.AsyncConnection,
    key: str,
    customer_id: str,
    terms: KeyTerms,
    made_by: str,
    *,
    beside: Sequence[str],
) -> KeyRow:
    """A new key; its customer is listed for collectors, if it is not yet.

    `beside` are the customers of its organisation. Raises `TooManyKeys` or `NoPlaceForKey`.
    """
    await connection.execute(_LOCK)
    is_new = (await connection.execute(_NEW_CUSTOMER, (customer_id,))).rowcount == 1
    if not is_new:
        await connection.execute(_KEEP_ID, (made_by, customer_id))
    given = (
        *(key, customer_id, terms.name, list(terms.origins), terms.beacons_per_second, terms.bytes_per_second),
        *(made_by, customer_id),
    )
    async with connection.cursor(row_factory=class_row(KeyRow)) as cursor:
        made = await (await cursor.execute(_ADD, given)).fetchone()
    if made is None:
        raise TooManyKeys
    await _check_room(connection, beside)
    await connection.execute(_FORGET, (customer_id, ENDED_KEYS_MAX))
    return made


async def change_key(connection: psycopg.AsyncConnection, key: str, terms: KeyTerms, beside: Sequence[str]) -> KeyRow:
    """Gives a key other terms. Raises `KeyUnknown`, or `NoPlaceForKey` where it gets more origins."""
    await connection.execute(_LOCK)
    before = await find_key(connection, key)
    given = (terms.name, list(terms.origins), terms.beacons_per_second, terms.bytes_per_second, key)
    async with connection.cursor(row_factory=class_row(KeyRow)) as cursor:
        changed = await (await cursor.execute(_CHANGE, given)).fetchone()
    assert changed is not None
    if len(changed.origins) > len(before.origins):
        await _check_room(connection, beside)
    return changed


async def replace_key(
    connection: psycopg.AsyncConnection,
    key: str,
    new_key: str,
    overlap: timedelta,
    made_by: str,
    *,
    beside: Sequence[str],
) -> KeyRow:
    """A new key with the terms of this one, which ends after `overlap`. Raises `KeyUnknown` or as `add_key`."""
    await connection.execute(_LOCK)
    old = await find_key(connection, key)
    if old.revoked_at is not None:
        raise KeyUnknown
    terms = KeyTerms(old.name, old.origins, old.beacons_per_second, old.bytes_per_second)
    made = await add_key(connection, new_key, old.customer_id, terms, made_by, beside=beside)
    await connection.execute(_EXPIRE, (overlap, key))
    return made


async def revoke_key(connection: psycopg.AsyncConnection, key: str) -> None:
    """Ends a key. Raises `KeyUnknown`."""
    if (await connection.execute(_REVOKE, (key,))).rowcount != 1:
        raise KeyUnknown


async def _check_room(connection: psycopg.AsyncConnection, beside: Sequence[str]) -> None:
    given = {
        "customers_max": CUSTOMERS_MAX,
        "places_max": KEY_PLACES_MAX,
        "organisation_max": ORGANISATION_PLACES_MAX,
        "beside": list(beside),
    }
    if await (await connection.execute(_HAS_ROOM, given)).fetchone() != (True,):
        raise NoPlaceForKey
