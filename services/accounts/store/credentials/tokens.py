"""API tokens: made, listed, revoked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.credentials import Credential
from services.accounts.core.roles import Permission
from services.accounts.store import audit
from services.accounts.store.audit import Actor

#: Of one organisation, those that are revoked or expired not counted.
TOKENS_MAX: Final = 500

_LIVE: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"
_ADD: Final = f"""
    INSERT INTO accounts.tokens (id, hash, organisation_id, name, scopes, customers, made_by, made_by_id, expires_at)
    SELECT %(id)s, %(hash)s, %(organisation_id)s, %(name)s, %(scopes)s, %(customers)s, %(made_by)s, {audit.MAKER},
        coalesce(now() + %(valid_for)s, %(ends_by)s)
    WHERE (SELECT count(*) FROM accounts.tokens WHERE organisation_id = %(organisation_id)s AND {_LIVE}) < {TOKENS_MAX}
    RETURNING extract(epoch FROM expires_at)::float8
"""  # noqa: S608 - SQL of ours
_IS_LATER: Final = "SELECT now() + %s > %s"
_LIST: Final = """
    SELECT id, name, scopes, customers, made_by, created_at, expires_at, revoked_at, used_at FROM accounts.tokens
    WHERE organisation_id = %s AND (revoked_at IS NULL OR revoked_at > now() - interval '30 days') AND id > %s
    ORDER BY id LIMIT %s
"""
_REVOKE: Final = """
    UPDATE accounts.tokens SET revoked_at = now() WHERE id = %s AND organisation_id = %s AND revoked_at IS NULL
    RETURNING name
"""
_REVOKE_ALL_OF: Final = f"""
    UPDATE accounts.tokens SET revoked_at = now() WHERE organisation_id = %s AND made_by_id = %s AND {_LIVE} RETURNING name
"""  # noqa: S608 - SQL of ours


class TooManyTokens(ValueError):
    """The organisation has as many tokens as it may."""


class EndTooLate(ValueError):
    """The token would end later than the token that makes it."""


@dataclass(frozen=True)
class Token:
    """A token as it is shown: its secret was, once."""

    id: str
    name: str
    scopes: list[str]
    customers: list[str] | None
    made_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


async def add_token(
    connection: psycopg.AsyncConnection,
    credential: Credential,
    actor: Actor,
    *,
    organisation_id: str,
    name: str,
    scopes: Iterable[Permission],
    customers: Sequence[str] | None = None,
    valid_for: timedelta | None = None,
    ends_by: datetime | None = None,
) -> None:
    """Adds a token that ends after `valid_for`, or else at `ends_by`, the end of the token that makes it; None of both: no end.

    Raises `TooManyTokens`, or `EndTooLate` where `valid_for` leads beyond `ends_by`.
    """
    if valid_for is not None and ends_by is not None:
        row = await (await connection.execute(_IS_LATER, (valid_for, ends_by))).fetchone()
        if row == (True,):
            raise EndTooLate
    names = sorted(scopes)
    listed = None if customers is None else list(customers)
    added = {
        "id": credential.id,
        "hash": credential.hash,
        "organisation_id": organisation_id,
        "name": name,
        "scopes": names,
        "customers": listed,
        "made_by": actor.name,
        "valid_for": valid_for,
        "ends_by": ends_by,
    }
    made = await (await connection.execute(_ADD, added | actor.maker)).fetchone()
    if made is None:
        raise TooManyTokens
    details = {
        "scopes": names,
        "customers": listed,
        "days": valid_for.days if valid_for else None,
        "expires_ms": None if made[0] is None else round(made[0] * 1_000),
    }
    await audit.add(connection, actor, "made_token", name, organisation_id=organisation_id, details=details)


async def tokens_of(
    connection: psycopg.AsyncConnection, organisation_id: str, *, after: str, rows_max: int
) -> list[Token]:
    """The tokens of an organisation by id, those behind `after`; of those that were revoked the last 30 days'."""
    async with connection.cursor(row_factory=class_row(Token)) as cursor:
        await cursor.execute(_LIST, (organisation_id, after, rows_max))
        return await cursor.fetchall()


async def revoke_token(
    connection: psycopg.AsyncConnection, token_id: str, actor: Actor, *, organisation_id: str
) -> bool:
    """Revokes a token of the organisation; False if there is no such token."""
    row = await (await connection.execute(_REVOKE, (token_id, organisation_id))).fetchone()
    if row is None:
        return False
    await audit.add(connection, actor, "revoked_token", row[0], organisation_id=organisation_id)
    return True


async def revoke_all_of(connection: psycopg.AsyncConnection, person_id: str, actor: Actor, organisation_id: str) -> int:
    """Revokes the organisation's tokens that a person made, or that these made; how many."""
    names = await (await connection.execute(_REVOKE_ALL_OF, (organisation_id, person_id))).fetchall()
    await audit.add_all(connection, actor, "revoked_token", [name for (name,) in names])
    return len(names)
