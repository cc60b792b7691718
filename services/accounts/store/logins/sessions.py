"""Sessions begin and end; logins that fail are counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.core.credentials import Credential
from services.accounts.core.login_throttle import Allowance, allowances
from services.accounts.core.sites import site_of
from services.accounts.store import audit
from services.accounts.store.audit import Actor

#: A session ends then at the latest, however much it is used.
SESSION_DAYS_MAX: Final = 30
_AGENT_CHARS_MAX: Final = 300

_PERSON: Final = """
    SELECT p.id::text AS id, p.email, p.password_hash, m.organisation_id::text AS organisation_id,
        p.totp_since IS NOT NULL AS has_totp
    FROM accounts.people AS p JOIN accounts.members AS m ON m.person_id = p.id
    WHERE p.email = %s AND p.disabled_at IS NULL ORDER BY m.created_at LIMIT 1
"""
_OPEN: Final = f"""
    INSERT INTO accounts.sessions (id, hash, person_id, organisation_id, expires_at, address, agent)
    VALUES (%s, %s, %s, %s, now() + interval '{SESSION_DAYS_MAX} days', %s, %s) ON CONFLICT DO NOTHING
"""  # noqa: S608 - a number of ours
_KNOW: Final = """
    INSERT INTO accounts.known_sites (person_id, site) VALUES (%s, %s) ON CONFLICT (person_id, site) DO UPDATE SET seen_at = now()
"""
_IS_KNOWN: Final = """
    SELECT FROM accounts.known_sites AS k JOIN accounts.people AS p ON p.id = k.person_id WHERE p.email = %s AND k.site = %s
"""
#: Unless the password was changed meanwhile.
_REHASH: Final = "UPDATE accounts.people SET password_hash = %s WHERE id = %s AND password_hash = %s"
_END: Final = "DELETE FROM accounts.sessions WHERE id = %s AND hash = %s"
_END_ALL: Final = "DELETE FROM accounts.sessions WHERE person_id = %s"
#: What each bucket would hold with one more failure.
_WOULD_HOLD: Final = """
    SELECT subject, 1 + greatest(0, a.failures - extract(epoch FROM now() - a.changed_at)::float8 / seconds)
    FROM accounts.attempts AS a JOIN unnest(%(subjects)s::text[], %(seconds)s::float8[]) AS given (subject, seconds) USING (subject)
"""
#: In the order of the key, as always: two that met in another order would wait for each other.
_COUNT: Final = """
    INSERT INTO accounts.attempts AS a (subject, failures, changed_at)
    SELECT subject, 1, now() FROM unnest(%(subjects)s::text[]) AS given (subject) ORDER BY 1
    ON CONFLICT (subject) DO UPDATE SET changed_at = now(), failures = 1 + greatest(0, a.failures
        - extract(epoch FROM now() - a.changed_at)::float8
        / (SELECT seconds FROM unnest(%(subjects)s::text[], %(seconds)s::float8[]) AS g (s, seconds) WHERE s = a.subject))
    RETURNING subject, failures
"""
_TAKE_BACK: Final = """
    UPDATE accounts.attempts AS a SET failures = greatest(0, failures - 1) WHERE subject IN (
        SELECT subject FROM accounts.attempts WHERE subject = ANY(%s) ORDER BY subject FOR UPDATE
    )
"""
#: What is over, by table: its key, and the condition.
OVER: Final[Mapping[str, tuple[str, str]]] = {
    "attempts": ("subject", "changed_at < now() - interval '1 day'"),
    "sessions": ("id", "expires_at < now()"),
    "known_sites": ("ctid", "seen_at < now() - interval '90 days'"),
    "links": ("id", "expires_at < now() - interval '30 days'"),
    "external_logins": ("id", "expires_at < now()"),
}
#: Deleted in one transaction: however much there is, it takes less time than a question may.
CLEANED_AT_ONCE: Final = 5_000
#: What changes meanwhile is looked at again: the condition stands in both places.
_CLEAN: Final = """
    DELETE FROM accounts.{table} WHERE {condition}
    AND {key} IN (SELECT {key} FROM accounts.{table} WHERE {condition} LIMIT {most})
