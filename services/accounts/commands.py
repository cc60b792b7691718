"""Commands on accounts, for who may read the database: links, and what the demo and tests begin with."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

import psycopg

from services.accounts.core.roles import TOKEN_SCOPES, Role
from services.accounts.service import Accounts
from services.accounts.store import schema
from services.accounts.store.audit import SYSTEM

T = TypeVar("T")

_ORGANISATION: Final = """
    INSERT INTO accounts.organisations (name, owns_rest)
    VALUES (%(name)s, %(owns_rest)s AND NOT EXISTS (SELECT FROM accounts.organisations WHERE owns_rest)) RETURNING id::text
"""
_CUSTOMERS: Final = """
    INSERT INTO accounts.customers (customer_id, organisation_id) SELECT customer_id, %s FROM unnest(%s::text[]) AS customer_id
    ON CONFLICT (customer_id) DO UPDATE SET organisation_id = excluded.organisation_id
"""
_PERSON: Final = """
    WITH made AS (INSERT INTO accounts.people (email) VALUES (lower(%s)) RETURNING id)
    INSERT INTO accounts.members (person_id, organisation_id, role) SELECT id, %s, %s FROM made
"""
_ORGANISATION_OF: Final = """
    SELECT m.organisation_id::text FROM accounts.members AS m JOIN accounts.people AS p ON p.id = m.person_id
    WHERE p.email = lower(%s) ORDER BY m.created_at LIMIT 1
"""


def run(dsn: str, do: Callable[[Accounts], Awaitable[T]]) -> T:
    """Brings the schema and does it, on an event loop of its own: the caller may have one, or none."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _run(dsn, do)).result()


async def _run(dsn: str, do: Callable[[Accounts], Awaitable[T]]) -> T:
    await asyncio.to_thread(schema.migrate, dsn)
    accounts = Accounts(dsn, connections_max=1, seconds_max=20.0)
    await accounts.open()
    try:
        return await do(accounts)
    finally:
        await accounts.close()


def owner_link(dsn: str) -> str | None:
    """The text of a link that makes the first owner; None if any account exists."""

    async def make(accounts: Accounts) -> str | None:
        link = await accounts.new_owner_link()
        return link.text if link is not None else None

    return run(dsn, make)


def login_link(dsn: str, email: str, *, begins_again: bool = False) -> str | None:
    """The text of a link that logs this person in, with `begins_again` as the only way; None if there is no such person."""

    async def make(accounts: Accounts) -> str | None:
        link = await accounts.new_login_link(email, SYSTEM, begins_again=begins_again)
        return link.text if link is not None else None

    return run(dsn, make)


@dataclass(frozen=True)
class Tenant:
    """An organisation to begin with: a person without a password in it, and a token of every scope."""

    email: str
    token: str = field(repr=False)


def make_tenant(
    dsn: str, *, organisation: str, email: str, role: Role = Role.OWNER, customers: tuple[str, ...] | None = None
) -> Tenant:
    """Makes an organisation with one person, of these customers, or of all that nobody else owns; again: a new token alone."""

    async def add(connection: psycopg.AsyncConnection) -> str:
        known = await (await connection.execute(_ORGANISATION_OF, (email,))).fetchone()
        if known is not None:
            return str(known[0])
        wanted = {"name": organisation, "owns_rest": customers is None}
        made = await (await connection.execute(_ORGANISATION, wanted)).fetchone()
        assert made is not None
        await connection.execute(_CUSTOMERS, (made[0], list(customers or ())))
        await connection.execute(_PERSON, (email, made[0], role))
        return str(made[0])

    async def make(accounts: Accounts) -> Tenant:
        organisation_id = await accounts.postgres.ask(add)
        token = await accounts.new_token(
            SYSTEM, organisation_id=organisation_id, name="command", scopes=frozenset(TOKEN_SCOPES)
        )
        return Tenant(email, token.text)

    return run(dsn, make)
