"""The minutes of topic `live` in Postgres: rows and positions in one transaction, one process at a time.

A process lands while its session has an advisory lock. A position is moved only from where the process knows it to be, so one that
was paused and lost its lock writes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
import psycopg

from services.rim.database import locks
from services.rim.process.crash_points import CrashPoints
from services.serving.database import Superseded, connect
from services.serving.live.minutes import Minutes
from shared.schemas.live_minute import (
    GATHERED,
    GATHERED_DIMENSIONS,
    MINUTE_MS,
    STEPS,
    STEPS_DECODER,
    WHOLE,
    LiveSteps,
    add_steps,
    minute_of,
)

_EXPIRED_AT_ONCE: Final = 10_000
_MOVE: Final = """
    UPDATE serving.live_positions AS p SET next_offset = m.next_offset, until_ms = greatest(p.until_ms, m.until_ms)
    FROM unnest(%s::text[], %s::int[], %s::bigint[], %s::bigint[], %s::bigint[])
        AS m (topic_id, partition, expected, next_offset, until_ms)
    WHERE p.topic_id = m.topic_id AND p.partition = m.partition AND p.next_offset = m.expected
"""
_KNOWN: Final = """
    SELECT s.customer_id, s.dimension, s.minute, s.document::text
    FROM unnest(%s::text[], %s::bigint[]) AS w (customer_id, minute)
    JOIN serving.live_steps AS s ON s.customer_id = w.customer_id AND s.minute = w.minute
"""
_CUSTOMERS: Final = """
    SELECT minute, array_agg(DISTINCT customer_id) FROM serving.live_steps WHERE minute = ANY(%s) AND dimension = '' GROUP BY minute
"""
#: Customers whose data was deleted, and when: what topics still have of them is passed over.
_FORGOTTEN: Final = (
    "SELECT customer_id, forgotten_ms FROM serving.forgotten WHERE viewer = '' AND customer_id = ANY(%s)"
)
_PUT: Final = """
    INSERT INTO serving.{table} (customer_id, dimension, minute, document)
    SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::jsonb[])
    ON CONFLICT (customer_id, dimension, minute) DO UPDATE SET document = excluded.document
"""
_EXPIRE: Final = """
    DELETE FROM serving.{table} WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM serving.{table} WHERE minute < %s {condition} LIMIT %s
    ))
