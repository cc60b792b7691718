"""Invitations into an organisation: links for one address and role, until they are used, withdrawn or expire."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.credentials import Credential
from services.accounts.core.roles import Role
from services.accounts.store import audit
from services.accounts.store.audit import Actor

#: Open ones of one organisation.
INVITATIONS_MAX: Final = 500

_OPEN: Final = "kind = 'invitation' AND used_at IS NULL AND expires_at > now()"
_ADD: Final = f"""
    INSERT INTO accounts.links (id, hash, kind, organisation_id, email, role, made_by, made_by_id, made_in, expires_at)
    SELECT %(id)s, %(hash)s, 'invitation', %(organisation_id)s, %(email)s, %(role)s, %(made_by)s, {audit.MAKER}, %(made_in)s,
        now() + %(valid_for)s
    WHERE (SELECT count(*) FROM accounts.links WHERE organisation_id = %(organisation_id)s AND {_OPEN}) < {INVITATIONS_MAX}
    RETURNING expires_at
"""  # noqa: S608 - SQL of ours
#: A later invitation of the same person takes the place of the one before.
_REPLACE: Final = f"DELETE FROM accounts.links WHERE organisation_id = %s AND email = %s AND {_OPEN}"  # noqa: S608
_LIST: Final = f"""
    SELECT id, email, role, made_by, created_at, expires_at FROM accounts.links
    WHERE organisation_id = %s AND {_OPEN} AND id > %s ORDER BY id LIMIT %s
"""  # noqa: S608 - SQL of ours
_WITHDRAW: Final = f"DELETE FROM accounts.links WHERE organisation_id = %s AND id = %s AND {_OPEN} RETURNING email"  # noqa: S608
_WITHDRAW_ALL: Final = f"DELETE FROM accounts.links WHERE organisation_id = %s AND {_OPEN} RETURNING email"  # noqa: S608
_WITHDRAW_ALL_OF: Final = f"""
    DELETE FROM accounts.links WHERE made_in = %s AND made_by_id = %s AND role = ANY(%s) AND {_OPEN}
    RETURNING organisation_id::text, email
"""  # noqa: S608 - SQL of ours
_IS_MEMBER: Final = """
    SELECT EXISTS (SELECT FROM accounts.members AS m JOIN accounts.people AS p ON p.id = m.person_id
                   WHERE m.organisation_id = %s AND p.email = %s)
"""
_FOR_ADDRESS: Final = (
    f"SELECT id, organisation_id::text, role FROM accounts.links WHERE email = %s AND {_OPEN} ORDER BY id"  # noqa: S608
)


class MemberAlready(ValueError):
    """Who is invited is a member: its role can be changed."""


class TooManyInvitations(ValueError):
    """The organisation has as many open invitations as it may."""


@dataclass(frozen=True)
class Invitation:
    """An open invitation as it is shown: its link was, once."""

    id: str
    email: str
    role: str
    made_by: str
    created_at: datetime
    expires_at: datetime


async def invite(
    connection: psycopg.AsyncConnection,
    credential: Credential,
    actor: Actor,
    *,
    organisation_id: str,
    email: str,
    role: Role,
    valid_for: timedelta,
) -> datetime:
    """Adds an invitation; until when it holds. Raises `MemberAlready` or `TooManyInvitations`."""
    row = await (await connection.execute(_IS_MEMBER, (organisation_id, email))).fetchone()
    if row == (True,):
        raise MemberAlready
    await connection.execute(_REPLACE, (organisation_id, email))
    given = {
        "id": credential.id,
        "hash": credential.hash,
        "organisation_id": organisation_id,
        "email": email,
        "role": role,
        "made_by": actor.name,
        "made_in": actor.organisation_id,
        "valid_for": valid_for,
    }
    made = await (await connection.execute(_ADD, given | actor.maker)).fetchone()
    if made is None:
        raise TooManyInvitations
    details = {"role": role, "days": valid_for.days}
    await audit.add(connection, actor, "invited", email, organisation_id=organisation_id, details=details)
    until: datetime = made[0]
    return until


async def invitations_of(
    connection: psycopg.AsyncConnection, organisation_id: str, *, after: str, rows_max: int
) -> list[Invitation]:
    """The open invitations by id, those behind `after`."""
    async with connection.cursor(row_factory=class_row(Invitation)) as cursor:
        await cursor.execute(_LIST, (organisation_id, after, rows_max))
        return await cursor.fetchall()


async def withdraw(
    connection: psycopg.AsyncConnection, invitation_id: str, actor: Actor, *, organisation_id: str
) -> bool:
    """From now on the link opens nothing; False if the organisation has no such open invitation."""
    row = await (await connection.execute(_WITHDRAW, (organisation_id, invitation_id))).fetchone()
    if row is None:
        return False
    await audit.add(connection, actor, "withdrew_invitation", row[0])
    return True


async def withdraw_all(connection: psycopg.AsyncConnection, actor: Actor, *, organisation_id: str) -> None:
    """From now on no link opens this organisation."""
    for (email,) in await (await connection.execute(_WITHDRAW_ALL, (organisation_id,))).fetchall():
        await audit.add(connection, actor, "withdrew_invitation", email, organisation_id=organisation_id)


async def withdraw_all_of(
    connection: psycopg.AsyncConnection, person_id: str, roles: Iterable[Role], actor: Actor, organisation_id: str
) -> int:
    """Withdraws what a person, or its tokens, invited to these roles as a member of this organisation; how many.

    Who runs the installation invites owners of other organisations too.
    """
    found = await connection.execute(_WITHDRAW_ALL_OF, (organisation_id, person_id, list(roles)))
    withdrawn = await found.fetchall()
    for into_id, email in withdrawn:
        await audit.add(connection, actor, "withdrew_invitation", email, organisation_id=into_id)
    return len(withdrawn)


async def open_for(connection: psycopg.AsyncConnection, email: str) -> list[tuple[str, str, Role]]:
    """The open invitations of an address: id, organisation, role."""
    rows = await (await connection.execute(_FOR_ADDRESS, (email,))).fetchall()
    return [(link_id, organisation_id, Role(role)) for link_id, organisation_id, role in rows]
