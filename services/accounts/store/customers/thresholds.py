"""Thresholds that an organisation chose, for all its customers or for one."""

from typing import Final

import psycopg

from services.accounts.core.thresholds import Threshold
from services.accounts.store import audit
from services.accounts.store.audit import Actor

_READ: Final = """
    SELECT customer_id, metric, good, bad, n FROM accounts.thresholds
    WHERE organisation_id = %s AND customer_id IN ('', %s)
"""
_SET: Final = """
    INSERT INTO accounts.thresholds (organisation_id, customer_id, metric, good, bad, n) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (organisation_id, customer_id, metric) DO UPDATE SET good = excluded.good, bad = excluded.bad, n = excluded.n
"""
_UNSET: Final = "DELETE FROM accounts.thresholds WHERE organisation_id = %s AND customer_id = %s AND metric = %s"


async def chosen(
    connection: psycopg.AsyncConnection, organisation_id: str, customer_id: str
) -> list[tuple[str, str, Threshold]]:
    """Customer (empty: all), metric and threshold of each that concerns this customer."""
    rows = await (await connection.execute(_READ, (organisation_id, customer_id))).fetchall()
    return [(customer, metric, Threshold(good, bad, n)) for customer, metric, good, bad, n in rows]


async def choose(
    connection: psycopg.AsyncConnection, customer_id: str, metric: str, threshold: Threshold | None, actor: Actor
) -> None:
    """Sets a threshold of the actor's organisation; None takes it away."""
    place = (actor.organisation_id, customer_id, metric)
    if threshold is None:
        await connection.execute(_UNSET, place)
    else:
        await connection.execute(_SET, (*place, *threshold))
    details = {"metric": metric, **({} if threshold is None else threshold._asdict())}
    await audit.add(connection, actor, "changed_threshold", customer_id, details=details)
