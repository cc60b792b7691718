"""The audit log: who did what, when, from where. A row is written in the transaction of the change that it records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.core.principal import Principal

_ADD: Final = """
    INSERT INTO accounts.audit (organisation_id, actor_kind, actor_id, actor, address, action, target, details)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_NEWEST: Final = """
    SELECT id, at, actor_kind, actor, address, action, target, details FROM accounts.audit
    WHERE organisation_id = %(organisation_id)s AND id < %(before_id)s
      AND (%(action)s = '' OR action = %(action)s) AND (%(actor)s = '' OR actor = %(actor)s)
    ORDER BY id DESC LIMIT %(rows_max)s
"""
#: Of a statement: the person who makes something, or who made the token that makes it; null for a command.
#: `made_by_id` of what it makes. Takes the parameters of `maker`.
MAKER: Final = """CASE %(maker_kind)s::text WHEN 'person' THEN %(maker_id)s::text
    WHEN 'token' THEN (SELECT made_by_id FROM accounts.tokens WHERE id = %(maker_id)s) END"""
#: Behind every row.
NEWEST: Final = 2**62
#: Of what a request may put into a row.
TEXT_CHARS_MAX: Final = 300
#: Of what a row is about: a viewer's id has up to 500 and is never cut. No longer part of an id is found in a view.
TARGET_CHARS_MAX: Final = 600


@dataclass(frozen=True)
class Actor:
    """The person or token that acts, and the address."""

    kind: Literal["person", "token", "system", "nobody"]
    id: str | None
    name: str
    address: str | None = None
    organisation_id: str | None = None

    @classmethod
    def of(cls, principal: Principal, address: str | None) -> "Actor":
        """The actor that a request's principal is."""
        return cls(principal.kind, principal.id, principal.name, address, principal.organisation_id)

    @property
    def maker(self) -> dict[str, str | None]:
        """The parameters of `MAKER`."""
        return {"maker_kind": self.kind, "maker_id": self.id}


#: A command, run by who may read the service's settings.
SYSTEM: Final = Actor("system", None, "command")


@dataclass(frozen=True)
class AuditRow:
    """One row of the log, as it is shown."""

    id: int
    at: datetime
    actor_kind: str
    actor: str
    address: str | None
    action: str
    target: str
    details: dict[str, Any] = field(default_factory=dict)


async def add(
    connection: psycopg.AsyncConnection,
    actor: Actor,
    action: str,
    target: str = "",
    *,
    organisation_id: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Adds a row, in the present transaction; of the actor's organisation unless another is named."""
    await connection.execute(_ADD, _row(organisation_id, actor, action, target, details))


async def add_all(connection: psycopg.AsyncConnection, actor: Actor, action: str, targets: Sequence[str]) -> None:
    """Adds a row of the actor's organisation for each target, in the present transaction."""
    async with connection.cursor() as cursor:
        await cursor.executemany(_ADD, [_row(None, actor, action, target, None) for target in targets])


def _row(
    organisation_id: str | None, actor: Actor, action: str, target: str, details: Mapping[str, Any] | None
) -> tuple[Any, ...]:
    return (
        organisation_id or actor.organisation_id,
        actor.kind,
        actor.id,
        actor.name[:TEXT_CHARS_MAX],
        actor.address,
        action,
        target[:TARGET_CHARS_MAX],
        Jsonb(dict(details or {})),
    )


async def newest(
    connection: psycopg.AsyncConnection,
    organisation_id: str,
    *,
    before_id: int,
    rows_max: int,
    action: str = "",
    actor: str = "",
) -> list[AuditRow]:
    """The rows of an organisation before `before_id`, the newest first; of one action or actor, where one is named."""
    wanted = {
        "organisation_id": organisation_id,
        "before_id": before_id,
        "rows_max": rows_max,
        "action": action,
        "actor": actor,
    }
    async with connection.cursor(row_factory=class_row(AuditRow)) as cursor:
        await cursor.execute(_NEWEST, wanted)
        return await cursor.fetchall()
