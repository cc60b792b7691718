"""Titles that an organisation gives to the custom dimensions of its views."""

from typing import Final

import psycopg

from services.accounts.store import audit
from services.accounts.store.audit import Actor

#: Of one organisation.
TITLES_MAX: Final = 100

_READ: Final = "SELECT name, title FROM accounts.custom_dimensions WHERE organisation_id = %s ORDER BY title, name"
_SET: Final = f"""
    INSERT INTO accounts.custom_dimensions (organisation_id, name, title)
    SELECT %(organisation_id)s, %(name)s, %(title)s
    WHERE (
        SELECT count(*) FROM accounts.custom_dimensions WHERE organisation_id = %(organisation_id)s AND name <> %(name)s
    ) < {TITLES_MAX}
    ON CONFLICT (organisation_id, name) DO UPDATE SET title = excluded.title
"""  # noqa: S608 - SQL of ours
_UNSET: Final = "DELETE FROM accounts.custom_dimensions WHERE organisation_id = %(organisation_id)s AND name = %(name)s"


class TooManyDimensions(ValueError):
    """The organisation has as many titles as it may."""


async def titles(connection: psycopg.AsyncConnection, organisation_id: str) -> list[tuple[str, str]]:
    """Name and title of each, by title."""
    rows = await (await connection.execute(_READ, (organisation_id,))).fetchall()
    return [(name, title) for name, title in rows]


async def name(connection: psycopg.AsyncConnection, name: str, title: str | None, actor: Actor) -> None:
    """Gives a dimension of the actor's organisation a title; None takes it away. Raises `TooManyDimensions`."""
    given = {"organisation_id": actor.organisation_id, "name": name, "title": title}
    changed = await connection.execute(_UNSET if title is None else _SET, given)
    if title is not None and not changed.rowcount:
        raise TooManyDimensions
    await audit.add(
        connection, actor, "named_custom_dimension", name, details={} if title is None else {"title": title}
    )
