"""A person's own password and second factor."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.credentials import Credential
from services.accounts.core.totp import CodeWrong, recovery_hash, step_of
from services.accounts.store import audit
from services.accounts.store.audit import Actor

_FIND: Final = """
    SELECT p.id::text AS id, p.email, p.name, p.password_hash, p.totp_secret, p.totp_since IS NOT NULL AS has_totp, p.totp_step,
        (SELECT count(*) FROM accounts.recovery_codes AS r WHERE r.person_id = p.id) AS recovery_codes
    FROM accounts.people AS p WHERE p.id = %s AND p.disabled_at IS NULL FOR UPDATE
"""
_SET_PASSWORD: Final = "UPDATE accounts.people SET password_hash = %s WHERE id = %s"  # noqa: S105 - SQL
_END_OTHERS: Final = "DELETE FROM accounts.sessions WHERE person_id = %s AND id <> %s"
_END_SESSIONS: Final = "DELETE FROM accounts.sessions WHERE person_id = %s"
_SET_NAME: Final = "UPDATE accounts.people SET name = %s WHERE id = %s"
_BEGIN_TOTP: Final = "UPDATE accounts.people SET totp_secret = %s, totp_step = 0 WHERE id = %s AND totp_since IS NULL"
_CONFIRM_TOTP: Final = "UPDATE accounts.people SET totp_since = now(), totp_step = %s WHERE id = %s"
_END_TOTP: Final = "UPDATE accounts.people SET totp_secret = NULL, totp_since = NULL, totp_step = 0 WHERE id = %s"
_TAKE_STEP: Final = "UPDATE accounts.people SET totp_step = %s WHERE id = %s"
_FORGET_IDENTITIES: Final = "DELETE FROM accounts.external_identities WHERE person_id = %s"
_FORGET_CODES: Final = "DELETE FROM accounts.recovery_codes WHERE person_id = %s"
_FORGET_SITES: Final = "DELETE FROM accounts.known_sites WHERE person_id = %s"
_ADD_CODES: Final = "INSERT INTO accounts.recovery_codes (person_id, hash) SELECT %s, unnest(%s::bytea[])"
_USE_CODE: Final = "DELETE FROM accounts.recovery_codes WHERE person_id = %s AND hash = %s"


class FactorExists(ValueError):
    """The person has a second factor already."""


class FactorMissing(ValueError):
    """No second factor was begun."""


@dataclass(frozen=True)
class Factors:
    """The login factors of a person."""

    id: str
    email: str
    name: str
    password_hash: str | None
    totp_secret: str | None
    has_totp: bool
    totp_step: int
    recovery_codes: int


async def factors_of(connection: psycopg.AsyncConnection, person_id: str) -> Factors | None:
    """A person's factors, locked: two logins with one code wait for each other."""
    async with connection.cursor(row_factory=class_row(Factors)) as cursor:
        return await (await cursor.execute(_FIND, (person_id,))).fetchone()


async def check_code(connection: psycopg.AsyncConnection, person_id: str, code: str, now_seconds: float) -> str:
    """Takes a code of the second factor, or a recovery code; says which: `none`, `totp`, `recovery`. Raises `CodeWrong`."""
    factors = await factors_of(connection, person_id)
    if factors is None:
        raise CodeWrong("there is no such person")
    if not factors.has_totp or factors.totp_secret is None:
        return "none"
    hashed = recovery_hash(code)
    if hashed is not None:
        if (await connection.execute(_USE_CODE, (person_id, hashed))).rowcount != 1:
            raise CodeWrong("the code is wrong, or was used already")
        return "recovery"
    step = step_of(factors.totp_secret, code, now_seconds, after_step=factors.totp_step)
    await connection.execute(_TAKE_STEP, (step, person_id))
    return "totp"


async def set_password(connection: psycopg.AsyncConnection, actor: Actor, password_hash: str, keep: Credential) -> None:
    """Gives the actor another password, and ends its sessions but this one."""
    await connection.execute(_SET_PASSWORD, (password_hash, actor.id))
    ended = (await connection.execute(_END_OTHERS, (actor.id, keep.id))).rowcount
    await audit.add(connection, actor, "changed_password", details={"sessions_ended": ended})


async def begin_again(connection: psycopg.AsyncConnection, person_id: str, password_hash: str | None) -> None:
    """Ends every way in that the account had by itself; `password_hash` is the only one now.

    These are password, second factor, sessions and identities at the provider. The next login there is a first one. Sites where
    it has logged in are forgotten, too.
    """
    await connection.execute(_SET_PASSWORD, (password_hash, person_id))
    await connection.execute(_END_TOTP, (person_id,))
    await connection.execute(_FORGET_CODES, (person_id,))
    await connection.execute(_FORGET_IDENTITIES, (person_id,))
    await connection.execute(_FORGET_SITES, (person_id,))
    await connection.execute(_END_SESSIONS, (person_id,))


async def set_name(connection: psycopg.AsyncConnection, actor: Actor, name: str) -> None:
    """Gives the actor another name."""
    await connection.execute(_SET_NAME, (name, actor.id))
    await audit.add(connection, actor, "changed_own_name", name)


async def begin_totp(connection: psycopg.AsyncConnection, person_id: str, secret: str) -> None:
    """Stores a secret that no login asks for yet. Raises `FactorExists`."""
    if (await connection.execute(_BEGIN_TOTP, (secret, person_id))).rowcount != 1:
        raise FactorExists


async def confirm_totp(
    connection: psycopg.AsyncConnection, actor: Actor, code: str, now_seconds: float, recovery: Iterable[bytes]
) -> None:
    """From now on logins ask for a code. Raises `FactorMissing`, `FactorExists` or `CodeWrong`."""
    assert actor.id is not None
    factors = await factors_of(connection, actor.id)
    if factors is None or factors.totp_secret is None:
        raise FactorMissing
    if factors.has_totp:
        raise FactorExists
    step = step_of(factors.totp_secret, code, now_seconds, after_step=factors.totp_step)
    await connection.execute(_CONFIRM_TOTP, (step, actor.id))
    await connection.execute(_FORGET_CODES, (actor.id,))
    await connection.execute(_ADD_CODES, (actor.id, list(recovery)))
    await audit.add(connection, actor, "began_second_factor")


async def end_totp(connection: psycopg.AsyncConnection, actor: Actor) -> None:
    """Logins ask for a password alone again."""
    await connection.execute(_END_TOTP, (actor.id,))
    await connection.execute(_FORGET_CODES, (actor.id,))
    await audit.add(connection, actor, "ended_second_factor")
