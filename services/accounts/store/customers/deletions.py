"""Requests that data be deleted: made, listed, shown with their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.core.deletions import OPEN_MAX, STEPS, names_viewer, sha256_of
from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.accounts.store.tenants.organisations import DELETION_UNDER_WAY, OWNER_OF, CustomerUnknown, lock_deletions

_COLUMNS: Final = (
    "id::text AS id, number, organisation_id::text AS organisation_id, customer_id, viewer, viewer_sha256, sessions, asked_by,"
    " asked_at, state, problem, ended_at"
)
_SAME: Final = f"""
    SELECT {_COLUMNS} FROM accounts.deletions WHERE {DELETION_UNDER_WAY}
        AND organisation_id IS NOT DISTINCT FROM %(organisation_id)s
        AND customer_id = %(customer_id)s AND viewer IS NOT DISTINCT FROM %(viewer)s AND sessions = %(sessions)s
    ORDER BY number LIMIT 1
"""  # noqa: S608 - SQL of ours
_ADD: Final = f"""
    INSERT INTO accounts.deletions (organisation_id, customer_id, viewer, viewer_sha256, sessions, asked_by)
    SELECT %(organisation_id)s, %(customer_id)s, %(viewer)s, %(viewer_sha256)s, %(sessions)s, %(asked_by)s
    WHERE (SELECT count(*) FROM accounts.deletions
           WHERE {DELETION_UNDER_WAY} AND organisation_id IS NOT DISTINCT FROM %(organisation_id)s) < {OPEN_MAX}
    RETURNING {_COLUMNS}
"""  # noqa: S608 - SQL of ours
_ADD_STEP: Final = "INSERT INTO accounts.deletion_steps (deletion_id, position, step) VALUES (%s, %s, %s)"
_LIST: Final = f"""
    SELECT {_COLUMNS} FROM accounts.deletions AS d WHERE {OWNER_OF.format(customer="d.customer_id")}::text = %(organisation_id)s
        AND number < %(before)s AND (%(own)s::text[] IS NULL OR customer_id = ANY(%(own)s))
    ORDER BY number DESC LIMIT %(rows_max)s
"""  # noqa: S608 - SQL of ours
_ONE: Final = f"SELECT {_COLUMNS} FROM accounts.deletions WHERE id::text = %s"  # noqa: S608 - SQL of ours
_STEPS: Final = """
    SELECT step, state, found, began_at, ended_at FROM accounts.deletion_steps WHERE deletion_id::text = %s ORDER BY position
"""


class TooManyDeletions(ValueError):
    """The organisation has as many requests under way as it may."""


@dataclass(frozen=True)
class StepRow:
    """One step of a request, and what was found and deleted in it."""

    step: str
    state: str
    found: Mapping[str, int]
    began_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class Deletion:
    """A request. `viewer` None: of a whole customer if there is no hash; else it is done, and the id is deleted too."""

    id: str
    number: int
    organisation_id: str | None
    customer_id: str
    viewer: str | None = field(repr=False)
    viewer_sha256: bytes | None
    sessions: list[str] = field(repr=False)
    asked_by: str
    asked_at: datetime
    state: str
    problem: str
    ended_at: datetime | None

    @property
    def is_whole(self) -> bool:
        """Whether all of the customer's data is meant."""
        return self.viewer_sha256 is None


def wanted(
    customer_id: str, viewer: str | None, sessions: Sequence[str], *, organisation_id: str | None, asked_by: str
) -> dict[str, Any]:
    """A new request as its statements take it."""
    return {
        "organisation_id": organisation_id,
        "customer_id": customer_id,
        "viewer": viewer,
        "viewer_sha256": None if viewer is None else sha256_of(viewer),
        "sessions": sorted(set(sessions)),
        "asked_by": asked_by[: audit.TEXT_CHARS_MAX],
    }


async def ask(connection: psycopg.AsyncConnection, new: Mapping[str, Any], actor: Actor) -> Deletion:
    """A new request, or the same one that is under way.

    Raises `TooManyDeletions`, or `CustomerUnknown` where the customer is another organisation's by now.
    """
    # Two at once must not both find none, and the customer must not move meanwhile.
    await lock_deletions(connection)
    if await owner_of(connection, new["customer_id"]) != new["organisation_id"]:
        raise CustomerUnknown
    async with connection.cursor(row_factory=class_row(Deletion)) as cursor:
        if (same := await (await cursor.execute(_SAME, new)).fetchone()) is not None:
            return same
        made = await (await cursor.execute(_ADD, new)).fetchone()
        if made is None:
            raise TooManyDeletions
        await cursor.executemany(_ADD_STEP, [(made.id, position, step) for position, step in enumerate(STEPS)])
    # The log outlives the data: it has the request's id, and no viewer's.
    details = {"deletion": made.id, "of": "customer" if made.is_whole else "viewer"}
    await audit.add(connection, actor, "asked_for_deletion", made.customer_id, details=details)
    return made


