"""What the page's queries take over a year of hourly rollups of 100 customers."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Final

import psycopg

from bench.finalizer import inputs
from services.dashboard.queries import PostgresServing
from services.finalizer.migrate import migrate

QUERY_ROUNDS: Final = 100
#: What the page offers, hours.
SPANS: Final = (1, 24, 24 * 7, 24 * 30, 8760)


async def run(dsn: str, days: int) -> None:
    """Asks for every span that the page offers, up to different hours of the last week."""
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        inputs.fill_serving(connection, days)
    opened = PostgresServing(dsn, connections_max=1, seconds_max=60.0)
    await opened.open()
    chance = random.Random(1)
    try:
        await opened.rollups_since(datetime.fromtimestamp(0, UTC))
        for hours in SPANS:
            times = []
            for _ in range(QUERY_ROUNDS):
                # A year from any hour on: which blocks it takes depends on where it begins.
                until = datetime.fromtimestamp(inputs.SERVED_UNTIL_S, UTC) - timedelta(hours=chance.randrange(168))
                began = time.monotonic()
                await opened.rollups_since(until - timedelta(hours=hours - 1))
                times.append((time.monotonic() - began) * 1000)
            times.sort()
            p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
            print(
                f"page's queries over {hours:5,} h, 100 customers, {days} days served   p50 {p50:.1f} ms, p95 {p95:.1f} ms"
            )
    finally:
        await opened.close()
