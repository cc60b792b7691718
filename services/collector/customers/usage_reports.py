"""Reports of usage to schema `limits` in Postgres, and what all collectors together have stored, read back from there."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import psycopg
import structlog

from services.collector.customers.table import CONNECT_SECONDS_MAX, STATEMENT_SECONDS_MAX, TableAway
from services.collector.customers.usage import Report, Usage
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_USAGE_REPORTS

log = structlog.get_logger(__name__)

#: Rounds of reports between two deletions of what is old.
_EXPIRE_EVERY: Final = 60

#: No row comes back where this report has arrived before.
_BEGIN: Final = """
    INSERT INTO limits.collectors AS c (process, report, reported_at) VALUES (%s, %s, now())
    ON CONFLICT (process) DO UPDATE SET report = excluded.report, reported_at = now() WHERE c.report < excluded.report
    RETURNING true
"""
#: In the order of the key, as in every report: two that met in another order would wait for each other.
_ADD: Final = """
    INSERT INTO limits.stored AS s (customer_id, bytes, bytes_per_day, changed_at)
    SELECT customer_id, bytes, bytes_per_day, now()
    FROM unnest(%s::text[], %s::float8[], %s::float8[]) AS added (customer_id, bytes, bytes_per_day) ORDER BY 1
    ON CONFLICT (customer_id) DO UPDATE SET
        bytes = greatest(0, excluded.bytes + greatest(0, s.bytes - excluded.bytes_per_day / 86400
            * greatest(0, extract(epoch FROM excluded.changed_at - s.changed_at)::float8))),
        bytes_per_day = excluded.bytes_per_day, changed_at = greatest(s.changed_at, excluded.changed_at)
"""
_REFUSE: Final = """
    INSERT INTO limits.refused AS r (customer_id, name, hour, requests, amount, last_at)
    SELECT customer_id, name, date_trunc('hour', now(), 'UTC'), requests, amount, now()
    FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::float8[]) AS added (customer_id, name, requests, amount)
    ORDER BY 1, 2
    ON CONFLICT (customer_id, name, hour) DO UPDATE SET requests = r.requests + excluded.requests,
        amount = r.amount + excluded.amount, last_at = greatest(r.last_at, excluded.last_at)
"""
_DEFAULTS: Final = """
    INSERT INTO limits.defaults AS d (name, value) SELECT * FROM unnest(%s::text[], %s::float8[]) ORDER BY 1
    ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE d.value <> excluded.value
"""
_EXPIRE: Final = (
    "DELETE FROM limits.refused WHERE hour < now() - interval '26 hours'",
    "DELETE FROM limits.collectors WHERE reported_at < now() - interval '1 day'",
    "DELETE FROM limits.stored WHERE changed_at < now() - interval '2 days' AND bytes <= bytes_per_day",
)
#: Rows that changed since the last look. Other reports may commit that long after the time that they write.
_CHANGED: Final = """
    SELECT customer_id, greatest(0, bytes - bytes_per_day / 86400
        * greatest(0, extract(epoch FROM now() - changed_at)::float8))
    FROM limits.stored WHERE changed_at >= %s::timestamptz - interval '3 minutes'
"""


class UsageReports:
    """Sends the reports of one process. `on_stored` hears what all collectors have stored, by customer id."""

    def __init__(
        self,
        dsn: str,
        process: str,
        usage: Usage,
        defaults: Mapping[str, float],
        on_stored: Callable[[Mapping[str, float]], None],
    ) -> None:
        """`process` names this process and no other, ever; `defaults` are the limits of customers without own ones."""
        self._dsn = dsn
        self._process = process
        self._usage = usage
        # The driver takes no list of both integers and floats.
        self._defaults = {name: float(value) for name, value in defaults.items()}
        self._on_stored = on_stored
        self._looked_at: datetime | str = "-infinity"
        self._rounds = 0
        self._problem = ""

    async def watch(self, seconds: float) -> None:
        """Sends at this interval, for ever."""
        while True:
            await asyncio.sleep(seconds)
            await self.send()

    async def send(self) -> None:
        """Sends what there is, on a thread, and reads what others have stored. A failure is counted; the next round repeats it."""
        counter = metrics.counter(COLLECTOR_USAGE_REPORTS)
        try:
            stored = await asyncio.to_thread(self._exchange, self._usage.report())
        except TableAway as error:
            counter.labels("failed").inc()
            if str(error) != self._problem:
                self._problem = str(error)
                log.error("usage_not_reported", problem=self._problem)
            return
        self._usage.settle()
        self._on_stored(stored)
        counter.labels("ok").inc()
        if self._problem:
            log.info("usage_reported")
        self._problem = ""

    async def finish(self) -> None:
        """Sends what is left: a report that was under way when `watch` was cancelled, and the one after it."""
        await self.send()
        await self.send()

    def _exchange(self, report: Report) -> dict[str, float]:
        try:
            with psycopg.connect(
                self._dsn, connect_timeout=CONNECT_SECONDS_MAX, fallback_application_name="playhead-collector"
            ) as connection:
                connection.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS_MAX}s'")
                if connection.execute(_BEGIN, (self._process, report.number)).fetchone() is not None:
                    _write(connection, report, self._defaults)
                if self._rounds % _EXPIRE_EVERY == 0:
                    for statement in _EXPIRE:
                        connection.execute(statement)
                changed = connection.execute(_CHANGED, (self._looked_at,)).fetchall()
                now = connection.execute("SELECT now()").fetchone()
        except psycopg.Error as error:
            # The driver's texts name hosts and users, and may quote a password.
            raise TableAway(f"{type(error).__name__} ({error.sqlstate or 'no connection'})") from None
        assert now is not None
        self._looked_at = now[0]
        self._rounds += 1
        return dict(changed)


def _write(connection: psycopg.Connection, report: Report, defaults: Mapping[str, float]) -> None:
    if defaults:
        connection.execute(_DEFAULTS, (list(defaults), list(defaults.values())))
    if report.stored:
        stored = report.stored.values()
        columns = (
            list(report.stored),
            [float(one.bytes) for one in stored],
            [float(one.bytes_per_day) for one in stored],
        )
        connection.execute(_ADD, columns)
    if report.refused:
        refused = report.refused.values()
        connection.execute(
            _REFUSE,
            (
                [customer_id for customer_id, _ in report.refused],
                [name for _, name in report.refused],
                [one.requests for one in refused],
                [float(one.amount) for one in refused],
            ),
        )
