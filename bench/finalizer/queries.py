"""The time of the page's queries over a year of hourly rollups of 100 customers."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Final

import psycopg

from bench.finalizer import inputs
from bench.finalizer.timing import expect
from bench.results import Compared, Part
from services.accounts.core.customer_scope import EVERYTHING
from services.dashboard.quality.queries import PostgresServing
from services.finalizer.serving.migrate import migrate

QUERY_ROUNDS: Final = 100
P95_MS_MAX: Final = 50
#: What the page offers, hours.
SPANS: Final = (1, 24, 24 * 7, 24 * 30, 8760)


async def run(dsn: str, days: int) -> Part:
    """Asks for every span that the page offers, up to different hours of the last week."""
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        inputs.fill_serving(connection, days)
    opened = PostgresServing(dsn, connections_max=1, seconds_max=60.0)
    await opened.open()
    chance = random.Random(1)
    spans = []
    try:
        whole = await opened.rollups_since(datetime.fromtimestamp(0, UTC), EVERYTHING)
        # A view in every hour of every customer.
        expect("views of all hours", sum(one.views for one in whole.sums), 100 * (24 * days + 1))
        for hours in SPANS:
            times = []
            for _ in range(QUERY_ROUNDS):
                # A year from any hour on: which blocks it takes depends on where it begins.
                back = chance.randrange(168)
                since = datetime.fromtimestamp(inputs.SERVED_UNTIL_S, UTC) - timedelta(hours=back + hours - 1)
                began = time.monotonic()
                found = await opened.rollups_since(since, EVERYTHING)
                times.append((time.monotonic() - began) * 1000)
                hours_found = min(back + hours, 24 * days + 1)
                expect("views of the span", sum(one.views for one in found.sums), 100 * hours_found)
            times.sort()
            spans.append((hours, times[len(times) // 2], times[int(len(times) * 0.95)]))
            print(
                f"page's queries over {hours:5,} h   p50 {spans[-1][1]:.1f} ms, p95 {spans[-1][2]:.1f} ms",
                flush=True,
            )
    finally:
        await opened.close()
    slowest = max(p95 for _, _, p95 in spans)
    return Part(
        name="finalizer-queries",
        title="Finalizer: the page's queries",
        command=f"python -m bench.finalizer --only queries --days {days}",
        checked="every answer has all views of its span",
        compared=[
            Compared(
                f"page's queries, {days} days of hours of 100 customers, p95 of the slowest span",
                f"{slowest:.1f} ms",
                f"≤ {P95_MS_MAX} ms",
                slowest <= P95_MS_MAX,
            )
        ],
        lines=[
            (
                f"All queries of the page for a span of hours, {QUERY_ROUNDS} times each, up to different hours of a"
                " week: sums and start-up histograms of 100 customers, one connection."
            ),
            "",
            "| span, hours | p50, ms | p95, ms |",
            "|---|---|---|",
            *(f"| {hours:,} | {p50:.1f} | {p95:.1f} |" for hours, p50, p95 in spans),
        ],
    )
