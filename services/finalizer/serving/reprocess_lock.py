"""A reprocess and the deletion of rows do not run at once, on whichever machines: a lock of a session in the serving database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from services.finalizer.failures import JobFailed
from services.rim.database import locks

_CONNECT_SECONDS_MAX: Final = 5
#: A session without a statement for an hour must not look dead to what is between.
_KEEPALIVE_SECONDS: Final = 60


class ReprocessLocked(JobFailed):
    """A reprocess runs, or a deletion of rows; or the session with the lock has ended under it."""


@contextmanager
def hold(dsn: str) -> Iterator[None]:
    """Holds the lock; Postgres gives it back however the process ends. Raises `ReprocessLocked` and psycopg's errors."""
    with psycopg.connect(
        dsn,
        autocommit=True,
        connect_timeout=_CONNECT_SECONDS_MAX,
        keepalives_idle=_KEEPALIVE_SECONDS,
        application_name="playhead-finalizer-reprocess",
    ) as connection:
        if connection.execute("SELECT pg_try_advisory_lock(%s)", (locks.REPROCESS,)).fetchone() != (True,):
            raise ReprocessLocked("a reprocess runs, or a deletion of rows: wait until it has ended")
        yield
        try:
            connection.execute("SELECT 1")
        except psycopg.OperationalError:
            raise ReprocessLocked("the session with the lock ended meanwhile: do it again") from None
