"""The time of the page's questions about spans of hours over a year of hourly rollups of 100 customers."""

import random
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

from bench.finalizer import inputs
from bench.finalizer.timing import expect
from bench.report.results import Compared, Part
from services.finalizer.serving.migrate import migrate
from services.query.answering import Answering
from services.query.core.answer import Breakdown
from services.query.core.calendar import HOUR_MS
from services.query.core.question import AskedBreakdown, understood
from services.query.rim.engine import Engine
from services.query.rim.hot import HotDatabase
from services.query.rim.warehouse import ViewsTable
from services.query.scope import Caller
from services.rim.database.pool import Postgres

QUERY_ROUNDS: Final = 100
P95_MS_MAX: Final = 50
#: What people ask about, hours.
SPANS: Final = (1, 24, 24 * 7, 24 * 30, 8760)
METRICS: Final = "views,rebuffer_fraction,playback_failure_fraction,exit_before_start_fraction,bitrate_bps"


async def run(dsn: str, days: int) -> Part:
    """Asks for spans that end with any hour of the last week."""
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        inputs.fill_serving(connection, days)
    postgres = Postgres(dsn, service="query", connections_max=1, seconds_max=60.0)
    await postgres.open()
    chance = random.Random(1)
    spans = []
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), threads=1, memory_bytes_max=1 << 30, questions_max=1)
        answering = Answering(
            ViewsTable(Path(folder)), HotDatabase(postgres, 0), engine, rows_max=0, answers_bytes_max=0
        )
        try:
            for hours in SPANS:
                times = []
                for _ in range(QUERY_ROUNDS):
                    # Which blocks a span takes depends on where it begins and ends.
                    end = inputs.SERVED_UNTIL_S // 3600 + 1 - chance.randrange(168)
                    began = time.monotonic()
                    found = await _asked(answering, end - hours, end)
                    times.append((time.monotonic() - began) * 1000)
                    # A view in every hour of every customer.
                    first = max(end - hours, inputs.SERVED_UNTIL_S // 3600 - 24 * days)
                    expect("views of the span", found.n, 100 * (end - first))
                times.sort()
                spans.append((hours, times[len(times) // 2], times[int(len(times) * 0.95)]))
                print(
                    f"page's queries over {hours:5,} h   p50 {spans[-1][1]:.1f} ms, p95 {spans[-1][2]:.1f} ms",
                    flush=True,
                )
        finally:
            engine.close()
            await postgres.close()
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
                f"Five metrics by customer, of 100 customers, {QUERY_ROUNDS} times for each span, which ends with any hour of a"
                " week: `/v1/breakdown` without HTTP, one connection."
            ),
            "",
            "| span, hours | p50, ms | p95, ms |",
            "|---|---|---|",
            *(f"| {hours:,} | {p50:.1f} | {p95:.1f} |" for hours, p50, p95 in spans),
        ],
    )


async def _asked(answering: Answering, first_hour: int, end_hour: int) -> Breakdown:
    one = AskedBreakdown(
        by="customer",
        metrics=METRICS,
        limit=100,
        from_=str(first_hour * HOUR_MS),
        to=str(end_hour * HOUR_MS),
    )
    found = await answering.answer(understood(one, Caller("bench").admit, end_hour * HOUR_MS))
    assert isinstance(found, Breakdown)
    return found
