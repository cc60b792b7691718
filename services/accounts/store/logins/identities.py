"""The owner of a session or a token, and the customers that its organisation may see."""

from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from services.accounts.core.credentials import Credential, Kind
from services.accounts.core.customer_scope import CustomerScope
from services.accounts.core.principal import Principal
from services.accounts.core.roles import Permission, Role, permissions_of

#: A session ends so long after the last request, if it has not ended before.
IDLE_DAYS_MAX: Final = 7

_OF_A_SESSION: Final = f"""
    SELECT s.hash, s.person_id::text AS id, p.email AS name, m.role, o.id::text AS organisation_id,
        o.name AS organisation, o.owns_rest, s.seen_at < now() - interval '1 minute' AS is_stale
    FROM accounts.sessions AS s
    JOIN accounts.people AS p ON p.id = s.person_id
    JOIN accounts.members AS m ON m.person_id = s.person_id AND m.organisation_id = s.organisation_id
    JOIN accounts.organisations AS o ON o.id = s.organisation_id
    WHERE s.id = %s AND s.expires_at > now() AND s.seen_at > now() - interval '{IDLE_DAYS_MAX} days'
      AND p.disabled_at IS NULL
"""  # noqa: S608 - a number of ours
_OF_A_KEY: Final = """
    SELECT t.hash, t.id, t.name, t.scopes, t.customers, t.expires_at, o.id::text AS organisation_id, o.name AS organisation,
        o.owns_rest, t.used_at IS NULL OR t.used_at < now() - interval '1 minute' AS is_stale
    FROM accounts.tokens AS t JOIN accounts.organisations AS o ON o.id = t.organisation_id
    WHERE t.id = %s AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
"""
#: Whoever comes second finds it done, and does not wait.
_SEEN: Final = """
    UPDATE accounts.sessions SET seen_at = now() WHERE id = (
        SELECT id FROM accounts.sessions WHERE id = %s AND seen_at < now() - interval '1 minute' FOR UPDATE SKIP LOCKED
    )
"""
_USED: Final = """
    UPDATE accounts.tokens SET used_at = now() WHERE id = (
        SELECT id FROM accounts.tokens WHERE id = %s AND (used_at IS NULL OR used_at < now() - interval '1 minute')
        FOR UPDATE SKIP LOCKED
    )
"""
_VERSION: Final = "SELECT version FROM accounts.ownership"
_OWN: Final = "SELECT customer_id FROM accounts.customers WHERE organisation_id = %s"
_OTHERS: Final = "SELECT customer_id FROM accounts.customers WHERE organisation_id <> %s"


class Ownership:
    """The owners of customers, read again when they change."""

    def __init__(self) -> None:
        self._version = -1
        self._scopes: dict[str, CustomerScope] = {}

    async def scope(
        self, connection: psycopg.AsyncConnection, organisation_id: str, *, owns_rest: bool
    ) -> CustomerScope:
        """The customers of an organisation."""
        row = await (await connection.execute(_VERSION)).fetchone()
        version = row[0] if row else -1
        if version != self._version:
            # What is found below may be newer than this version: then it is read once more.
            self._version, self._scopes = version, {}
        known = self._scopes.get(organisation_id)
        if known is None:
            found = await (await connection.execute(_OTHERS if owns_rest else _OWN, (organisation_id,))).fetchall()
            customers = frozenset(customer_id for (customer_id,) in found)
            known = CustomerScope(all_but=customers) if owns_rest else CustomerScope(own=customers)
            if version == self._version:
                self._scopes[organisation_id] = known
        return known


async def principal_of(
    connection: psycopg.AsyncConnection, ownership: Ownership, credential: Credential
) -> Principal | None:
    """The owner of a credential; None if it is unknown, ended, expired or revoked. Notes that it was used, to the minute."""
    is_session = credential.kind is Kind.SESSION
    async with connection.cursor(row_factory=dict_row) as cursor:
        found = await (await cursor.execute(_OF_A_SESSION if is_session else _OF_A_KEY, (credential.id,))).fetchone()
    if found is None or not credential.matches(found["hash"]):
        return None
    if found["is_stale"]:
        await connection.execute(_SEEN if is_session else _USED, (credential.id,))
    scope = await ownership.scope(connection, found["organisation_id"], owns_rest=found["owns_rest"])
    return _of_session(found, scope) if is_session else _of_token(found, scope)


def _of_session(found: dict[str, Any], scope: CustomerScope) -> Principal:
    role = Role(found["role"])
    return Principal(
        kind="person",
        id=found["id"],
        name=found["name"],
        organisation_id=found["organisation_id"],
        organisation=found["organisation"],
        role=role,
        permissions=permissions_of(role),
        scope=scope,
        runs_installation=found["owns_rest"],
    )


def _of_token(found: dict[str, Any], scope: CustomerScope) -> Principal:
    is_restricted = found["customers"] is not None
    return Principal(
        kind="token",
        id=found["id"],
        name=found["name"],
        organisation_id=found["organisation_id"],
        organisation=found["organisation"],
        role=None,
        permissions=frozenset(Permission(name) for name in found["scopes"]),
        scope=scope.restricted_to(found["customers"]) if is_restricted else scope,
        # A token for some customers has no business with the installation.
        runs_installation=found["owns_rest"] and not is_restricted,
        ends_at=found["expires_at"],
    )
