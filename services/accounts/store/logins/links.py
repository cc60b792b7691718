"""Links that work once: for the first owner, for invited people, and for a login without a password."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.credentials import Credential
from services.accounts.core.roles import Role
from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.accounts.store.logins import factors

FIRST_OWNER_FOR: Final = timedelta(days=1)
LOGIN_FOR: Final = timedelta(minutes=15)
INVITATION_FOR: Final = timedelta(days=7)

_HAS_PEOPLE: Final = "SELECT EXISTS (SELECT FROM accounts.people)"
_ADD: Final = """
    INSERT INTO accounts.links (id, hash, kind, person_id, organisation_id, email, role, expires_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, now() + %s)
"""
_FIND: Final = """
    SELECT hash, kind, person_id::text AS person_id, organisation_id::text AS organisation_id, email, role
    FROM accounts.links WHERE id = %s AND used_at IS NULL AND expires_at > now()
"""
_END_LOGINS: Final = "DELETE FROM accounts.links WHERE person_id = %s AND kind = 'login' AND used_at IS NULL"
_USE: Final = "UPDATE accounts.links SET used_at = now() WHERE id = %s AND used_at IS NULL"
#: Two first owners at once: the second finds the first's person.
_LOCK: Final = "LOCK TABLE accounts.people IN SHARE ROW EXCLUSIVE MODE"
_ORGANISATION: Final = (
    "INSERT INTO accounts.organisations (name, owns_rest)"
    " SELECT %s, NOT EXISTS (SELECT FROM accounts.organisations WHERE owns_rest) RETURNING id::text"
)
_NEW_PERSON: Final = """
    INSERT INTO accounts.people (email, name, password_hash) VALUES (lower(%s), %s, %s)
    ON CONFLICT (email) DO NOTHING RETURNING id::text
"""
_KNOWN_PERSON: Final = """
    SELECT id::text, EXISTS (SELECT FROM accounts.members AS m WHERE m.person_id = p.id)
    FROM accounts.people AS p WHERE email = lower(%s) AND disabled_at IS NULL
"""
_NAME: Final = "UPDATE accounts.people SET name = %s WHERE id = %s"
_MEMBER: Final = """
    INSERT INTO accounts.members (person_id, organisation_id, role) VALUES (%s, %s, %s)
    ON CONFLICT (person_id, organisation_id) DO NOTHING
"""


class LinkSpent(ValueError):
    """The link is unknown, was used, or has expired."""


class AccountExists(ValueError):
    """The invited address has an account, and its password was not given."""


@dataclass(frozen=True)
class Link:
    """The purpose of a link."""

    hash: bytes
    kind: str
    person_id: str | None
    organisation_id: str | None
    email: str | None
    role: str | None


@dataclass(frozen=True)
class Newcomer:
    """What somebody gives who follows a link; no hash: the account's own password was given."""

    email: str
    name: str
    password_hash: str | None
    organisation: str = ""


async def has_people(connection: psycopg.AsyncConnection) -> bool:
    """Whether anybody has an account; until then a link makes the first owner."""
    row = await (await connection.execute(_HAS_PEOPLE)).fetchone()
    return bool(row and row[0])


async def add_link(
    connection: psycopg.AsyncConnection,
    credential: Credential,
    kind: str,
    valid_for: timedelta,
    *,
    person_id: str | None = None,
    organisation_id: str | None = None,
    email: str | None = None,
    role: Role | None = None,
) -> None:
    """Adds a link."""
    row = (credential.id, credential.hash, kind, person_id, organisation_id, email, role, valid_for)
    await connection.execute(_ADD, row)


async def end_logins(connection: psycopg.AsyncConnection, person_id: str) -> None:
    """From now on no link of before logs this person in."""
    await connection.execute(_END_LOGINS, (person_id,))


