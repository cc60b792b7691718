"""Addresses of the page that people keep under a name: their own, and those of their organisation."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.store import audit
from services.accounts.store.audit import Actor

#: Of one person, and of one organisation.
SAVED_MAX: Final = 200

_COLUMNS: Final = "id::text, name, address, customer_id, person_id IS NULL AS is_shared, made_by, saved_at"
_LIST: Final = f"""
    SELECT {_COLUMNS} FROM accounts.saved_views
    WHERE organisation_id = %s AND (person_id IS NULL OR person_id::text = %s) ORDER BY name, person_id NULLS FIRST
"""  # noqa: S608 - SQL of ours
_SAVE: Final = f"""
    INSERT INTO accounts.saved_views (organisation_id, person_id, name, address, customer_id, made_by)
    SELECT %(organisation_id)s, %(person_id)s, %(name)s, %(address)s, %(customer_id)s, %(made_by)s
    WHERE (
        SELECT count(*) FROM accounts.saved_views
        WHERE organisation_id = %(organisation_id)s AND person_id IS NOT DISTINCT FROM %(person_id)s AND name <> %(name)s
    ) < {SAVED_MAX}
    ON CONFLICT (organisation_id, person_id, name)
    DO UPDATE SET address = excluded.address, customer_id = excluded.customer_id, made_by = excluded.made_by, saved_at = now()
    RETURNING {_COLUMNS}
"""  # noqa: S608 - SQL of ours
#: Somebody else's own is as unknown as one that does not exist.
_FIND: Final = f"""
    SELECT {_COLUMNS} FROM accounts.saved_views
    WHERE id::text = %s AND organisation_id = %s AND (person_id IS NULL OR person_id::text = %s) FOR UPDATE
"""  # noqa: S608 - SQL of ours
_DELETE: Final = "DELETE FROM accounts.saved_views WHERE id::text = %s"


class SavedViewUnknown(LookupError):
    """There is no such saved view for the asker."""


class TooManySavedViews(ValueError):
    """The person or the organisation has as many as it may."""


@dataclass(frozen=True)
class SavedViewRow:
    """A saved view; `is_shared`: the organisation's."""

    id: str
    name: str
    address: str
    #: None: all customers.
    customer_id: str | None
    is_shared: bool
    made_by: str
    saved_at: datetime


def _person(actor: Actor) -> str | None:
    """A token has no views of its own."""
    return actor.id if actor.kind == "person" else None


async def saved_views(connection: psycopg.AsyncConnection, actor: Actor) -> list[SavedViewRow]:
    """The actor's own and the organisation's, by name: at most twice `SAVED_MAX`."""
    async with connection.cursor(row_factory=class_row(SavedViewRow)) as cursor:
        await cursor.execute(_LIST, (actor.organisation_id, _person(actor)))
        return await cursor.fetchall()


async def save(
    connection: psycopg.AsyncConnection,
    actor: Actor,
    *,
    name: str,
    address: str,
    customer_id: str | None,
    is_shared: bool,
) -> SavedViewRow:
    """Keeps an address; one of the same name and owner gets the new address. Raises `TooManySavedViews`."""
    given = {
        "organisation_id": actor.organisation_id,
        "person_id": None if is_shared else actor.id,
        "name": name,
        "address": address,
        "customer_id": customer_id,
        "made_by": actor.name,
    }
    async with connection.cursor(row_factory=class_row(SavedViewRow)) as cursor:
        made = await (await cursor.execute(_SAVE, given)).fetchone()
    if made is None:
        raise TooManySavedViews
    await audit.add(connection, actor, "saved_view", name, details={"is_shared": is_shared, "id": made.id})
    return made


async def delete(connection: psycopg.AsyncConnection, actor: Actor, view_id: str, *, shared_too: bool) -> None:
    """Deletes one of the actor's own, or of the organisation's if the actor may. Raises `SavedViewUnknown` or `PermissionError`."""
    async with connection.cursor(row_factory=class_row(SavedViewRow)) as cursor:
        found = await (await cursor.execute(_FIND, (view_id, actor.organisation_id, _person(actor)))).fetchone()
    if found is None:
        raise SavedViewUnknown
    if found.is_shared and not shared_too:
        raise PermissionError
    await connection.execute(_DELETE, (view_id,))
    await audit.add(connection, actor, "deleted_saved_view", found.name, details={"is_shared": found.is_shared})
