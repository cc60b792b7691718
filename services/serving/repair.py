"""Repairs hours whose sums of views differ from the rollups. It may run beside the service and the finalizer."""

from collections.abc import Iterator

import psycopg
import structlog

from services.rim.database.view_rows import lock_views
from services.serving.comparing import compare
from services.serving.database import SETTLE, connect
from services.serving.settings import ServingSettings

#: Of no view.
_LAST_HOUR = 1 << 40

log = structlog.get_logger(__name__)


def repair(settings: ServingSettings, *, refill: bool) -> Iterator[str]:
    """Counts sums again from the rows, and lets the finalizer count what differs still; yields lines for people.

    `refill` deletes the rows instead: the service reads them from topic `views` again. Rows of generations that were swapped in
    stay, since the topic does not have them. Raises psycopg's errors.
    """
    with connect(settings.postgres_dsn.get_secret_value()) as connection:
        if refill:
            yield from _refill(connection)
            return
        before = compare(connection, settings.closed_seconds)
        yield f"{len(before):,} closed slices differ from the rollups"
        with connection.transaction():
            connection.execute("SELECT serving.recount(c.since_hour, %s) FROM serving.coverage AS c", (_LAST_HOUR,))
        # The recount has marked every slice as changed: the comparison is to look at them all the same.
        left = [one for one in compare(connection, -1.0) if one in set(before)]
        yield f"{len(left):,} of them after the sums were counted again from the rows"
        if left:
            with connection.transaction():
                connection.execute(
                    "INSERT INTO finalizer.dirty_slices (hour, customer_id)"
                    " SELECT * FROM unnest(%s::bigint[], %s::text[])"
                    " ON CONFLICT (hour, customer_id) DO UPDATE SET minutes = NULL",
                    ([hour for hour, _ in left], [customer_id for _, customer_id in left]),
                )
            yield "The finalizer counts these in its next round. If they differ after it, rows are missing: repair --refill."
        with connection.transaction():
            connection.execute(SETTLE)


def _refill(connection: psycopg.Connection) -> Iterator[str]:
    with connection.transaction():
        connection.execute("SELECT FROM serving.positions FOR UPDATE")
        lock_views(connection)
        # Pages read the rollups alone until all is read again.
        connection.execute("UPDATE serving.coverage SET is_whole = false")
        connection.execute("DELETE FROM serving.positions")
        deleted = connection.execute(
            "DELETE FROM serving.views WHERE generation NOT IN (SELECT generation FROM finalizer.swapped)"
        ).rowcount
    yield f"{deleted:,} rows deleted; the service reads topic views again from its first record"
