"""The members of an organisation and their roles."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.roles import Role, may_give
from services.accounts.store import audit
from services.accounts.store.audit import Actor

_LIST: Final = """
    SELECT p.id::text AS id, p.email, p.name, m.role, m.created_at AS joined_at, p.totp_since IS NOT NULL AS has_totp,
        p.password_hash IS NOT NULL AS has_password,
        EXISTS (SELECT FROM accounts.external_identities AS e WHERE e.person_id = p.id) AS has_external,
        (SELECT max(s.seen_at) FROM accounts.sessions AS s
         WHERE s.person_id = p.id AND s.organisation_id = m.organisation_id) AS seen_at
    FROM accounts.members AS m JOIN accounts.people AS p ON p.id = m.person_id
    WHERE m.organisation_id = %s AND p.email > %s ORDER BY p.email LIMIT %s
"""
#: In the order of the key: two changes of one organisation wait for each other, so that the last owner is seen.
_LOCK: Final = """
    SELECT m.person_id::text, m.role, p.email FROM accounts.members AS m JOIN accounts.people AS p ON p.id = m.person_id
    WHERE m.organisation_id = %s ORDER BY m.person_id FOR UPDATE OF m
"""
_SET_ROLE: Final = "UPDATE accounts.members SET role = %s WHERE organisation_id = %s AND person_id = %s"
_REMOVE: Final = "DELETE FROM accounts.members WHERE organisation_id = %s AND person_id = %s"
_END_SESSIONS: Final = "DELETE FROM accounts.sessions WHERE organisation_id = %s AND person_id = %s"


class MemberUnknown(LookupError):
    """The organisation has no such member."""


class RoleRefused(ValueError):
    """The actor may not give or take this role, or nobody would be owner; the text says which."""


@dataclass(frozen=True)
class Member:
    """A person in one organisation."""

    id: str
    email: str
    name: str
    role: str
    joined_at: datetime
    #: The last request of a session that is open.
    seen_at: datetime | None
    has_password: bool
    has_totp: bool
    has_external: bool


async def members_of(
    connection: psycopg.AsyncConnection, organisation_id: str, *, after: str, rows_max: int
) -> list[Member]:
    """The members by address, those behind `after`."""
    async with connection.cursor(row_factory=class_row(Member)) as cursor:
        await cursor.execute(_LIST, (organisation_id, after, rows_max))
        return await cursor.fetchall()


async def set_role(
    connection: psycopg.AsyncConnection, person_id: str, role: Role, actor: Actor, *, giver: Role, organisation_id: str
) -> None:
    """Gives a member another role. Raises `MemberUnknown` or `RoleRefused`."""
    email, before = await _checked(connection, person_id, organisation_id, giver, role)
    await connection.execute(_SET_ROLE, (role, organisation_id, person_id))
    await audit.add(connection, actor, "changed_role", email, details={"from": before, "to": role})


async def remove(
    connection: psycopg.AsyncConnection, person_id: str, actor: Actor, *, giver: Role, organisation_id: str
) -> None:
    """Takes a member out of the organisation, and ends its sessions there. Raises `MemberUnknown` or `RoleRefused`."""
    email, before = await _checked(connection, person_id, organisation_id, giver, None)
    await connection.execute(_REMOVE, (organisation_id, person_id))
    await audit.add(connection, actor, "removed_member", email, details={"role": before})


async def end_sessions(
    connection: psycopg.AsyncConnection, person_id: str, actor: Actor, *, giver: Role, organisation_id: str
) -> int:
    """Ends a member's sessions in this organisation; how many. Raises `MemberUnknown` or `RoleRefused`."""
    roles = await _locked(connection, person_id, organisation_id)
    _check_giver(giver, roles[person_id][0])
    ended = (await connection.execute(_END_SESSIONS, (organisation_id, person_id))).rowcount
    await audit.add(connection, actor, "ended_sessions", roles[person_id][1], details={"sessions": ended})
    return ended


async def _checked(
    connection: psycopg.AsyncConnection, person_id: str, organisation_id: str, giver: Role, role: Role | None
) -> tuple[str, Role]:
    """The member's address and present role, where it may get `role` (None: none)."""
    roles = await _locked(connection, person_id, organisation_id)
    before, email = roles[person_id]
    _check_giver(giver, before)
    if role is not None:
        _check_giver(giver, role)
    owners = [other for other, (of_other, _) in roles.items() if of_other is Role.OWNER]
    if owners == [person_id] and role is not Role.OWNER:
        raise RoleRefused("an organisation has an owner: make somebody else one first")
    return email, before


def _check_giver(giver: Role, role: Role) -> None:
    if not may_give(giver, role):
        raise RoleRefused(f"a person of role {giver} may not change who is {role}")


async def _locked(
    connection: psycopg.AsyncConnection, person_id: str, organisation_id: str
) -> dict[str, tuple[Role, str]]:
    rows = await (await connection.execute(_LOCK, (organisation_id,))).fetchall()
    roles = {known_id: (Role(role), email) for known_id, role, email in rows}
    if person_id not in roles:
        raise MemberUnknown
    return roles