async def newest(
    connection: psycopg.AsyncConnection, organisation_id: str, own: Sequence[str] | None, *, before: int, rows_max: int
) -> list[Deletion]:
    """Requests for the customers of an organisation before a number, the newest first; of these customers, if any are named."""
    asked = {
        "organisation_id": organisation_id,
        "own": None if own is None else list(own),
        "before": before,
        "rows_max": rows_max,
    }
    async with connection.cursor(row_factory=class_row(Deletion)) as cursor:
        return await (await cursor.execute(_LIST, asked)).fetchall()


async def one(connection: psycopg.AsyncConnection, deletion_id: str) -> tuple[Deletion, list[StepRow]] | None:
    """A request and its steps, in order; None where there is no such request."""
    async with connection.cursor(row_factory=class_row(Deletion)) as cursor:
        found = await (await cursor.execute(_ONE, (deletion_id,))).fetchone()
    if found is None:
        return None
    async with connection.cursor(row_factory=class_row(StepRow)) as cursor:
        return found, await (await cursor.execute(_STEPS, (deletion_id,))).fetchall()


#: Organisations take turns, so that the many open requests of one delay none of another. Of one the oldest is first; what waits for
#: something that has to be mended goes behind.
TURN: Final = "row_number() OVER (PARTITION BY organisation_id ORDER BY problem <> '', number)"
_IS_TURN: Final = f"""
    SELECT d.id::text, d.customer_id
    FROM (SELECT *, {TURN} AS turn FROM accounts.deletions WHERE {DELETION_UNDER_WAY}) AS d
    JOIN accounts.deletion_steps AS s ON s.deletion_id = d.id
    WHERE s.step = %(step)s AND s.state <> 'done' AND NOT EXISTS (
        SELECT FROM accounts.deletion_steps AS o WHERE o.deletion_id = d.id AND o.position < s.position AND o.state <> 'done'
    ) ORDER BY d.turn, d.number LIMIT 100
"""  # noqa: S608 - SQL of ours
_END: Final = """
    UPDATE accounts.deletion_steps SET state = 'done', found = %s, began_at = coalesce(began_at, now()), ended_at = now()
    WHERE deletion_id::text = %s AND step = %s
"""

_DONE: Final = """
    UPDATE accounts.deletions SET state = 'done', problem = '', ended_at = now(), viewer = NULL, sessions = '{}'
    WHERE id::text = %s
"""


async def waiting_for(connection: psycopg.AsyncConnection, step: str) -> list[tuple[str, str]]:
    """Requests (id, customer) whose turn this step is: every step before it is done."""
    found = await connection.execute(_IS_TURN, {"step": step})
    return [(str(row[0]), str(row[1])) for row in await found.fetchall()]


_OF_REQUEST: Final = "SELECT customer_id, viewer, viewer_sha256 IS NULL FROM accounts.deletions WHERE id::text = %s"
#: Those of all customers are searched where the customer is one of them: an id may be a word that others use.
_SAVED: Final = f"""
    SELECT id, name, address FROM accounts.saved_views
    WHERE customer_id = %(customer)s OR customer_id IS NULL AND organisation_id = {OWNER_OF.format(customer="%(customer)s")}
"""  # noqa: S608 - SQL of ours
_DELETE_SAVED: Final = "DELETE FROM accounts.saved_views WHERE id = ANY(%s)"
_DELETE_SAVED_OF: Final = "DELETE FROM accounts.saved_views WHERE customer_id = %s"
_DELETE_THRESHOLDS_OF: Final = "DELETE FROM accounts.thresholds WHERE customer_id = %s"


async def end_last(connection: psycopg.AsyncConnection, deletion_id: str, step: str, found: Mapping[str, int]) -> None:
    """The last step is done, and so is the request: with the data goes the id that it was deleted by.

    Saved views that name the viewer go in the same transaction; of a customer, all of its saved views and thresholds.
    """
    row = await (await connection.execute(_OF_REQUEST, (deletion_id,))).fetchone()
    if row is None:
        return
    chosen = await _delete_chosen(connection, *row)
    await connection.execute(_END, (Jsonb(dict(found) | chosen), deletion_id, step))
    await connection.execute(_DONE, (deletion_id,))


async def _delete_chosen(
    connection: psycopg.AsyncConnection, customer_id: str, viewer: str | None, is_whole: bool
) -> dict[str, int]:
    if is_whole:
        saved = await connection.execute(_DELETE_SAVED_OF, (customer_id,))
        thresholds = await connection.execute(_DELETE_THRESHOLDS_OF, (customer_id,))
        return {"saved_views": saved.rowcount, "thresholds": thresholds.rowcount}
    if viewer is None:
        return {}
    found = await (await connection.execute(_SAVED, {"customer": customer_id})).fetchall()
    naming = [key for key, name, address in found if names_viewer(name, viewer) or names_viewer(address, viewer)]
    await connection.execute(_DELETE_SAVED, (naming,))
    return {"saved_views": len(naming)}


_OWNER: Final = f"SELECT {OWNER_OF.format(customer='%s')}::text"


async def owner_of(connection: psycopg.AsyncConnection, customer_id: str) -> str | None:
    """The organisation that a customer belongs to; None where there is none yet."""
    row = await (await connection.execute(_OWNER, (customer_id,))).fetchone()
    return None if row is None else row[0]
