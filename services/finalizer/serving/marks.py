"""Marks of dirty slices: what is to be counted again. Each function is part of a transaction of `database`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import psycopg

from services.finalizer.serving.published import Slice, as_columns
from shared.schemas.live import OTHER

_MARK: Final = """
    INSERT INTO finalizer.dirty_slices AS t (hour, customer_id, minutes)
    SELECT hour, customer_id, minutes::smallint[]
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS u (hour, customer_id, minutes)
    ON CONFLICT (hour, customer_id) DO UPDATE SET minutes = (
        SELECT array_agg(DISTINCT m) FROM unnest(t.minutes || excluded.minutes) AS m
        WHERE t.minutes IS NOT NULL AND excluded.minutes IS NOT NULL
    )
"""
_NEWEST: Final = "SELECT hour, customer_id FROM finalizer.dirty_slices ORDER BY hour DESC, customer_id LIMIT %s"
_CLEAR: Final = """
    DELETE FROM finalizer.dirty_slices AS t USING unnest(%s::bigint[], %s::text[]) AS dirty (hour, customer_id)
    WHERE t.customer_id = dirty.customer_id AND t.hour = dirty.hour
"""
#: Of slices of which some minutes are dirty: these, and how many views were published of the hour. Published they must be, with the
#: sets in question: else it is not known which minutes table `rollups` has.
_MINUTES: Final = """
    SELECT d.hour, d.customer_id, d.minutes, coalesce(sum(r.views) FILTER (WHERE r.dimensions = ''), 0)
    FROM unnest(%s::bigint[], %s::text[]) AS w (hour, customer_id)
    JOIN finalizer.dirty_slices AS d ON d.hour = w.hour AND d.customer_id = w.customer_id
    JOIN serving.rollups AS r ON r.customer_id = d.customer_id AND r.grain = 'hour' AND r.start = to_timestamp(d.hour * 3600)
    WHERE d.minutes IS NOT NULL
    GROUP BY d.hour, d.customer_id, d.minutes
    HAVING NOT coalesce(bool_or(%s = ANY(r.members)), false)
        AND array_agg(DISTINCT r.dimensions COLLATE "C" ORDER BY r.dimensions COLLATE "C") = %s::text[]
"""


def mark(connection: psycopg.Connection, minutes: Mapping[Slice, Collection[int] | None]) -> None:
    """Marks minutes (0 to 59) of slices, None for whole slices; what is marked already stays marked."""
    rows = sorted(minutes)
    texts = [None if (its := minutes[one]) is None else "{" + ",".join(map(str, sorted(its))) + "}" for one in rows]
    connection.execute(_MARK, (*as_columns(rows), texts))


def newest(connection: psycopg.Connection, slices_max: int) -> list[Slice]:
    """Some of the marked slices, newest hour first."""
    return [Slice(*row) for row in connection.execute(_NEWEST, (slices_max,))]


def clear(connection: psycopg.Connection, slices: Sequence[Slice]) -> None:
    """Takes the marks of slices away."""
    connection.execute(_CLEAR, as_columns(slices))


def minutes_of(
    connection: psycopg.Connection, slices: Sequence[Slice], sets: Collection[str], *, views_min: int
) -> dict[Slice, list[int]]:
    """See `Serving.dirty_minutes`."""
    found = connection.execute(_MINUTES, (*as_columns(slices), OTHER, sorted(sets))).fetchall()
    if sum(row[3] for row in found) < views_min:
        return {}
    return {Slice(hour, customer_id): minutes for hour, customer_id, minutes, _ in found}
