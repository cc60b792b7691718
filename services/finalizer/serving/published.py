"""The values that are published to the serving database, and their statements. Each is part of a transaction of `serving`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from services.finalizer.transforms.rollups import METRICS
from services.finalizer.transforms.views import HOUR_MS


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
    """The new content of slices, and their days. A slice without a group has no views left."""

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


_DELETE_ROLLUPS: Final = (
    "DELETE FROM serving.rollups AS t USING unnest(%s::bigint[], %s::text[]) AS dirty (hour, customer_id)"
    " WHERE t.customer_id = dirty.customer_id AND "
)
_HOURS: Final = "t.grain = 'hour' AND t.start = to_timestamp(dirty.hour * 3600)"
_DAYS: Final = "t.grain = 'day' AND t.start = to_timestamp(dirty.hour / 24 * 86400)"


_REFRESH_BLOCKS: Final = "SELECT finalizer.refresh_blocks(%s::bigint[], %s::text[])"


def replace_slices(connection: psycopg.Connection, rebuilt: Rebuilt) -> None:
    """Replaces the slices, their days, and the blocks they are in."""
    dirty = as_columns(rebuilt.slices)
    for condition in (_HOURS, _DAYS):
        connection.execute(sql.SQL(_DELETE_ROLLUPS + condition), dirty)
    _insert_groups(connection, rebuilt)
    connection.execute(_REFRESH_BLOCKS, dirty)


def expire_rollups(connection: psycopg.Connection, before_ms: int) -> None:
    """Deletes the rollups of before a day's begin, also from the blocks that reach over it."""
    hour = before_ms // HOUR_MS
    connection.execute("DELETE FROM serving.rollups WHERE start < %s::timestamptz", (_time(before_ms),))
    connection.execute("DELETE FROM serving.blocks WHERE (block + 1) << level <= %s", (hour,))
    # All that reach over the hour hold the one before it.
    over = "SELECT %s::bigint, customer_id FROM serving.blocks WHERE level = 13 AND block = %s::bigint >> 13"
    dirty = [Slice(*row) for row in connection.execute(over, (hour - 1, hour - 1))]
    connection.execute(_REFRESH_BLOCKS, as_columns(dirty))


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


def upsert_recent(connection: psycopg.Connection, recent: Sequence[RecentView]) -> None:
    """Brings point look-ups. Of a view id the larger (generation, revision, day) stays: it may be that of views of two days."""
    connection.execute("CREATE TEMP TABLE recent (LIKE serving.views) ON COMMIT DROP")
    columns = "customer_id, view_id, generation, revision, deleted, day, ended, document"
    with connection.cursor() as cursor, cursor.copy(f"COPY recent ({columns}) FROM STDIN") as copy:
        for one in recent:
            copy.write_row((*one[:6], _time(one.end_ms), one.document))
    connection.execute(
        f"INSERT INTO serving.views AS t ({columns})"  # noqa: S608 - our own names
        f" SELECT DISTINCT ON (customer_id, view_id) {columns} FROM recent"
        " ORDER BY customer_id, view_id, generation DESC, revision DESC, day DESC"
        " ON CONFLICT (customer_id, view_id) DO UPDATE SET generation = excluded.generation,"
        " revision = excluded.revision, deleted = excluded.deleted, day = excluded.day, ended = excluded.ended,"
        " document = excluded.document"
        " WHERE (excluded.generation, excluded.revision, excluded.day) > (t.generation, t.revision, t.day)"
    )


#: psycopg cannot read a later time back from Postgres.
_TIME_S_MAX: Final = 253_402_300_799


def _time(ms: int) -> str:
    seconds = min(max(ms // 1000, 0), _TIME_S_MAX)
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(seconds))


def as_columns(slices: Sequence[Slice]) -> tuple[list[int], list[str]]:
    """Slices as the two arrays that statements unnest."""
    return [one.hour for one in slices], [one.customer_id for one in slices]