"""


@dataclass(frozen=True)
class Person:
    """A person who may log in, and the organisation."""

    id: str
    email: str
    password_hash: str | None
    organisation_id: str
    has_totp: bool


async def person_of(connection: psycopg.AsyncConnection, email: str) -> Person | None:
    """The person of this address, with the organisation that was joined first; None for nobody who may log in."""
    async with connection.cursor(row_factory=class_row(Person)) as cursor:
        await cursor.execute(_PERSON, (email.lower(),))
        return await cursor.fetchone()


async def open_session(
    connection: psycopg.AsyncConnection,
    credential: Credential,
    *,
    person_id: str,
    organisation_id: str,
    address: str | None,
    agent: str,
) -> None:
    """Begins the session that this credential opens; from now on its site is known for the person."""
    row = (credential.id, credential.hash, person_id, organisation_id, address, agent[:_AGENT_CHARS_MAX])
    await connection.execute(_OPEN, row)
    await connection.execute(_KNOW, (person_id, site_of(address)))


async def is_known(connection: psycopg.AsyncConnection, email: str, address: str | None) -> bool:
    """Whether the person of this address of e-mail has logged in from the site of `address` before."""
    given = (email.lower().replace("\0", ""), site_of(address))
    return await (await connection.execute(_IS_KNOWN, given)).fetchone() is not None


async def rehash(connection: psycopg.AsyncConnection, person: Person, password_hash: str) -> None:
    """The same password, whose hash takes more work."""
    await connection.execute(_REHASH, (password_hash, person.id, person.password_hash))


async def end_session(connection: psycopg.AsyncConnection, credential: Credential, actor: Actor) -> None:
    """Log-out."""
    await connection.execute(_END, (credential.id, credential.hash))
    await audit.add(connection, actor, "logged_out")


async def end_all_sessions(connection: psycopg.AsyncConnection, person_id: str, actor: Actor) -> int:
    """Log-out everywhere; how many sessions that were."""
    ended = (await connection.execute(_END_ALL, (person_id,))).rowcount
    await audit.add(connection, actor, "logged_out_everywhere", details={"sessions": ended})
    return ended


async def count_login(
    connection: psycopg.AsyncConnection, *, address: str | None, email: str
) -> tuple[list[Allowance], float]:
    """Counts a login of this account from this address, as `count_attempt` does; under which keys, and the seconds to wait."""
    allowed = allowances(address, email, is_known=await is_known(connection, email, address))
    return allowed, await count_attempt(connection, allowed)


async def count_attempt(connection: psycopg.AsyncConnection, allowed: Sequence[Allowance]) -> float:
    """Counts a login before it is tried, so that many at once are counted too; the seconds to wait, 0: it may be tried."""
    wanted = {"subjects": [one.subject for one in allowed], "seconds": [one.seconds for one in allowed]}
    would_hold = await (await connection.execute(_WOULD_HOLD, wanted)).fetchall()
    if (wait_seconds := _wait_seconds(allowed, dict(would_hold))) > 0:
        # Nothing is written: else an address that is refused adds rows for each account that it invents.
        return wait_seconds
    holds = await (await connection.execute(_COUNT, wanted)).fetchall()
    wait_seconds = _wait_seconds(allowed, dict(holds))
    if wait_seconds > 0:
        # What was refused takes no room: else who tries on is never let in.
        await connection.execute(_TAKE_BACK, (wanted["subjects"],))
    return wait_seconds


def _wait_seconds(allowed: Sequence[Allowance], failures: Mapping[str, float]) -> float:
    """Until no bucket holds more failures than it may; 0: none does."""
    return max(0.0, *((failures.get(one.subject, 0.0) - one.failures_max) * one.seconds for one in allowed))


async def forgive_attempt(connection: psycopg.AsyncConnection, allowed: Sequence[Allowance]) -> None:
    """The login that was counted has not failed."""
    await connection.execute(_TAKE_BACK, ([one.subject for one in allowed],))


async def clean(connection: psycopg.AsyncConnection, table: str) -> bool:
    """Deletes some of what is over in a table; whether there may be more."""
    key, condition = OVER[table]
    statement = _CLEAN.format(table=table, key=key, condition=condition, most=CLEANED_AT_ONCE)
    return (await connection.execute(statement)).rowcount == CLEANED_AT_ONCE
