"""The serving database: which slices are dirty, and the driver that may write. One transaction a call.

Dirty slices are here and not in the warehouse, so that publishing slices and clearing them is one transaction.
"""

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import psycopg
import structlog

from services.finalizer.failures import JobFailed
from services.finalizer.serving import marks
from services.finalizer.serving.migrate import migrate
from services.finalizer.serving.published import (
    Rebuilt,
    Slice,
    as_columns,
    delete_customer,
    delete_views,
    expire_of_customer,
    expire_rollups,
    expire_views,
    replace_slices,
)
from services.finalizer.transforms.forgotten import Forgotten
from services.rim.database.postgres import LOST
from services.rim.database.view_rows import as_text, lock_views, upsert_views

log = structlog.get_logger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS_MAX: Final = 5
#: For a statement, before it is run again with more: a large slice takes long, and a server that hangs must be noticed.
_STATEMENT_MS: Final = 60_000
#: A driver that is stopped in a transaction holds up all other writers: then Postgres ends its session.
_IDLE_MS: Final = 60_000
_STATEMENT_MS_MAX: Final = 3_600_000
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


class Serving:
    """The finalizer's connection to the serving database. Reconnects by itself, within limits."""

    def __init__(
        self,
        dsn: str,
        *,
        away_seconds_max: float,
        stop: threading.Event,
        statement_ms: int = _STATEMENT_MS,
        statement_ms_max: int = _STATEMENT_MS_MAX,
    ) -> None:
        self._dsn = dsn
        self._away_seconds_max = away_seconds_max
        self._stop = stop
        #: Grows when a statement needs more, and stays: the next batch has the same large slice.
        self._statement_ms = statement_ms
        self._statement_ms_max = statement_ms_max
        self._connection: psycopg.Connection | None = None
        self._epoch: int | None = None
        self._versions = itertools.count()

    def open(self) -> None:
        """Applies migrations and takes the fence: from now on every older driver is refused."""
        self._retrying(lambda _: migrate(self._dsn))
        self._epoch = self._retrying(_take_fence)
        log.info("serving_open", epoch=self._epoch)

    def next_version(self) -> int:
        """A number for a write outside of Postgres: larger than each before it, of this driver and of those it has overtaken."""
        assert self._epoch is not None, "the fence is taken first"
        return (self._epoch << _VERSION_BITS) + next(self._versions)

    def mark_dirty(self, slices: Iterable[Slice]) -> None:
        """Records whole slices as dirty; durable on return. Raises `Fenced`, `ServingAway`."""
        self.mark_minutes(dict.fromkeys(slices))

    def mark_minutes(self, minutes: Mapping[Slice, Collection[int] | None]) -> None:
        """Records as dirty what has changed of slices: some minutes (0 to 59), None for all. Durable on return.

        What is marked already stays marked. Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            marks.mark(connection, minutes)

        self._retrying(write)

    def dirty_minutes(
        self, slices: Sequence[Slice], sets: Collection[str], *, views_min: int
    ) -> dict[Slice, list[int]]:
        """Those of these dirty slices that are made of their minutes: what has changed, and the rollups have the rest.

        Those that were published with other sets of dimensions than `sets` (their names), or with members added up, are not among
        them. None is, if all of them together have fewer than `views_min` views: counting these again costs less.
        """

        def read(connection: psycopg.Connection) -> dict[Slice, list[int]]:
            return marks.minutes_of(connection, slices, sets, views_min=views_min)

        return self._retrying(read)

    def dirty(self, slices_max: int) -> list[Slice]:
        """Up to `slices_max` dirty slices, newest hour first: what people look at does not wait for a restated month."""

        def read(connection: psycopg.Connection) -> list[Slice]:
            return marks.newest(connection, slices_max)

        return self._retrying(read)

    def bring_recent(self, recent: Sequence[Sequence[Any]]) -> None:
        """Brings rows of `serving.views` (`rim.database.view_rows`); of each view the newest revision stays.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            upsert_views(connection, recent)

        if recent:
            self._retrying(write)

    def restate_recent(self, recent: Sequence[Sequence[Any]]) -> None:
        """Replaces rows of `serving.views`, whichever is newer; one without a document is only deleted.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            lock_views(connection)
            delete_views(connection, [row[:3] for row in recent])
            upsert_views(connection, [row for row in recent if row[-1] is not None])

        if recent:
            self._retrying(write)

    def publish(self, rebuilt: Rebuilt, *, checkpoint_id: str, batch_id: int) -> None:
        """Replaces the slices, clears them, and notes the batch: all or nothing.

        Of slices where the sums of views now agree with the rollups, the rollups are read from now on. Raises `Fenced`,
        `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            replace_slices(connection, rebuilt)
            marks.clear(connection, rebuilt.slices)
            connection.execute(
                "UPDATE finalizer.fence SET checkpoint_id = %s, batch_id = %s, published_at = clock_timestamp()",
                (checkpoint_id, batch_id),
            )
            # Last: other writers of views wait from here to the commit.
            connection.execute("SELECT serving.settle(%s::bigint[], %s::text[])", as_columns(rebuilt.slices))

        self._retrying(write)

    def forgotten(self) -> list[Forgotten]:
        """The viewers whose views are refused."""

        def read(connection: psycopg.Connection) -> list[Forgotten]:
            found = connection.execute("SELECT customer_id, viewer, forgotten_ms FROM serving.forgotten")
            return [Forgotten(customer_id, bytes(viewer), at_ms) for customer_id, viewer, at_ms in found]

        return self._retrying(read)

    def refuse(self, forgotten: Sequence[Forgotten]) -> None:
        """Refuses views of these viewers from now on. Raises `Fenced`, `ServingAway`."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            _refuse(connection, forgotten)

        if forgotten:
            self._retrying(write)

    def forget_views(
        self, customer_id: str, viewers: Sequence[str], views: Sequence[tuple[str, int]], *, at_ms: int
    ) -> int:
        """Deletes the views (id, day) of a viewer, and all that have the viewer's id; returns how many there were.

        Views of these viewers that began up to `at_ms` are refused from now on, when topic `views` is read again.
        """

        def write(connection: psycopg.Connection) -> int:
            self._hold_fence(connection)
            lock_views(connection)
            texts = [as_text("viewer_id", viewer) for viewer in viewers]
            _refuse(connection, [Forgotten(customer_id, hash_of(viewer), at_ms) for viewer in viewers])
            return connection.execute(
                "DELETE FROM serving.views WHERE customer_id = %s AND (viewer_id = ANY(%s) OR viewer_user_id = ANY(%s)"
                " OR (view_id, day) IN (SELECT * FROM unnest(%s::text[], %s::bigint[])))",
                (customer_id, texts, texts, [view_id for view_id, _ in views], [day for _, day in views]),
            ).rowcount

        return self._retrying(write)

    def forget_customer(self, customer_id: str) -> dict[str, int]:
        """Deletes all rows of a customer but that it is refused; returns how many of each table there were, by name."""

        def write(connection: psycopg.Connection) -> dict[str, int]:
            self._hold_fence(connection)
            lock_views(connection)
            return delete_customer(connection, customer_id)

        return self._retrying(write)

    def keep_views(self, since_hour: int | None) -> None:
        """Keeps views that count from this hour on (since 1970), and no others; None: none."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            connection.execute("SELECT serving.keep_from(%s)", (since_hour,))

        self._retrying(write)

    def views_since(self) -> int | None:
        """The hour (since 1970) from which on views are kept; None: none are."""

        def read(connection: psycopg.Connection) -> int | None:
            row = connection.execute("SELECT since_hour FROM serving.coverage").fetchone()
            return None if row is None else row[0]

        return self._retrying(read)

    def expire(self, *, rollups_before_ms: int | None, views_since_hour: int | None) -> None:
        """Deletes what is older than it is kept: of rollups None keeps all, of views none."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            if rollups_before_ms is not None:
                expire_rollups(connection, rollups_before_ms)

        def expire_some(connection: psycopg.Connection) -> bool:
            self._hold_fence(connection)
            lock_views(connection)
            return expire_views(connection)

        self._retrying(write)
        self.keep_views(views_since_hour)
        while self._retrying(expire_some):
            pass

    def expire_customer(self, customer_id: str, *, views_before_day: int, rollups_before_ms: int) -> None:
        """Deletes what is older than this customer has it kept: views by the day that they are stored under, sums by time."""

        def write(connection: psycopg.Connection) -> None:
            self._hold_fence(connection)
            lock_views(connection)
            expire_of_customer(
                connection, customer_id, views_before_day=views_before_day, rollups_before_ms=rollups_before_ms
            )

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


def hash_of(viewer: str) -> bytes:
    """How a forgotten viewer's id is kept."""
    return hashlib.sha256(as_text("viewer_id", viewer).encode()).digest()


def _refuse(connection: psycopg.Connection, forgotten: Sequence[Forgotten]) -> None:
    connection.cursor().executemany(
        "INSERT INTO serving.forgotten AS t VALUES (%s, %s, %s) ON CONFLICT (customer_id, viewer)"
        " DO UPDATE SET forgotten_ms = greatest(t.forgotten_ms, excluded.forgotten_ms)",
        forgotten,
    )


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
