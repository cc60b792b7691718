"""The serving database: which slices are dirty, and the slices the dashboard reads. One transaction a call.

Dirty slices live here and not in the warehouse, so that publishing slices and clearing them is one transaction.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
import structlog
from psycopg import sql

from services.finalizer.migrate import migrate

log = structlog.get_logger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS_MAX: Final = 5
_STATEMENT_MS_MAX: Final = 60_000
_BACKOFF_SECONDS_MAX: Final = 5.0


class Slice(NamedTuple):
    """What is rebuilt and published as one: a customer's hour (counted from 1970)."""

    hour: int
    customer_id: str


@dataclass(frozen=True)
class Rebuilt:
    """Slices as they must stand from now on. A slice with no row in `sums` has no views left."""

    slices: Sequence[Slice]
    measures: Sequence[str]
    #: (hour, customer_id, *measures)
    sums: Sequence[tuple[Any, ...]]
    #: (hour, customer_id, metric, bucket, count)
    buckets: Sequence[tuple[Any, ...]]


class Fenced(RuntimeError):
    """Another driver has taken over the serving database: this one must end."""


class ServingAway(RuntimeError):
    """The serving database could not be reached for as long as the settings allow."""


class Serving:
    """The finalizer's connection to the serving database. Mends a lost connection by itself, within limits."""

    def __init__(self, dsn: str, *, away_seconds_max: float, stop: threading.Event) -> None:
        self._dsn = dsn
        self._away_seconds_max = away_seconds_max
        self._stop = stop
        self._connection: psycopg.Connection | None = None
        self._epoch: int | None = None

    def open(self) -> None:
        """Applies migrations and takes the fence: from now on every older driver is refused."""
        self._retrying(migrate)
        self._epoch = self._retrying(_take_fence)
        log.info("serving_open", epoch=self._epoch)

    def mark_dirty(self, slices: Iterable[Slice]) -> None:
        """Records slices as dirty; durable on return. Raises `Fenced`, `ServingAway`."""
        rows = sorted(slices)

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            connection.execute(
                "INSERT INTO finalizer.dirty_slices (hour, customer_id)"
                " SELECT * FROM unnest(%s::bigint[], %s::text[]) ON CONFLICT DO NOTHING",
                _columns(rows),
            )

        self._retrying(write)

    def dirty(self, slices_max: int) -> list[Slice]:
        """Up to `slices_max` dirty slices, oldest hour first."""

        def read(connection: psycopg.Connection) -> list[Slice]:
            found = connection.execute(
                "SELECT hour, customer_id FROM finalizer.dirty_slices ORDER BY hour, customer_id LIMIT %s",
                (slices_max,),
            )
            return [Slice(*row) for row in found]

        return self._retrying(read)

    def publish(self, rebuilt: Rebuilt, *, checkpoint_id: str, batch_id: int) -> None:
        """Replaces the slices, clears them, and notes the batch: all or nothing. Raises `Fenced`, `ServingAway`."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            hours_and_customers = _columns(rebuilt.slices)
            for table, hour in (
                ("serving.rollups_hourly", "to_timestamp(dirty.hour * 3600)"),
                ("serving.histograms_hourly", "to_timestamp(dirty.hour * 3600)"),
                ("finalizer.dirty_slices", "dirty.hour"),
            ):
                connection.execute(
                    sql.SQL(
                        "DELETE FROM {} AS t USING unnest(%s::bigint[], %s::text[]) AS dirty (hour, customer_id)"
                        " WHERE t.customer_id = dirty.customer_id AND t.hour = {}"
                    ).format(sql.SQL(table), sql.SQL(hour)),
                    hours_and_customers,
                )
            _insert(connection, "rollups_hourly", rebuilt.measures, rebuilt.sums)
            _insert(connection, "histograms_hourly", ("metric", "bucket", "count"), rebuilt.buckets)
            connection.execute(
                "UPDATE finalizer.fence SET checkpoint_id = %s, batch_id = %s, published_at = clock_timestamp()",
                (checkpoint_id, batch_id),
            )

        self._retrying(write)

    def close(self) -> None:
        """Gives the connection back. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _hold_fence(self, connection: psycopg.Connection) -> None:
        """Locks the fence for this transaction, so that no driver takes over in the middle of it."""
        row = connection.execute("SELECT epoch FROM finalizer.fence FOR UPDATE").fetchone()
        if row is None or row[0] != self._epoch:
            raise Fenced(f"this driver has epoch {self._epoch}, the serving database is held by {row and row[0]}")

    def _retrying(self, work: Callable[[psycopg.Connection], T]) -> T:
        """Does `work` in a transaction, again while the database is away. `work` may run twice: it must not mind.

        A lost connection leaves unknown whether the commit took effect, so every work is idempotent.
        """
        deadline = time.monotonic() + self._away_seconds_max
        backoff_seconds = 0.1
        while True:
            try:
                connection = self._connect()
                with connection.transaction():
                    return work(connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self.close()
                if time.monotonic() + backoff_seconds > deadline:
                    raise ServingAway(f"away for {self._away_seconds_max} s: {_first_line(error)}") from error
                log.warning("serving_away", error=_first_line(error), retry_in_seconds=backoff_seconds)
            if self._stop.wait(backoff_seconds):
                raise ServingAway("away, and the service is stopping")
            backoff_seconds = min(2 * backoff_seconds, _BACKOFF_SECONDS_MAX)

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS_MAX,
                application_name="playhead-finalizer",
                options=f"-c statement_timeout={_STATEMENT_MS_MAX}",
            )
        return self._connection


def _take_fence(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "INSERT INTO finalizer.fence AS f (epoch) VALUES (1)"
        " ON CONFLICT (only_row) DO UPDATE SET epoch = f.epoch + 1 RETURNING epoch"
    ).fetchone()
    assert row is not None
    return int(row[0])


def _insert(
    connection: psycopg.Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    statement = sql.SQL("COPY serving.{} (hour, customer_id, {}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for hour, *others in rows:
            copy.write_row((_timestamp(hour), *others))


def _timestamp(hour: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(hour * 3600))


def _columns(slices: Sequence[Slice]) -> tuple[list[int], list[str]]:
    return [one.hour for one in slices], [one.customer_id for one in slices]


def _first_line(error: psycopg.Error) -> str:
    """Of libpq's message the part that says what is wrong. It names host and port, never the password."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
