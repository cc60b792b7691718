"""Minutes of topic `live`, as `services/serving` has landed them in the serving database."""

from collections.abc import Sequence
from typing import Final

import psycopg

from services.alerts.core.trial import MinuteRow

_READ: Final = """
    SELECT dimension, minute, document::text FROM serving.live_minutes
    WHERE customer_id = %s AND dimension = ANY(%s) AND minute >= %s AND minute < %s ORDER BY minute
"""


async def read_minutes(
    connection: psycopg.AsyncConnection, customer_id: str, dimensions: Sequence[str], *, first: int, until: int
) -> list[MinuteRow]:
    """The rows of these dimensions in minutes since 1970, in order of time."""
    found = await connection.execute(_READ, (customer_id, list(dimensions), first, until))
    return [MinuteRow(*row) for row in await found.fetchall()]
