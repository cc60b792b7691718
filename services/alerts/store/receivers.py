"""Receivers in Postgres: where messages go. The sender reads their addresses and secrets; no answer shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.store import audit
from services.accounts.store.audit import Actor

RECEIVERS_MAX: Final = 100


class TooManyReceivers(ValueError):
    """The organisation has as many receivers as it may."""


@dataclass(frozen=True)
class Receiver:
    """A receiver, with what sends to it."""

    id: str
    organisation_id: str
    name: str
    kind: str
    target: dict[str, Any]
    template: str | None
    changed_at: datetime
    changed_by: str


_COLUMNS: Final = "id::text, organisation_id::text, name, kind, target, template, changed_at, changed_by"


async def receivers_of(
    connection: psycopg.AsyncConnection, organisation_id: str, *, after: tuple[str, str] | None, rows_max: int
) -> list[Receiver]:
    """The receivers of an organisation by name and id, after one of these."""
    after_name, after_id = after or (None, "")
    async with connection.cursor(row_factory=class_row(Receiver)) as cursor:
        await cursor.execute(
            f"""
            SELECT {_COLUMNS} FROM alerts.receivers
            WHERE organisation_id = %(organisation)s AND deleted_at IS NULL
              AND (%(after_name)s::text IS NULL OR (name, receivers.id::text) > (%(after_name)s, %(after_id)s))
            ORDER BY name, receivers.id::text LIMIT %(rows)s
            """,  # noqa: S608 - SQL of ours
            {"organisation": organisation_id, "after_name": after_name, "after_id": after_id, "rows": rows_max},
        )
        return await cursor.fetchall()


async def find_receivers(connection: psycopg.AsyncConnection, receiver_ids: Sequence[str]) -> list[Receiver]:
    """Those of these ids that there are."""
    async with connection.cursor(row_factory=class_row(Receiver)) as cursor:
        await cursor.execute(
            f"SELECT {_COLUMNS} FROM alerts.receivers WHERE id = ANY(%s::uuid[]) AND deleted_at IS NULL",  # noqa: S608
            (list(receiver_ids),),
        )
        return await cursor.fetchall()


async def add_receiver(
    connection: psycopg.AsyncConnection,
    actor: Actor,
    *,
    name: str,
    kind: str,
    target: Mapping[str, Any],
    template: str | None,
) -> str:
    """Adds a receiver of the actor's organisation; its id. Raises `TooManyReceivers`."""
    row = await (
        await connection.execute(
            f"""
            INSERT INTO alerts.receivers (organisation_id, name, kind, target, template, changed_by)
            SELECT %s, %s, %s, %s, %s, %s
            WHERE (SELECT count(*) FROM alerts.receivers WHERE organisation_id = %s AND deleted_at IS NULL) < {RECEIVERS_MAX}
            RETURNING id::text
            """,  # noqa: S608 - SQL of ours
            (actor.organisation_id, name, kind, Jsonb(dict(target)), template, actor.name, actor.organisation_id),
        )
    ).fetchone()
    if row is None:
        raise TooManyReceivers
    await audit.add(connection, actor, "made_alert_receiver", name, details={"kind": kind})
    return str(row[0])


async def change_receiver(
    connection: psycopg.AsyncConnection,
    receiver_id: str,
    actor: Actor,
    *,
    name: str,
    target: Mapping[str, Any],
    template: str | None,
) -> bool:
    """Changes a receiver of the actor's organisation; False where there is none. Messages that wait go to the new address."""
    changed = await connection.execute(
        """
        UPDATE alerts.receivers SET name = %s, target = %s, template = %s, changed_by = %s, changed_at = now()
        WHERE id = %s AND organisation_id = %s AND deleted_at IS NULL
        """,
        (name, Jsonb(dict(target)), template, actor.name, receiver_id, actor.organisation_id),
    )
    if changed.rowcount != 1:
        return False
    await audit.add(connection, actor, "changed_alert_receiver", name)
    return True


async def delete_receiver(connection: psycopg.AsyncConnection, receiver_id: str, actor: Actor) -> bool:
    """Deletes a receiver of the actor's organisation, with its address; False where there is none."""
    row = await (
        await connection.execute(
            """
            UPDATE alerts.receivers SET deleted_at = now(), target = '{}', changed_by = %s
            WHERE id = %s AND organisation_id = %s AND deleted_at IS NULL RETURNING name
            """,
            (actor.name, receiver_id, actor.organisation_id),
        )
    ).fetchone()
    if row is None:
        return False
    await connection.execute(
        "UPDATE alerts.deliveries SET state = 'skipped', ended_at = now() WHERE receiver_id = %s AND state = 'waiting'",
        (receiver_id,),
    )
    await audit.add(connection, actor, "deleted_alert_receiver", row[0])
    return True
