"""Compares the sums of views with the rollups, hour by hour, on a thread of its own: the gauge that is always 0."""

import threading
from typing import Final

import psycopg
import structlog

from services.rim.telemetry.metrics import gauge
from services.serving.database import NOT_THERE, SETTLE, connect
from services.serving.settings import ServingSettings
from shared.metrics import SERVING_DIFFERENT_SLICES, SERVING_HOT_SLICES

log = structlog.get_logger(__name__)

#: Slices of hours that are over, that nobody has changed for so many seconds nor since the finalizer last published, and that it
#: is not about to count. Where hot rows are kept for longer than rollups, there is nothing to compare them with.
_CLOSED: Final = """
    SELECT array_agg(t.hour) AS hours, array_agg(t.customer_id) AS customers FROM (
        SELECT s.start AS hour, s.customer_id FROM serving.sums AS s WHERE s.grain = 'hour'
        UNION
        SELECT extract(epoch FROM r.start)::bigint / 3600, r.customer_id FROM serving.rollups AS r, serving.coverage AS c
        WHERE r.grain = 'hour' AND r.dimensions = 'source' AND r.start >= to_timestamp(c.since_hour * 3600)
    ) AS t
    WHERE t.hour < extract(epoch FROM now())::bigint / 3600
      AND NOT EXISTS (SELECT FROM serving.hot_slices AS h WHERE h.hour = t.hour AND h.customer_id = t.customer_id
                        AND (h.changed_at > now() - %s * interval '1 second'
                             OR h.changed_at > (SELECT f.published_at FROM finalizer.fence AS f)))
      AND NOT EXISTS (SELECT FROM serving.sums_from AS f WHERE f.customer_id IN ('', t.customer_id) AND t.hour < f.hour)
      AND NOT EXISTS (SELECT FROM finalizer.dirty_slices AS d WHERE d.hour = t.hour AND d.customer_id = t.customer_id)
"""
DIFFERING: Final = f"""
    SELECT d.hour, d.customer_id
    FROM ({_CLOSED}) AS closed, serving.differing(closed.hours, closed.customers) AS d
    WHERE (SELECT is_whole FROM serving.coverage)
    ORDER BY d.hour, d.customer_id
"""  # noqa: S608 - SQL of ours
#: Where rows came after the finalizer had published their hours, as to a reader that was away, nobody else says that both agree.
_SETTLE_CLOSED: Final = f"""
    {SETTLE} WHERE changed_at <= now() - %s * interval '1 second' AND (SELECT is_whole FROM serving.coverage)
"""  # noqa: S608 - SQL of ours


class Comparing:
    """The thread. It sets two gauges, and logs hours that differ."""

    def __init__(self, dsn: str, settings: ServingSettings, stop: threading.Event) -> None:
        self._dsn = dsn
        self._every_seconds = settings.compare_seconds
        self._closed_seconds = settings.closed_seconds
        self._stop = stop
        self._thread = threading.Thread(target=self._run, name="comparing", daemon=True)

    def start(self) -> None:
        """Begins, with a first comparison after one interval."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the end, after `stop` was set."""
        self._thread.join(self._every_seconds)

    def _run(self) -> None:
        while not self._stop.wait(self._every_seconds):
            try:
                with connect(self._dsn) as connection:
                    compare(connection, self._closed_seconds)
            except NOT_THERE:
                continue
            except psycopg.Error as error:
                # The reader notices an outage itself.
                log.warning("not_compared", kind=type(error).__name__)


def compare(connection: psycopg.Connection, closed_seconds: float) -> list[tuple[int, str]]:
    """The closed slices (hour since 1970, customer) of which the sums of views are not the rollups; sets the gauges.

    Of slices that are the same in both, the rollups are read from now on.
    """
    connection.execute(_SETTLE_CLOSED, (closed_seconds,))
    found = connection.execute(DIFFERING, (closed_seconds,)).fetchall()
    (hot,) = connection.execute("SELECT count(*) FROM serving.hot_slices").fetchone() or (0,)
    gauge(SERVING_DIFFERENT_SLICES).set(len(found))
    gauge(SERVING_HOT_SLICES).set(hot)
    if found:
        log.error("hours_differ", slices=len(found), first=f"hour {found[0][0]} of {found[0][1]}")
    return [(hour, customer_id) for hour, customer_id in found]
