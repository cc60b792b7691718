"""Whose views are refused. Each function is part of a transaction of `database`."""

import hashlib
from collections.abc import Sequence
from typing import Final

import psycopg

from services.finalizer.serving import marks
from services.finalizer.serving.published import Slice
from services.finalizer.transforms.forgotten import Forgotten
from services.rim.database.view_rows import as_text, lock_views

_GIVEN: Final = "unnest(%s::text[], %s::bytea[], %s::bigint[]) AS f (customer_id, viewer, forgotten_ms)"
_REFUSE: Final = f"""
    INSERT INTO serving.forgotten AS t (customer_id, viewer, forgotten_ms)
    SELECT customer_id, viewer, max(forgotten_ms) FROM {_GIVEN} GROUP BY 1, 2
    ON CONFLICT (customer_id, viewer) DO UPDATE SET forgotten_ms = excluded.forgotten_ms
    WHERE t.forgotten_ms < excluded.forgotten_ms
    RETURNING customer_id, viewer, forgotten_ms
"""  # noqa: S608 - SQL of ours
#: By one id at a time: an equality that Postgres can hash.
_DELETE: Final = (
    *(
        f"DELETE FROM serving.views AS v USING {_GIVEN} WHERE v.customer_id = f.customer_id"  # noqa: S608 - SQL of ours
        f" AND v.first_append_ms <= f.forgotten_ms AND f.viewer = {viewer}"
        for viewer in ("''", "sha256(convert_to(v.viewer_id, 'UTF8'))", "sha256(convert_to(v.viewer_user_id, 'UTF8'))")
    ),
    *(
        f"DELETE FROM serving.{table} AS m USING {_GIVEN} WHERE m.customer_id = f.customer_id AND f.viewer = ''"  # noqa: S608
        " AND m.minute * 60000 <= f.forgotten_ms"
        for table in ("live_minutes", "live_steps")
    ),
)
_SUMMED: Final = f"""
    SELECT DISTINCT floor(extract(epoch FROM r.start) / 3600)::bigint, r.customer_id
    FROM serving.rollups AS r JOIN {_GIVEN} ON r.customer_id = f.customer_id AND f.viewer = ''
    WHERE r.grain = 'hour'
"""  # noqa: S608 - SQL of ours


def refuse(connection: psycopg.Connection, forgotten: Sequence[Forgotten]) -> list[Forgotten]:
    """Refuses views of these viewers; returns those of them that were not refused yet, or not up to that time."""
    return [Forgotten(*row) for row in connection.execute(_REFUSE, _as_columns(forgotten))]


def forget_again(connection: psycopg.Connection, known: Sequence[Forgotten]) -> int:
    """Refuses views of these viewers, and deletes hot rows of those that were not refused yet; returns how many those are.

    Of a whole customer live minutes go too, and all hours that were published are marked.
    """
    # Else rows that another writer is about to commit would stay.
    lock_views(connection)
    added = refuse(connection, known)
    if added:
        given = _as_columns(added)
        for statement in _DELETE:
            connection.execute(statement, given)
        marks.mark(connection, {Slice(*row): None for row in connection.execute(_SUMMED, given)})
    return len(added)


def forget_views(
    connection: psycopg.Connection,
    customer_id: str,
    viewers: Sequence[str],
    views: Sequence[tuple[str, int]],
    *,
    at_ms: int,
) -> int:
    """See `Serving.forget_views`."""
    lock_views(connection)
    texts = [as_text("viewer_id", viewer) for viewer in viewers]
    refuse(connection, [Forgotten(customer_id, hash_of(viewer), at_ms) for viewer in viewers])
    return connection.execute(
        "DELETE FROM serving.views WHERE customer_id = %s AND (viewer_id = ANY(%s) OR viewer_user_id = ANY(%s)"
        " OR (view_id, day) IN (SELECT * FROM unnest(%s::text[], %s::bigint[])))",
        (customer_id, texts, texts, [view_id for view_id, _ in views], [day for _, day in views]),
    ).rowcount


def hash_of(viewer: str) -> bytes:
    """How a forgotten viewer's id is kept."""
    return hashlib.sha256(as_text("viewer_id", viewer).encode()).digest()


def _as_columns(forgotten: Sequence[Forgotten]) -> tuple[list[str], list[bytes], list[int]]:
    """As the three arrays that statements unnest."""
    return (
        [one.customer_id for one in forgotten],
        [one.viewer for one in forgotten],
        [one.forgotten_ms for one in forgotten],
    )