async def find_link(connection: psycopg.AsyncConnection, credential: Credential) -> Link:
    """The purpose of the link; it stays unused. Raises `LinkSpent`."""
    async with connection.cursor(row_factory=class_row(Link)) as cursor:
        found = await (await cursor.execute(_FIND, (credential.id,))).fetchone()
    if found is None or not credential.matches(found.hash):
        raise LinkSpent
    if found.kind == "first_owner" and await has_people(connection):
        raise LinkSpent
    return found


async def use_link(connection: psycopg.AsyncConnection, credential: Credential) -> Link:
    """Uses the link up. Raises `LinkSpent`."""
    found = await find_link(connection, credential)
    if (await connection.execute(_USE, (credential.id,))).rowcount != 1:
        raise LinkSpent
    return found


async def log_in_by_link(
    connection: psycopg.AsyncConnection, credential: Credential, address: str | None
) -> tuple[str, str]:
    """The person and the organisation that a link of kind `login` lets in; it is used up. Raises `LinkSpent`."""
    link = await use_link(connection, credential)
    if link.kind != "login" or link.person_id is None or link.organisation_id is None:
        raise LinkSpent
    actor = Actor("person", link.person_id, link.email or "", address, link.organisation_id)
    await audit.add(connection, actor, "logged_in", details={"by": "link"})
    return link.person_id, link.organisation_id


async def accept(
    connection: psycopg.AsyncConnection,
    credential: Credential,
    newcomer: Newcomer,
    address: str | None,
    *,
    confirmed: str | None = None,
) -> tuple[str, str]:
    """Makes the first owner or an invited person; returns who it is and of which organisation.

    `confirmed` is the person whose own password was given. Raises `LinkSpent` or `AccountExists`: then the link stays unused.
    """
    await connection.execute(_LOCK)
    link = await use_link(connection, credential)
    if link.kind == "first_owner":
        return await _make_owner(connection, newcomer, address)
    if link.kind != "invitation" or link.organisation_id is None or link.email is None or link.role is None:
        raise LinkSpent
    made = await (await connection.execute(_NEW_PERSON, (link.email, newcomer.name, newcomer.password_hash))).fetchone()
    person_id = await _known(connection, link.email, newcomer, confirmed) if made is None else str(made[0])
    await connection.execute(_MEMBER, (person_id, link.organisation_id, link.role))
    actor = Actor("person", person_id, link.email, address, link.organisation_id)
    await audit.add(connection, actor, "joined", details={"role": link.role})
    return person_id, link.organisation_id


async def _known(connection: psycopg.AsyncConnection, email: str, newcomer: Newcomer, confirmed: str | None) -> str:
    """The person of this address, who joins.

    Another organisation's admin may have made the account and know its password: without that password it joins nothing. An account
    that is of no organisation any more begins again, with the password that is given now.
    """
    row = await (await connection.execute(_KNOWN_PERSON, (email,))).fetchone()
    if row is None:
        raise LinkSpent
    person_id, is_member = str(row[0]), bool(row[1])
    if is_member and person_id != confirmed:
        raise AccountExists
    if person_id != confirmed:
        await factors.begin_again(connection, person_id, newcomer.password_hash)
        await connection.execute(_NAME, (newcomer.name, person_id))
    return person_id


async def _make_owner(connection: psycopg.AsyncConnection, newcomer: Newcomer, address: str | None) -> tuple[str, str]:
    organisation = await (await connection.execute(_ORGANISATION, (newcomer.organisation,))).fetchone()
    person = await (
        await connection.execute(_NEW_PERSON, (newcomer.email, newcomer.name, newcomer.password_hash))
    ).fetchone()
    if organisation is None or person is None:
        raise LinkSpent
    await connection.execute(_MEMBER, (person[0], organisation[0], Role.OWNER))
    actor = Actor("person", person[0], newcomer.email, address, organisation[0])
    await audit.add(connection, actor, "became_first_owner", newcomer.organisation)
    return person[0], organisation[0]
