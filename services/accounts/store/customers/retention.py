"""For how many days a customer's data is kept, by kind, where that is fewer than the installation keeps it."""

from collections.abc import Mapping
from typing import Final

import psycopg

from services.accounts.store import audit
from services.accounts.store.audit import Actor

_READ: Final = "SELECT kind, days FROM accounts.retention WHERE customer_id = %s"
_SET: Final = """
    INSERT INTO accounts.retention (customer_id, kind, days) VALUES (%s, %s, %s)
    ON CONFLICT (customer_id, kind) DO UPDATE SET days = excluded.days
"""
_UNSET: Final = "DELETE FROM accounts.retention WHERE customer_id = %s AND kind = %s"


async def of_customer(connection: psycopg.AsyncConnection, customer_id: str) -> dict[str, int]:
    """Days by kind; kinds that the customer has no number of are absent."""
    rows = await (await connection.execute(_READ, (customer_id,))).fetchall()
    return {str(kind): int(days) for kind, days in rows}


async def change(
    connection: psycopg.AsyncConnection, customer_id: str, changes: Mapping[str, int | None], actor: Actor
) -> dict[str, int]:
    """Sets days by kind (None: as the installation); returns what holds then."""
    for kind, days in changes.items():
        if days is None:
            await connection.execute(_UNSET, (customer_id, kind))
        else:
            await connection.execute(_SET, (customer_id, kind, days))
    await audit.add(connection, actor, "changed_retention", customer_id, details=changes)
    return await of_customer(connection, customer_id)