"""
_EXPIRE_STEPS: Final = _EXPIRE.format(table="live_steps", condition="")
#: In the words of their index.
EXPIRE_PAIRS: Final = _EXPIRE.format(table="live_minutes", condition="AND position(',' IN dimension) > 0")
_EXPIRE_MINUTES: Final = _EXPIRE.format(table="live_minutes", condition="")

Key = tuple[str, int]


class Position(NamedTuple):
    """Where a partition goes on, and the newest time that was landed of it, ms since 1970 (0: none)."""

    next_offset: int
    until_ms: int


class LiveMove(NamedTuple):
    """How far a transaction brings a partition."""

    expected: int
    next_offset: int
    until_ms: int


class NotOurs(RuntimeError):
    """Another process lands live minutes."""


class LiveDatabase:
    """One connection. Every method is one transaction, and raises psycopg's errors; after one, `close`."""

    def __init__(self, dsn: str, customers_max: int, crash_points: CrashPoints) -> None:
        self._dsn = dsn
        self._customers_max = customers_max
        self._crash_points = crash_points
        self._connection: psycopg.Connection | None = None

    def begin(self, firsts: Mapping[Key, int]) -> dict[Key, Position]:
        """Takes the lock; the position of each partition, of a new one its first offset. Raises `NotOurs`.

        Partitions are (topic id, number).
        """
        self.close()
        self._connection = connection = connect(self._dsn)
        (is_ours,) = connection.execute("SELECT pg_try_advisory_lock(%s)", (locks.LIVE_MINUTES,)).fetchone() or (False,)
        if not is_ours:
            raise NotOurs("another process has the lock")
        with connection.transaction():
            for (topic_id, partition), first in firsts.items():
                connection.execute(
                    "INSERT INTO serving.live_positions VALUES (%s, %s, %s, 0) ON CONFLICT DO NOTHING",
                    (topic_id, partition, first),
                )
            found = connection.execute("SELECT topic_id, partition, next_offset, until_ms FROM serving.live_positions")
            known = {(topic_id, partition): Position(*rest) for topic_id, partition, *rest in found}
            return {key: known[key] for key in firsts}

    def land(self, minutes: Minutes, moves: Mapping[Key, LiveMove]) -> None:
        """Adds minutes to what is there, and moves the positions that they rest on. Raises `Superseded`."""
        connection = self._connected()
        with connection.transaction():
            columns = [(*key, *move) for key, move in moves.items()]
            moved = connection.execute(_MOVE, [list(one) for one in zip(*columns, strict=True)]).rowcount
            if moved != len(moves):
                raise Superseded(f"{len(moves) - moved} of {len(moves)} partitions were moved by another process")
            self._crash_points.reach("live_moved")
            if minutes and (kept := self._kept(connection, minutes)):
                self._put(connection, self._bounded(connection, kept))
            self._crash_points.reach("live_written")
        self._crash_points.reach("live_committed")

    def expire(self, *, steps_before: int, pairs_before: int, minutes_before: int) -> int:
        """Deletes a bounded number of rows from before these minutes; returns how many, 0 when there are none."""
        connection, deleted = self._connected(), 0
        for statement, before in (
            (_EXPIRE_STEPS, steps_before),
            (EXPIRE_PAIRS, pairs_before),
            (_EXPIRE_MINUTES, minutes_before),
        ):
            with connection.transaction():
                deleted += connection.execute(statement, (before, _EXPIRED_AT_ONCE)).rowcount
        return deleted

    def close(self) -> None:
        """Gives the connection and its lock back. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _kept(self, connection: psycopg.Connection, minutes: Minutes) -> Minutes:
        """Those that are not of a customer whose data was deleted after them."""
        names = sorted({customer_id for customer_id, _, _ in minutes})
        forgotten: dict[str, int] = dict(connection.execute(_FORGOTTEN, (names,)).fetchall())
        return {key: steps for key, steps in minutes.items() if key[2] * MINUTE_MS > forgotten.get(key[0], -1)}

    def _bounded(self, connection: psycopg.Connection, minutes: Minutes) -> Minutes:
        """The minutes, those of customers without room added up under `GATHERED`: who has a minute keeps it."""
        known: dict[int, set[str]] = {}
        for minute, customers in connection.execute(_CUSTOMERS, (sorted({minute for _, _, minute in minutes}),)):
            known[minute] = set(customers)
        for customer_id, _, minute in sorted(minutes, key=lambda key: -_size(minutes, key)):
            customers = known.setdefault(minute, set())
            if len(customers) < self._customers_max:
                customers.add(customer_id)
        bounded: Minutes = {}
        for (customer_id, dimension, minute), steps in minutes.items():
            has_room = customer_id in known[minute] or customer_id == GATHERED
            if not has_room and dimension not in GATHERED_DIMENSIONS:
                continue
            add_steps(
                bounded.setdefault((customer_id if has_room else GATHERED, dimension, minute), LiveSteps()), steps
            )
        return bounded

    def _put(self, connection: psycopg.Connection, minutes: Minutes) -> None:
        wanted = sorted({(customer_id, minute) for customer_id, _, minute in minutes})
        found = connection.execute(_KNOWN, [list(one) for one in zip(*wanted, strict=True)])
        known = {
            (customer_id, dimension, minute): STEPS_DECODER.decode(text)
            for customer_id, dimension, minute, text in found
        }
        for key, steps in minutes.items():
            add_steps(known.setdefault(key, LiveSteps()), steps)
        # Of a dimension too: what is heard may have changed for the whole minute.
        heard = {(key[0], key[2]): steps.heard for key, steps in known.items() if key[1] == WHOLE}
        rows = sorted(known.items())
        _insert(connection, "live_steps", [(key, _text(steps)) for key, steps in rows])
        _insert(
            connection,
            "live_minutes",
            [(key, _text(minute_of(steps, heard.get((key[0], key[2]), [1] * STEPS)))) for key, steps in rows],
        )

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            raise psycopg.OperationalError("the session with the lock has ended")
        return self._connection


def _insert(connection: psycopg.Connection, table: str, rows: Iterable[tuple[tuple[str, str, int], str]]) -> None:
    columns = [(*key, text) for key, text in rows]
    connection.execute(_PUT.format(table=table), [list(one) for one in zip(*columns, strict=True)])


def _size(minutes: Minutes, key: tuple[str, str, int]) -> int:
    whole = minutes[key].values.get("", {})
    return sum(whole.get("viewers_now", ())) + sum(whole.get("beacons", ()))


def _text(document: msgspec.Struct) -> str:
    return msgspec.json.encode(document).decode()
