"""The members of an organisation and their roles."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.roles import Permission, Role, may_give, permissions_of
from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.accounts.store.credentials import tokens
from services.accounts.store.tenants import invitations
from services.accounts.store.tenants.organisations import OrganisationUnknown

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
_IS_MEMBER: Final = "SELECT FROM accounts.members WHERE person_id = %s AND organisation_id::text = %s"
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


@dataclass(frozen=True)
class Outlived:
    """What somebody had made who may no longer make it: so many tokens and open invitations ended."""

    tokens: int
    invitations: int


async def members_of(
    connection: psycopg.AsyncConnection, organisation_id: str, *, after: str, rows_max: int
) -> list[Member]:
    """The members by address, those behind `after`."""
    async with connection.cursor(row_factory=class_row(Member)) as cursor:
        await cursor.execute(_LIST, (organisation_id, after, rows_max))
        return await cursor.fetchall()


async def set_role(
    connection: psycopg.AsyncConnection,
    person_id: str,
    role: Role,
    actor: Actor,
    *,
    taker: Role,
    gives: frozenset[Role],
    organisation_id: str,
) -> Outlived:
    """Gives a member another role; what ended with the former one. Raises `MemberUnknown` or `RoleRefused`."""
    email, before = await _checked(connection, person_id, organisation_id, taker, role)
    if role not in gives:
        raise RoleRefused(f"who asks may make nobody {role}")
    await connection.execute(_SET_ROLE, (role, organisation_id, person_id))
    await audit.add(connection, actor, "changed_role", email, details={"from": before, "to": role})
    return await _end_what_outlives(connection, person_id, role, actor, organisation_id)


async def remove(
    connection: psycopg.AsyncConnection, person_id: str, actor: Actor, *, taker: Role, organisation_id: str
) -> Outlived:
    """Takes a member out of the organisation, and ends its sessions there; what ended too.

    Raises `MemberUnknown` or `RoleRefused`.
    """
    email, before = await _checked(connection, person_id, organisation_id, taker, None)
    await connection.execute(_REMOVE, (organisation_id, person_id))
    await audit.add(connection, actor, "removed_member", email, details={"role": before})
    return await _end_what_outlives(connection, person_id, None, actor, organisation_id)


async def leave(connection: psycopg.AsyncConnection, organisation_id: str, actor: Actor) -> None:
    """Takes the actor out of an organisation, as `remove` does. Raises `OrganisationUnknown` or `RoleRefused`."""
    assert actor.id is not None
    if await (await connection.execute(_IS_MEMBER, (actor.id, organisation_id))).fetchone() is None:
        raise OrganisationUnknown
    there = replace(actor, organisation_id=organisation_id)
    roles = await _locked(connection, actor.id, organisation_id)
    _check_owner_is_left(roles, actor.id, None)
    await connection.execute(_REMOVE, (organisation_id, actor.id))
    await audit.add(connection, there, "left_organisation", details={"role": roles[actor.id][0]})
    await _end_what_outlives(connection, actor.id, None, there, organisation_id)


async def end_sessions(
    connection: psycopg.AsyncConnection, person_id: str, actor: Actor, *, taker: Role, organisation_id: str
) -> int:
    """Ends a member's sessions in this organisation; how many. Raises `MemberUnknown` or `RoleRefused`."""
    roles = await _locked(connection, person_id, organisation_id)
    _check_taker(taker, roles[person_id][0])
    ended = (await connection.execute(_END_SESSIONS, (organisation_id, person_id))).rowcount
    await audit.add(connection, actor, "ended_sessions", roles[person_id][1], details={"sessions": ended})
    return ended


async def _end_what_outlives(
    connection: psycopg.AsyncConnection, person_id: str, role: Role | None, actor: Actor, organisation_id: str
) -> Outlived:
    """Ends tokens and open invitations that the person could not make in this role (None: no member).

    Their texts are known to the person: each would let it do what was taken away.
    """
    keeps_tokens = role is not None and Permission.MANAGE in permissions_of(role)
    not_given = [one for one in Role if role is None or not may_give(role, one)]
    ended = 0 if keeps_tokens else await tokens.revoke_all_of(connection, person_id, actor, organisation_id)
    withdrawn = await invitations.withdraw_all_of(connection, person_id, not_given, actor, organisation_id)
    return Outlived(ended, withdrawn)


async def _checked(
    connection: psycopg.AsyncConnection, person_id: str, organisation_id: str, taker: Role, role: Role | None
) -> tuple[str, Role]:
    """The member's address and present role, where `role` may take its place (None: none)."""
    roles = await _locked(connection, person_id, organisation_id)
    before, email = roles[person_id]
    _check_taker(taker, before)
    _check_owner_is_left(roles, person_id, role)
    return email, before


def _check_owner_is_left(roles: Mapping[str, tuple[Role, str]], person_id: str, role: Role | None) -> None:
    owners = [other for other, (of_other, _) in roles.items() if of_other is Role.OWNER]
    if owners == [person_id] and role is not Role.OWNER:
        raise RoleRefused("an organisation has an owner: make somebody else one first")


def _check_taker(taker: Role, role: Role) -> None:
    if not may_give(taker, role):
        raise RoleRefused(f"a person of role {taker} may not change who is {role}")


async def _locked(
    connection: psycopg.AsyncConnection, person_id: str, organisation_id: str
) -> dict[str, tuple[Role, str]]:
    rows = await (await connection.execute(_LOCK, (organisation_id,))).fetchall()
    roles = {known_id: (Role(role), email) for known_id, role, email in rows}
    if person_id not in roles:
        raise MemberUnknown
    return roles
