"""The serving database, as a reader of topic `views` writes it: rows and positions in one transaction.

A position is moved only from where this process knows it to be. Two processes may read the same partition, for example after a
pause in which the group reassigned it. Then one is refused, and continues from the position that the other has written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
import structlog

from services.rim.database.view_rows import upsert_views
from services.rim.process.crash_points import CrashPoints
from services.serving.rows import Row

log = structlog.get_logger(__name__)

_CONNECT_SECONDS_MAX: Final = 5
#: A server that hangs must be noticed.
_STATEMENT_MS: Final = 60_000
#: A process that is stopped in a transaction holds up all other writers: then Postgres ends its session.
_IDLE_MS: Final = 20_000

#: What the finalizer has not made yet.
NOT_THERE: Final = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InvalidSchemaName,
)

_MOVE: Final = """
    UPDATE serving.positions AS p
    SET next_offset = m.next_offset,
        first_ms = least(p.first_ms, m.first_ms),
        landed_at = CASE WHEN m.first_ms IS NULL THEN p.landed_at ELSE clock_timestamp() END
    FROM unnest(%s::int[], %s::bigint[], %s::bigint[], %s::bigint[]) AS m (partition, expected, next_offset, first_ms)
    WHERE p.topic_id = %s AND p.partition = m.partition AND p.next_offset = m.expected
"""
_FILLED: Final = """
    SELECT count(*) = %(partitions)s AND bool_and(p.next_offset >= p.fill_until),
           (max(p.first_ms) FILTER (WHERE p.next_offset > 0 AND (p.first_offset > 0 OR EXISTS (
               SELECT FROM serving.rollups AS r
               WHERE r.grain = 'hour' AND r.dimensions = '' AND r.start < to_timestamp(p.first_ms / 1000) - interval '26 hours'
           ))))::bigint
    FROM serving.positions AS p WHERE p.topic_id = %(topic_id)s
"""
#: Of hot slices that are the same in both, the rollups are read from now on.
SETTLE: Final = "SELECT serving.settle(array_agg(hour), array_agg(customer_id)) FROM serving.hot_slices"
#: A view counts at most so many hours after the append of its row: its end, by the client's clock, is at most an hour late.
_HOURS_AFTER_APPEND: Final = 2
_HOUR_MS: Final = 3_600_000


class Superseded(RuntimeError):
    """Another process has moved a position: go on from where it is now."""


class NotKept(RuntimeError):
    """The finalizer keeps no views in Postgres: FINALIZER_RECENT_DAYS is 0, or it has not started yet."""


@dataclass(frozen=True)
class Move:
    """How far a transaction brings a partition."""

    expected: int
    next_offset: int
    #: The append of its first record, ms since 1970; None without records.
    first_ms: int | None


@dataclass(frozen=True)
class Extent:
    """The records that a partition has: from `first` up to `end`."""

    first: int
    end: int


class ViewsDatabase:
    """One connection. Every method is one transaction, and raises psycopg's errors; after one, `close`."""

    def __init__(self, dsn: str, topic_id: str, partitions: int, crash_points: CrashPoints) -> None:
        """`topic_id` and `partitions` are those of topic `views`."""
        self._dsn = dsn
        self._topic_id = topic_id
        self._partitions = partitions
        self._crash_points = crash_points
        self._connection: psycopg.Connection | None = None

    def positions(self, extents: Mapping[int, Extent], *, now_ms: int) -> dict[int, int]:
        """The next offset of each partition; one that is new begins at its first record. Raises `NotKept`."""
        connection = self._connect()
        with connection.transaction():
            kept = connection.execute("SELECT since_hour FROM serving.coverage").fetchone()
            if kept is None or kept[0] is None:
                raise NotKept("no views are kept")
            for partition, extent in extents.items():
                connection.execute(
                    "INSERT INTO serving.positions (topic_id, partition, next_offset, first_offset, fill_until, first_ms)"
                    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    (self._topic_id, partition, extent.first, extent.first, extent.end, now_ms),
                )
            found = connection.execute(
                "SELECT partition, next_offset FROM serving.positions WHERE topic_id = %s AND partition = ANY(%s)",
                (self._topic_id, list(extents)),
            )
            return dict(found.fetchall())

    def land(self, rows: Sequence[Row], moves: Mapping[int, Move]) -> int:
        """Brings rows and moves the positions that they rest on; returns how many were new. Raises `Superseded`."""
        connection = self._connect()
        with connection.transaction():
            moved = connection.execute(
                _MOVE,
                (
                    list(moves),
                    [move.expected for move in moves.values()],
                    [move.next_offset for move in moves.values()],
                    [move.first_ms for move in moves.values()],
                    self._topic_id,
                ),
            ).rowcount
            if moved != len(moves):
                raise Superseded(f"{len(moves) - moved} of {len(moves)} partitions were moved by another process")
            self._crash_points.reach("moved")
            new = upsert_views(connection, rows) if rows else 0
            self._crash_points.reach("written")
        self._crash_points.reach("committed")
        return new

    def verify(self, positions: Mapping[int, int]) -> None:
        """Raises `Superseded` where Postgres has another position: a repair resets them, or another process has moved one."""
        connection = self._connect()
        found = connection.execute(
            "SELECT partition, next_offset FROM serving.positions WHERE topic_id = %s AND partition = ANY(%s)",
            (self._topic_id, list(positions)),
        ).fetchall()
        if dict(found) != dict(positions):
            raise Superseded("positions in Postgres are others")

    def finish_filling(self) -> bool:
        """Whether nothing is missing: all partitions were read up to where they ended when they were begun.

        Then pages read sums of views from the first hour on of which the topic has every view.
        """
        connection = self._connect()
        with connection.transaction():
            covered = connection.execute("SELECT is_whole FROM serving.coverage").fetchone()
            if covered is None or covered[0]:
                return True
            wanted = {"partitions": self._partitions, "topic_id": self._topic_id}
            is_read, first_ms = connection.execute(_FILLED, wanted).fetchone() or (False, None)
            if not is_read:
                return False
            if first_ms is not None:
                connection.execute("SELECT serving.keep_from(%s)", (first_ms // _HOUR_MS + _HOURS_AFTER_APPEND,))
            connection.execute(SETTLE)
            connection.execute("UPDATE serving.coverage SET is_whole = true WHERE since_hour IS NOT NULL")
        log.info("filled", topic_id=self._topic_id, raised_to_ms=first_ms)
        return True

    def close(self) -> None:
        """Gives the connection back. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._dsn)
        return self._connection


def connect(dsn: str) -> psycopg.Connection:
    """A connection as this service has them: without transactions of its own."""
    return psycopg.connect(
        dsn,
        autocommit=True,
        connect_timeout=_CONNECT_SECONDS_MAX,
        application_name="playhead-serving",
        options=f"-c statement_timeout={_STATEMENT_MS} -c idle_in_transaction_session_timeout={_IDLE_MS}",
    )
