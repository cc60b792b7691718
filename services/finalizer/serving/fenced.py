"""The connection to the serving database of the one driver that may write. It reconnects by itself, within limits."""

import itertools
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
import structlog

from services.finalizer.failures import JobFailed
from services.rim.database.postgres import LOST

log = structlog.get_logger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS_MAX: Final = 5
#: For a statement, before it is run again with more: a large slice takes long, and a server that hangs must be noticed.
STATEMENT_MS: Final = 60_000
#: A driver that is stopped in a transaction holds up all other writers: then Postgres ends its session.
_IDLE_MS: Final = 60_000
STATEMENT_MS_MAX: Final = 3_600_000
_STATEMENT_GROWTH: Final = 4
_BACKOFF_SECONDS_MAX: Final = 5.0
#: Of a version, the part that counts the writes of one driver.
_VERSION_BITS: Final = 24


class Fenced(JobFailed):
    """Another driver has taken over the serving database: this one must end."""


class ServingAway(JobFailed):
    """The serving database could not be reached for as long as the settings allow."""


class StatementTooSlow(JobFailed):
    """A statement was cancelled after the longest time that one may take."""


class FencedConnection:
    """Transactions of one driver, one at a time, from any of its threads. `take` fences the driver that wrote before."""

    def __init__(
        self,
        dsn: str,
        *,
        away_seconds_max: float,
        stop: threading.Event,
        statement_ms: int = STATEMENT_MS,
        statement_ms_max: int = STATEMENT_MS_MAX,
    ) -> None:
        self._dsn = dsn
        self._away_seconds_max = away_seconds_max
        self._stop = stop
        #: Grows when a statement needs more, and stays: the next batch has the same large slice.
        self._statement_ms = statement_ms
        self._statement_ms_max = statement_ms_max
        self._connection: psycopg.Connection | None = None
        #: A transaction within another would be a part of it, and durable only with it.
        self._one = threading.Lock()
        self._epoch: int | None = None
        self._versions = itertools.count()

    def take(self) -> int:
        """Takes the fence; the epoch of this driver. Raises `ServingAway`."""
        self._epoch = self.run(_take_fence)
        return self._epoch

    def next_version(self) -> int:
        """A number that is larger than each before it, of this driver and of those it has overtaken."""
        assert self._epoch is not None, "the fence is taken first"
        return (self._epoch << _VERSION_BITS) + next(self._versions)

    def run(self, work: Callable[[psycopg.Connection], T]) -> T:
        """Does `work` in a transaction, again while the database is away. Raises `ServingAway`.

        A lost connection leaves unknown whether the commit took effect. So `work` may run twice, and is idempotent. It calls no
        method of this object.
        """
        with self._one:
            return self._run(work)

    def _run(self, work: Callable[[psycopg.Connection], T]) -> T:
        deadline = time.monotonic() + self._away_seconds_max
        backoff_seconds = 0.1
        while True:
            try:
                connection = self._connect()
                with connection.transaction():
                    return work(connection)
            except psycopg.errors.QueryCanceled as error:
                # An OperationalError, though the database is there: the same statement would take as long again.
                self.close()
                self._allow_more(error)
                deadline = time.monotonic() + self._away_seconds_max
                continue
            except LOST as error:
                self.close()
                if time.monotonic() + backoff_seconds > deadline:
                    raise ServingAway(f"away for {self._away_seconds_max} s: {_first_line(error)}") from error
                log.warning("serving_away", error=_first_line(error), retry_in_seconds=backoff_seconds)
            if self._stop.wait(backoff_seconds):
                raise ServingAway("away, and the service is stopping")
            backoff_seconds = min(2 * backoff_seconds, _BACKOFF_SECONDS_MAX)

    def run_fenced(self, work: Callable[[psycopg.Connection], T]) -> T:
        """The same as `run` while the fence is held. Raises `Fenced` too."""

        def held(connection: psycopg.Connection) -> T:
            self._hold(connection)
            return work(connection)

        return self.run(held)

    def close(self) -> None:
        """Gives the connection back. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _hold(self, connection: psycopg.Connection) -> None:
        """Locks the fence for this transaction, so that no driver takes over in the middle of it."""
        row = connection.execute("SELECT epoch FROM finalizer.fence FOR UPDATE").fetchone()
        if row is None or row[0] != self._epoch:
            raise Fenced(f"this driver has epoch {self._epoch}, the serving database is held by {row and row[0]}")

    def _allow_more(self, error: psycopg.Error) -> None:
        if self._statement_ms >= self._statement_ms_max:
            raise StatementTooSlow(f"cancelled after {self._statement_ms} ms: {_first_line(error)}") from error
        self._statement_ms = min(_STATEMENT_GROWTH * self._statement_ms, self._statement_ms_max)
        log.warning("statement_slow", error=_first_line(error), now_allowed_ms=self._statement_ms)

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS_MAX,
                application_name="playhead-finalizer",
                options=f"-c statement_timeout={self._statement_ms} -c idle_in_transaction_session_timeout={_IDLE_MS}",
            )
        return self._connection


def _take_fence(connection: psycopg.Connection) -> int:
    # At least the time: a database that was lost and made again gives no epoch that the warehouse knows already.
    row = connection.execute(
        "INSERT INTO finalizer.fence AS f (epoch) VALUES (extract(epoch FROM clock_timestamp())::bigint)"
        " ON CONFLICT (only_row) DO UPDATE SET epoch = greatest(f.epoch + 1, excluded.epoch) RETURNING epoch"
    ).fetchone()
    assert row is not None
    return int(row[0])


def _first_line(error: psycopg.Error) -> str:
    """The part of libpq's message that says what is wrong. It names host and port, never the password."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
