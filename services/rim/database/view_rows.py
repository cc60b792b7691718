"""Rows of table `serving.views`: the finalizer and the service `serving` both write them, by this one statement.

The first of them writes a revision; the other finds it there. Triggers keep the sums of minutes and hours
(`services/finalizer/serving/migrations/r0007_hot_rows.sql`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from services.rim.database import locks
from shared.measures import DIMENSIONS, FIELDS, MEMBER_CHARACTERS_MAX

_KEY: Final = ("customer_id", "view_id", "day")
_PLACE: Final = (
    *_KEY,
    "generation",
    "revision",
    "deleted",
    "first_append_ms",
    "last_append_ms",
    "view_end_ms",
)
_VIEWERS: Final = ("viewer_id", "viewer_user_id")
#: What a writer gives of each view, in this order: fields of `shared.schemas.view.View`, then the whole row as JSON.
COLUMNS: Final = (*_PLACE, *_VIEWERS, *DIMENSIONS, *FIELDS, "document")
#: Of these a value is cut to `MEMBER_CHARACTERS_MAX`, as in rollups.
CUT: Final = frozenset(DIMENSIONS)
#: Postgres has no text with a zero character: in these it is replaced.
TEXTS: Final = frozenset({*_VIEWERS, *DIMENSIONS})
#: An index entry of Postgres holds 2.7 KB: a view with a longer id has no row.
VIEW_ID_BYTES_MAX: Final = 2_000

_LISTED: Final = ", ".join(COLUMNS)
_NEW: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in _KEY)
_TEMPORARY: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS incoming (LIKE serving.views INCLUDING GENERATED INCLUDING DEFAULTS)"
    " ON COMMIT DELETE ROWS"
)
_COPY: Final = f"COPY incoming ({_LISTED}) FROM STDIN"
#: A row that is stored already is not touched: to lock it would write it.
_UPSERT: Final = f"""
    INSERT INTO serving.views AS t ({_LISTED})
    SELECT DISTINCT ON (customer_id, view_id, day) {_LISTED}
    FROM incoming AS i, serving.coverage AS c
    WHERE NOT EXISTS (
        SELECT FROM serving.views AS s
        WHERE s.customer_id = i.customer_id AND s.view_id = i.view_id AND s.day = i.day
          AND (s.generation, s.revision) >= (i.generation, i.revision)
    ) AND (i.hour >= c.since_hour OR EXISTS (
        SELECT FROM serving.views AS s
        WHERE s.customer_id = i.customer_id AND s.view_id = i.view_id AND s.day = i.day
    )) AND NOT EXISTS (
        SELECT FROM serving.forgotten AS f
        WHERE f.customer_id = i.customer_id AND i.first_append_ms <= f.forgotten_ms
          AND f.viewer IN ('', sha256(convert_to(i.viewer_id, 'UTF8')), sha256(convert_to(i.viewer_user_id, 'UTF8')))
    )
    ORDER BY customer_id, view_id, day, generation DESC, revision DESC
    ON CONFLICT (customer_id, view_id, day) DO UPDATE SET {_NEW}, written_at = clock_timestamp()
    WHERE (excluded.generation, excluded.revision) > (t.generation, t.revision)
"""  # noqa: S608 - names of ours


#: As the trigger on the table takes it.
_LOCK: Final = f"SELECT pg_advisory_xact_lock({locks.VIEWS})"


def lock_views(connection: psycopg.Connection) -> None:
    """Waits until nobody else writes views; holds until the present transaction ends.

    A statement that waits within its trigger sees the former rows: what the other has written meanwhile would not be deleted.
    Lock positions before, where both are needed.
    """
    connection.execute(_LOCK)


def upsert_views(connection: psycopg.Connection, rows: Iterable[Sequence[Any]]) -> int:
    """Brings rows of `COLUMNS` in the present transaction; returns how many were new.

    Of each view and day the larger (generation, revision) stays; of equal ones the stored one. Views from before what the table
    covers, and of forgotten viewers, are passed over.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL client_min_messages = warning")
        cursor.execute(_TEMPORARY)
        with cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)
        # Else the statement would not see a viewer that is being forgotten.
        lock_views(connection)
        cursor.execute(_UPSERT)
        return cursor.rowcount


def as_text(name: str, value: str) -> str:
    """A text as its column holds it."""
    cut = value[:MEMBER_CHARACTERS_MAX] if name in CUT else value
    return cut.replace("\0", "\ufffd")
