"""Logins at an OpenID provider: those under way, and the identities of people."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.credentials import Credential
from services.accounts.core.login_throttle import Allowance
from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.accounts.store.logins import factors, sessions
from services.accounts.store.tenants import invitations

#: From the page of logins to the provider and back.
LOGIN_FOR: Final = timedelta(minutes=15)

_BEGIN: Final = """
    INSERT INTO accounts.external_logins (id, hash, nonce, verifier, destination, expires_at)
    VALUES (%s, %s, %s, %s, %s, now() + %s)
"""
_REDEEM: Final = """
    DELETE FROM accounts.external_logins WHERE id = %s AND hash = %s AND expires_at > now()
    RETURNING nonce, verifier, destination
"""
_KNOWN: Final = """
    SELECT p.id::text FROM accounts.external_identities AS e JOIN accounts.people AS p ON p.id = e.person_id
    WHERE e.issuer = %s AND e.subject = %s AND p.disabled_at IS NULL
"""
_BY_EMAIL: Final = (
    "SELECT id::text, disabled_at IS NULL, password_hash IS NOT NULL FROM accounts.people WHERE email = %s"
)
_NEW: Final = "INSERT INTO accounts.people (email, name) VALUES (%s, %s) RETURNING id::text"
_LINK: Final = "INSERT INTO accounts.external_identities (issuer, subject, person_id) VALUES (%s, %s, %s)"
_MEMBER: Final = """
    INSERT INTO accounts.members (person_id, organisation_id, role) VALUES (%s, %s, %s)
    ON CONFLICT (person_id, organisation_id) DO NOTHING
"""
_USE: Final = "UPDATE accounts.links SET used_at = now() WHERE id = %s AND used_at IS NULL"
_ORGANISATION: Final = """
    SELECT organisation_id::text FROM accounts.members WHERE person_id = %s ORDER BY created_at LIMIT 1
"""
#: Two first logins of one person at the same time: the second finds the first's person.
_LOCK: Final = "LOCK TABLE accounts.people IN SHARE ROW EXCLUSIVE MODE"


class NoAccount(ValueError):
    """The person at the provider has no account here, and no invitation."""


@dataclass(frozen=True)
class Begun:
    """A login under way: what the provider's answer must match, and where the browser goes then."""

    nonce: str
    verifier: str
    destination: str


@dataclass(frozen=True)
class Claims:
    """The claims of a provider about a person. `email` only if the provider has verified it."""

    issuer: str
    subject: str
    email: str | None
    name: str


async def begin(
    connection: psycopg.AsyncConnection, credential: Credential, begun: Begun, allowed: Sequence[Allowance]
) -> bool:
    """Adds a login; False, and nothing is added, where too many have begun."""
    if await sessions.count_attempt(connection, allowed) > 0:
        return False
    row = (credential.id, credential.hash, begun.nonce, begun.verifier, begun.destination, LOGIN_FOR)
    await connection.execute(_BEGIN, row)
    return True


async def redeem(connection: psycopg.AsyncConnection, credential: Credential) -> Begun | None:
    """The login of this credential, once; None if it is unknown, used or too old."""
    async with connection.cursor(row_factory=class_row(Begun)) as cursor:
        return await (await cursor.execute(_REDEEM, (credential.id, credential.hash))).fetchone()


async def log_in(connection: psycopg.AsyncConnection, claims: Claims, address: str | None) -> tuple[str, str]:
    """The person that these claims are of, and the organisation. Raises `NoAccount`.

    An invitation of the verified address makes one, and is accepted. A person of that address is the same person from now on. Its
    former password ends, since the maker of the account may not be the holder of the address.
    """
    await connection.execute(_LOCK)
    row = await (await connection.execute(_KNOWN, (claims.issuer, claims.subject))).fetchone()
    person_id = str(row[0]) if row is not None else await _first_login(connection, claims)
    if claims.email is not None:
        await _join(connection, person_id, claims.email.lower(), address)
    found = await (await connection.execute(_ORGANISATION, (person_id,))).fetchone()
    if found is None:
        raise NoAccount
    actor = Actor("person", person_id, claims.email or claims.subject, address, found[0])
    await audit.add(connection, actor, "logged_in", details={"by": "provider", "issuer": claims.issuer})
    return person_id, str(found[0])


async def _first_login(connection: psycopg.AsyncConnection, claims: Claims) -> str:
    if claims.email is None:
        raise NoAccount
    email = claims.email.lower()
    row = await (await connection.execute(_BY_EMAIL, (email,))).fetchone()
    if row is not None and not row[1]:
        raise NoAccount
    if row is None:
        if not await invitations.open_for(connection, email):
            raise NoAccount
        row = await (await connection.execute(_NEW, (email, claims.name[:200]))).fetchone()
        assert row is not None
    elif row[2]:
        await factors.begin_again(connection, str(row[0]), None)
    person_id = str(row[0])
    await connection.execute(_LINK, (claims.issuer, claims.subject, person_id))
    return person_id


async def _join(connection: psycopg.AsyncConnection, person_id: str, email: str, address: str | None) -> None:
    """Accepts the open invitations of an address that the provider has verified."""
    for link_id, organisation_id, role in await invitations.open_for(connection, email):
        await connection.execute(_USE, (link_id,))
        await connection.execute(_MEMBER, (person_id, organisation_id, role))
        actor = Actor("person", person_id, email, address, organisation_id)
        await audit.add(connection, actor, "joined", details={"role": role, "by": "provider"})
