"""The values that are published to the serving database, and their statements. Each is part of a transaction of `serving`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from services.finalizer.transforms.views import DAY_MS, HOUR_MS
from shared.measures import HISTOGRAMS


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


#: Under this id is what holds of all customers.
_OF_ALL: Final = ""
#: What has been deleted does not come back if more is kept later.
_NOTE_KEPT: Final = """
    INSERT INTO serving.sums_from AS t VALUES (%s, %s)
    ON CONFLICT (customer_id) DO UPDATE SET hour = excluded.hour WHERE t.hour < excluded.hour
"""


def expire_rollups(connection: psycopg.Connection, before_ms: int) -> None:
    """Deletes the rollups from before a day's begin, also from the blocks that reach over it; notes what is kept."""
    hour = before_ms // HOUR_MS
    connection.execute(_NOTE_KEPT, (_OF_ALL, hour))
    connection.execute("DELETE FROM serving.rollups WHERE start < %s::timestamptz", (_time(before_ms),))
    connection.execute("DELETE FROM serving.blocks WHERE (block + 1) << level <= %s", (hour,))
    # All that reach over the hour hold the one before it.
    over = "SELECT %s::bigint, customer_id FROM serving.blocks WHERE level = 13 AND block = %s::bigint >> 13"
    dirty = [Slice(*row) for row in connection.execute(over, (hour - 1, hour - 1))]
    connection.execute(_REFRESH_BLOCKS, as_columns(dirty))


def _insert_groups(connection: psycopg.Connection, rebuilt: Rebuilt) -> None:
    histograms = [f"{metric}_{part}" for metric in HISTOGRAMS for part in ("buckets", "counts")]
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


_FORGET: Final = (
    "DELETE FROM serving.views AS t USING unnest(%s::text[], %s::text[], %s::bigint[]) AS gone (customer_id, view_id, day)"
    " WHERE t.customer_id = gone.customer_id AND t.view_id = gone.view_id AND t.day = gone.day"
)


def delete_views(connection: psycopg.Connection, keys: Sequence[Sequence[Any]]) -> None:
    """Deletes the rows of these views: (customer, view id, day)."""
    connection.execute(_FORGET, tuple([key[part] for key in keys] for part in range(3)))


def expire_of_customer(
    connection: psycopg.Connection, customer_id: str, *, views_before_day: int, rollups_before_ms: int
) -> None:
    """As `expire_rollups` and `expire_views`, of one customer: hot rows of earlier days, sums of earlier times."""
    connection.execute("DELETE FROM serving.views WHERE customer_id = %s AND day < %s", (customer_id, views_before_day))
    hour = rollups_before_ms // HOUR_MS
    connection.execute(_NOTE_KEPT, (customer_id, hour))
    deleted = "DELETE FROM serving.rollups WHERE customer_id = %s AND start < %s::timestamptz"
    connection.execute(deleted, (customer_id, _time(rollups_before_ms)))
    connection.execute(
        "DELETE FROM serving.blocks WHERE customer_id = %s AND (block + 1) << level <= %s", (customer_id, hour)
    )
    connection.execute(_REFRESH_BLOCKS, as_columns([Slice(hour - 1, customer_id)]))


#: Every table of these schemas that has rows of customers. Hot views come first: their triggers write sums.
_OF_CUSTOMERS: Final = """
    SELECT c.table_schema, c.table_name FROM information_schema.columns AS c
    JOIN information_schema.tables AS t USING (table_schema, table_name)
    WHERE c.column_name = 'customer_id' AND t.table_type = 'BASE TABLE' AND c.table_schema IN ('serving', 'finalizer')
      AND (c.table_schema, c.table_name) <> ('serving', 'forgotten')
    ORDER BY (c.table_schema, c.table_name) <> ('serving', 'views'), 1, 2
"""


def delete_customer(connection: psycopg.Connection, customer_id: str) -> dict[str, int]:
    """Deletes all rows of a customer; returns how many of each table there were."""
    deleted = {}
    for schema, table in connection.execute(_OF_CUSTOMERS).fetchall():
        statement = sql.SQL("DELETE FROM {} WHERE customer_id = %s").format(sql.Identifier(schema, table))
        deleted[f"{schema}.{table}"] = connection.execute(statement, (customer_id,)).rowcount
    return deleted


def first_kept_hour(now_ms: int, days: float) -> int | None:
    """The hour (since 1970) from which on views are kept for so many days; None where none are."""
    return int(now_ms - days * DAY_MS) // HOUR_MS if days else None


_EXPIRED_MAX: Final = 10_000
#: In the order of their index: Postgres could choose to read the whole table for the few that are old.
_EXPIRE: Final = """
    DELETE FROM serving.views AS t USING (
        SELECT v.customer_id, v.view_id, v.day FROM serving.views AS v {which} LIMIT %s
    ) AS gone
    WHERE t.customer_id = gone.customer_id AND t.view_id = gone.view_id AND t.day = gone.day
"""
EXPIRE_BEFORE: Final = _EXPIRE.format(which="WHERE v.hour < %s ORDER BY v.hour")
_EXPIRE_ALL: Final = _EXPIRE.format(which="")


def expire_views(connection: psycopg.Connection) -> bool:
    """Deletes views that are not kept any more, so many that other writers wait shortly; whether there may be more."""
    row = connection.execute("SELECT since_hour FROM serving.coverage").fetchone()
    if row is None or row[0] is None:
        deleted = connection.execute(_EXPIRE_ALL, (_EXPIRED_MAX,))
    else:
        deleted = connection.execute(EXPIRE_BEFORE, (row[0], _EXPIRED_MAX))
    return deleted.rowcount == _EXPIRED_MAX


#: psycopg cannot read a later time back from Postgres.
_TIME_S_MAX: Final = 253_402_300_799


def _time(ms: int) -> str:
    seconds = min(max(ms // 1000, 0), _TIME_S_MAX)
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(seconds))


def as_columns(slices: Sequence[Slice]) -> tuple[list[int], list[str]]:
    """Slices as the two arrays that statements unnest."""
    return [one.hour for one in slices], [one.customer_id for one in slices]
