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
from services.finalizer.transforms.rollups import METRICS

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
class Group:
    """One row of `serving.rollups`: a group of a slice, or of a day."""

    grain: str
    start_ms: int
    customer_id: str
    #: Names joined by +, the empty text for the total; and their values.
    dimensions: str
    members: Sequence[str | None]
    #: As `Rebuilt.measures` names them.
    measures: Sequence[Any]
    #: An HLL sketch of the viewers.
    uniques: bytes
    #: Of every metric its buckets and their counts.
    histograms: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Rebuilt:
    """Slices as they must stand from now on, and the days they are of. A slice without a group has no views left."""

    slices: Sequence[Slice]
    measures: Sequence[str]
    groups: Sequence[Group]


class RecentView(NamedTuple):
    """One row of `serving.views`."""

    customer_id: str
    view_id: str
    generation: int
    revision: int
    deleted: bool
    day: int
    end_ms: int
    #: The whole row as JSON.
    document: str


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

    def publish(
        self, rebuilt: Rebuilt, *, checkpoint_id: str, batch_id: int, recent: Sequence[RecentView] = ()
    ) -> None:
        """Replaces the slices, clears them, brings recent views, and notes the batch: all or nothing.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            hours_and_customers = _columns(rebuilt.slices)
            for condition in (_HOURS, _DAYS):
                connection.execute(sql.SQL(_DELETE_ROLLUPS + condition), hours_and_customers)
            _insert_groups(connection, rebuilt)
            _upsert_recent(connection, recent)
            connection.execute(
                "DELETE FROM finalizer.dirty_slices AS t USING unnest(%s::bigint[], %s::text[]) AS dirty (hour, customer_id)"
                " WHERE t.customer_id = dirty.customer_id AND t.hour = dirty.hour",
                hours_and_customers,
            )
            connection.execute(
                "UPDATE finalizer.fence SET checkpoint_id = %s, batch_id = %s, published_at = clock_timestamp()",
                (checkpoint_id, batch_id),
            )

        self._retrying(write)

    def forget_views(self, keys: Sequence[tuple[str, str]]) -> int:
        """Deletes the point look-ups of these (customer, view) pairs; returns how many there were."""

        def write(connection: psycopg.Connection) -> int:
            self._hold_fence(connection)
            return connection.execute(
                "DELETE FROM serving.views AS t USING unnest(%s::text[], %s::text[]) AS gone (customer_id, view_id)"
                " WHERE t.customer_id = gone.customer_id AND t.view_id = gone.view_id",
                ([customer for customer, _ in keys], [view for _, view in keys]),
            ).rowcount

        return self._retrying(write)

    def expire(self, *, rollups_before_ms: int | None, views_before_day: int | None) -> None:
        """Deletes what is older than it is kept; None keeps all."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            if rollups_before_ms is not None:
                connection.execute(
                    "DELETE FROM serving.rollups WHERE start < %s::timestamptz", (_time(rollups_before_ms),)
                )
            if views_before_day is not None:
                connection.execute("DELETE FROM serving.views WHERE day < %s", (views_before_day,))

        self._retrying(write)

    def swapped(self) -> list[int]:
        """The generations that have been swapped in and can be taken back."""

        def read(connection: psycopg.Connection) -> list[int]:
            return [row[0] for row in connection.execute("SELECT generation FROM finalizer.swapped ORDER BY 1")]

        return self._retrying(read)

    def note_swapped(self, generation: int, *, is_in: bool) -> None:
        """Notes that a generation is being swapped in, or has been taken back; durable on return."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            statement = (
                "INSERT INTO finalizer.swapped (generation) VALUES (%s) ON CONFLICT DO NOTHING"
                if is_in
                else "DELETE FROM finalizer.swapped WHERE generation = %s"
            )
            connection.execute(statement, (generation,))

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


_DELETE_ROLLUPS: Final = (
    "DELETE FROM serving.rollups AS t USING unnest(%s::bigint[], %s::text[]) AS dirty (hour, customer_id)"
    " WHERE t.customer_id = dirty.customer_id AND "
)
_HOURS: Final = "t.grain = 'hour' AND t.start = to_timestamp(dirty.hour * 3600)"
_DAYS: Final = "t.grain = 'day' AND t.start = to_timestamp(dirty.hour / 24 * 86400)"


def _insert_groups(connection: psycopg.Connection, rebuilt: Rebuilt) -> None:
    histograms = [f"{metric}_{part}" for metric in METRICS for part in ("buckets", "counts")]
    columns = ("grain", "start", "customer_id", "dimensions", "members", *rebuilt.measures, "uniques", *histograms)
    statement = sql.SQL("COPY serving.rollups ({}) FROM STDIN").format(sql.SQL(", ").join(map(sql.Identifier, columns)))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for one in rebuilt.groups:
            copy.write_row(
                (
                    *(one.grain, _time(one.start_ms), one.customer_id, one.dimensions, list(one.members)),
                    *(*one.measures, one.uniques, *map(list, one.histograms)),
                )
            )


def _upsert_recent(connection: psycopg.Connection, recent: Sequence[RecentView]) -> None:
    """Of a view that is there the larger (generation, revision) stays."""
    if not recent:
        return
    connection.execute("CREATE TEMP TABLE recent (LIKE serving.views) ON COMMIT DROP")
    columns = "customer_id, view_id, generation, revision, deleted, day, ended, document"
    with connection.cursor() as cursor, cursor.copy(f"COPY recent ({columns}) FROM STDIN") as copy:
        for one in recent:
            copy.write_row((*one[:6], _time(one.end_ms), one.document))
    connection.execute(
        f"INSERT INTO serving.views AS t ({columns}) SELECT {columns} FROM recent"  # noqa: S608 - our own names
        " ON CONFLICT (customer_id, view_id) DO UPDATE SET generation = excluded.generation,"
        " revision = excluded.revision, deleted = excluded.deleted, day = excluded.day, ended = excluded.ended,"
        " document = excluded.document WHERE (excluded.generation, excluded.revision) > (t.generation, t.revision)"
    )


#: Postgres tells no later time that psycopg could read back.
_TIME_S_MAX: Final = 253_402_300_799


def _time(ms: int) -> str:
    seconds = min(max(ms // 1000, 0), _TIME_S_MAX)
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(seconds))


def _columns(slices: Sequence[Slice]) -> tuple[list[int], list[str]]:
    return [one.hour for one in slices], [one.customer_id for one in slices]


def _first_line(error: psycopg.Error) -> str:
    """Of libpq's message the part that says what is wrong. It names host and port, never the password."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
