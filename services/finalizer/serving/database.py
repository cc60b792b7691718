"""The serving database: which slices are dirty, and what is published of them. One transaction a call.

Dirty slices are here and not in the warehouse, so that publishing slices and clearing them is one transaction.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import psycopg
import structlog

from services.finalizer.serving import marks, refused
from services.finalizer.serving.fenced import STATEMENT_MS, STATEMENT_MS_MAX, FencedConnection
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
from services.rim.database.view_rows import lock_views, upsert_views

log = structlog.get_logger(__name__)


class Serving:
    """The finalizer's tables in the serving database. What writes raises `Fenced` and `ServingAway`."""

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
        self._fenced = FencedConnection(
            dsn,
            away_seconds_max=away_seconds_max,
            stop=stop,
            statement_ms=statement_ms,
            statement_ms_max=statement_ms_max,
        )

    def open(self) -> None:
        """Applies migrations and takes the fence: from now on every older driver is refused."""
        self._fenced.run(lambda _: migrate(self._dsn))
        epoch = self._fenced.take()
        log.info("serving_open", epoch=epoch)

    def next_version(self) -> int:
        """A number for a write outside of Postgres: larger than each before it, of this driver and of those it has overtaken."""
        return self._fenced.next_version()

    def mark_dirty(self, slices: Iterable[Slice]) -> None:
        """Records whole slices as dirty; durable on return. Raises `Fenced`, `ServingAway`."""
        self.mark_minutes(dict.fromkeys(slices))

    def mark_minutes(self, minutes: Mapping[Slice, Collection[int] | None]) -> None:
        """Records as dirty what has changed of slices: some minutes (0 to 59), None for all. Durable on return.

        What is marked already stays marked. Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            marks.mark(connection, minutes)

        self._fenced.run_fenced(write)

    def dirty_minutes(
        self, slices: Sequence[Slice], sets: Collection[str], *, views_min: int
    ) -> dict[Slice, list[int]]:
        """Those of these dirty slices that are made of their minutes: what has changed, and the rollups have the rest.

        Those that were published with other sets of dimensions than `sets` (their names), or with members added up, are not among
        them. None is, if all of them together have fewer than `views_min` views: counting these again costs less.
        """

        def read(connection: psycopg.Connection) -> dict[Slice, list[int]]:
            return marks.minutes_of(connection, slices, sets, views_min=views_min)

        return self._fenced.run(read)

    def dirty(self, slices_max: int) -> list[Slice]:
        """Up to `slices_max` dirty slices, newest hour first: what people look at does not wait for a restated month."""

        def read(connection: psycopg.Connection) -> list[Slice]:
            return marks.newest(connection, slices_max)

        return self._fenced.run(read)

    def bring_recent(self, recent: Sequence[Sequence[Any]]) -> None:
        """Brings rows of `serving.views` (`rim.database.view_rows`); of each view the newest revision stays.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            upsert_views(connection, recent)

        if recent:
            self._fenced.run_fenced(write)

    def restate_recent(self, recent: Sequence[Sequence[Any]]) -> None:
        """Replaces rows of `serving.views`, whichever is newer; one without a document is only deleted.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            lock_views(connection)
            delete_views(connection, [row[:3] for row in recent])
            upsert_views(connection, [row for row in recent if row[-1] is not None])

        if recent:
            self._fenced.run_fenced(write)

    def publish(self, rebuilt: Rebuilt, *, checkpoint_id: str, batch_id: int) -> None:
        """Replaces the slices, clears them, and notes the batch: all or nothing.

        Of slices where the sums of views now agree with the rollups, the rollups are read from now on. Raises `Fenced`,
        `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> None:
            replace_slices(connection, rebuilt)
            marks.clear(connection, rebuilt.slices)
            connection.execute(
                "UPDATE finalizer.fence SET checkpoint_id = %s, batch_id = %s, published_at = clock_timestamp()",
                (checkpoint_id, batch_id),
            )
            # Last: other writers of views wait from here to the commit.
            connection.execute("SELECT serving.settle(%s::bigint[], %s::text[])", as_columns(rebuilt.slices))

        self._fenced.run_fenced(write)

    def forgotten(self) -> list[Forgotten]:
        """The viewers whose views are refused."""

        def read(connection: psycopg.Connection) -> list[Forgotten]:
            found = connection.execute("SELECT customer_id, viewer, forgotten_ms FROM serving.forgotten")
            return [Forgotten(customer_id, bytes(viewer), at_ms) for customer_id, viewer, at_ms in found]

        return self._fenced.run(read)

    def refuse(self, forgotten: Sequence[Forgotten]) -> None:
        """Refuses views of these viewers from now on. Raises `Fenced`, `ServingAway`."""

        def write(connection: psycopg.Connection) -> None:
            refused.refuse(connection, forgotten)

        if forgotten:
            self._fenced.run_fenced(write)

    def forget_again(self, known: Sequence[Forgotten]) -> None:
        """Refuses views of these viewers, and of those that were not refused yet deletes what is here.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> int:
            return refused.forget_again(connection, known)

        if known and (added := self._fenced.run_fenced(write)):
            log.warning("forgotten_again", viewers=added)

    def forget_views(
        self, customer_id: str, viewers: Sequence[str], views: Sequence[tuple[str, int]], *, at_ms: int
    ) -> int:
        """Deletes the views (id, day) of a viewer, and all that have the viewer's id; returns how many there were.

        Views of these viewers that began up to `at_ms` are refused from now on, when topic `views` is read again.
        """

        def write(connection: psycopg.Connection) -> int:
            return refused.forget_views(connection, customer_id, viewers, views, at_ms=at_ms)

        return self._fenced.run_fenced(write)

    def forget_customer(self, customer_id: str) -> dict[str, int]:
        """Deletes all rows of a customer but that it is refused; returns how many of each table there were, by name."""

        def write(connection: psycopg.Connection) -> dict[str, int]:
            lock_views(connection)
            return delete_customer(connection, customer_id)

        return self._fenced.run_fenced(write)

    def keep_views(self, since_hour: int | None) -> None:
        """Keeps views that count from this hour on (since 1970), and no others; None: none."""

        def write(connection: psycopg.Connection) -> None:
            connection.execute("SELECT serving.keep_from(%s)", (since_hour,))

        self._fenced.run_fenced(write)

    def clock_ms(self) -> int:
        """The time of the server, ms since 1970."""

        def read(connection: psycopg.Connection) -> int:
            row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").fetchone()
            assert row is not None
            return int(row[0])

        return self._fenced.run(read)

    def views_since(self) -> int | None:
        """The hour (since 1970) from which on views are kept; None: none are."""

        def read(connection: psycopg.Connection) -> int | None:
            row = connection.execute("SELECT since_hour FROM serving.coverage").fetchone()
            return None if row is None else row[0]

        return self._fenced.run(read)

    def expire(
        self,
        *,
        rollups_before_ms: int | None,
        views_since_hour: int | None,
        turn: AbstractContextManager[Any] | None = None,
    ) -> None:
        """Deletes what is older than it is kept: of rollups None keeps all, of views none.

        `turn` is held for each transaction, so that batches come between.
        """
        turn = turn or nullcontext()

        def write(connection: psycopg.Connection) -> None:
            if rollups_before_ms is not None:
                expire_rollups(connection, rollups_before_ms)

        def expire_some(connection: psycopg.Connection) -> bool:
            lock_views(connection)
            return expire_views(connection)

        with turn:
            self._fenced.run_fenced(write)
        with turn:
            self.keep_views(views_since_hour)
        while True:
            with turn:
                if not self._fenced.run_fenced(expire_some):
                    return

    def expire_customer(self, customer_id: str, *, views_before_day: int, rollups_before_ms: int) -> None:
        """Deletes what is older than this customer has it kept: views by the day that they are stored under, sums by time."""

        def write(connection: psycopg.Connection) -> None:
            lock_views(connection)
            expire_of_customer(
                connection, customer_id, views_before_day=views_before_day, rollups_before_ms=rollups_before_ms
            )

        self._fenced.run_fenced(write)

    def swapped(self) -> list[int]:
        """The generations that have been swapped in and can be taken back."""

        def read(connection: psycopg.Connection) -> list[int]:
            return [row[0] for row in connection.execute("SELECT generation FROM finalizer.swapped ORDER BY 1")]

        return self._fenced.run(read)

    def note_swapped(self, generation: int, *, is_in: bool) -> None:
        """Notes that a generation is being swapped in, or has been taken back; durable on return."""

        def write(connection: psycopg.Connection) -> None:
            statement = (
                "INSERT INTO finalizer.swapped (generation) VALUES (%s) ON CONFLICT DO NOTHING"
                if is_in
                else "DELETE FROM finalizer.swapped WHERE generation = %s"
            )
            connection.execute(statement, (generation,))

        self._fenced.run_fenced(write)

    def maintained(self, names: Sequence[str], *, now_ms: int) -> dict[str, int]:
        """When each of these tables was last maintained, ms since 1970; of one that never was, `now_ms` is noted.

        Raises `Fenced`, `ServingAway`.
        """

        def write(connection: psycopg.Connection) -> dict[str, int]:
            connection.execute(
                "INSERT INTO finalizer.maintained SELECT unnest(%s::text[]), %s ON CONFLICT DO NOTHING",
                (list(names), now_ms),
            )
            found = connection.execute(
                "SELECT name, at_ms FROM finalizer.maintained WHERE name = ANY(%s)", (list(names),)
            )
            return dict(found.fetchall())

        return self._fenced.run_fenced(write)

    def note_maintained(self, name: str, at_ms: int) -> None:
        """Notes when a table was maintained; durable on return. Raises `Fenced`, `ServingAway`."""

        def write(connection: psycopg.Connection) -> None:
            connection.execute(
                "INSERT INTO finalizer.maintained VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET at_ms = excluded.at_ms",
                (name, at_ms),
            )

        self._fenced.run_fenced(write)

    def close(self) -> None:
        """Gives the connection back. Safe to call twice."""
        self._fenced.close()
