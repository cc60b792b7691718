"""Rules in Postgres: each change is a version of the rule and of its environment's rules, with a row of the audit log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
import psycopg
import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.alerts.core.quiet_hours import Quiet, QuietSpan
from services.alerts.core.rules import RuleBody, applied
from shared.schemas.alerts.rule import RULES_MAX, SCHEMA_VERSION, AlertRules

log = structlog.get_logger(__name__)

_COLUMNS: Final = "id::text, customer_id, version, body, changed_at, changed_by"
_BUMP: Final = """
    INSERT INTO alerts.environments (customer_id, version) VALUES (%s, 1)
    ON CONFLICT (customer_id) DO UPDATE SET version = alerts.environments.version + 1
"""
_COUNT: Final = "SELECT count(*) FROM alerts.rules WHERE customer_id = %s AND deleted_at IS NULL"


class TooManyRules(ValueError):
    """The environment has as many rules as it may."""


class RuleChanged(ValueError):
    """Another person has changed the rule since it was read."""


class RulesUnread(ValueError):
    """An environment has a rule that this version cannot read, such as one of a metric that a later version added."""

    def __init__(self, customer_id: str, version: int) -> None:
        super().__init__(customer_id)
        #: The environment, and the version of its rules.
        self.unread = (customer_id, version)


class Notified(msgspec.Struct, frozen=True):
    """The part of a rule that says who is notified and when."""

    quiet: Quiet = Quiet()
    receivers: list[str] = []


@dataclass(frozen=True)
class StoredRule:
    """A rule as it is stored."""

    id: str
    customer_id: str
    version: int
    body: dict[str, Any]
    changed_at: datetime
    changed_by: str

    @property
    def rule(self) -> RuleBody:
        """What it says. Raises `msgspec.ValidationError` where a later version wrote what this one does not know."""
        return msgspec.convert(_known(RuleBody, self.body), RuleBody)


async def rules_of(
    connection: psycopg.AsyncConnection,
    customer_ids: Sequence[str] | None,
    *,
    all_but: Sequence[str] = (),
    after: tuple[str, datetime, str] | None = None,
    rows_max: int,
) -> list[StoredRule]:
    """The rules of these customers (None: of all but some), by customer, last change and id; after one of these.

    A rule that is changed while somebody pages may come again at the end of its customer's; none is left out.
    """
    after_customer, after_at, after_id = after or (None, None, "")
    async with connection.cursor(row_factory=class_row(StoredRule)) as cursor:
        await cursor.execute(
            f"""
            SELECT {_COLUMNS} FROM alerts.rules
            WHERE deleted_at IS NULL AND (%(customers)s::text[] IS NULL OR customer_id = ANY(%(customers)s))
              AND customer_id <> ALL(%(all_but)s::text[])
              AND (%(after_customer)s::text IS NULL
                   OR (customer_id, changed_at, rules.id::text) > (%(after_customer)s, %(after_at)s, %(after_id)s))
            ORDER BY customer_id, changed_at, rules.id::text LIMIT %(rows)s
            """,  # noqa: S608 - SQL of ours
            {
                "customers": None if customer_ids is None else list(customer_ids),
                "all_but": list(all_but),
                "after_customer": after_customer,
                "after_at": after_at,
                "after_id": after_id,
                "rows": rows_max,
            },
        )
        return await cursor.fetchall()


async def find_rule(connection: psycopg.AsyncConnection, rule_id: str) -> StoredRule | None:
    """One rule; None where there is none."""
    async with connection.cursor(row_factory=class_row(StoredRule)) as cursor:
        await cursor.execute(
            f"SELECT {_COLUMNS} FROM alerts.rules WHERE id = %s AND deleted_at IS NULL",  # noqa: S608 - SQL of ours
            (rule_id,),
        )
        return await cursor.fetchone()


async def versions_of(
    connection: psycopg.AsyncConnection, rule_id: str, *, before: int | None, rows_max: int
) -> list[StoredRule]:
    """The versions that a rule had, the newest first, those before one of this number."""
    async with connection.cursor(row_factory=class_row(StoredRule)) as cursor:
        await cursor.execute(
            """
            SELECT rule_id::text AS id, customer_id, rule_versions.version, rule_versions.body, rule_versions.changed_at,
                   rule_versions.changed_by
            FROM alerts.rule_versions JOIN alerts.rules ON rules.id = rule_id
            WHERE rule_id = %(rule)s AND (%(before)s::bigint IS NULL OR rule_versions.version < %(before)s)
            ORDER BY rule_versions.version DESC LIMIT %(rows)s
            """,
            {"rule": rule_id, "before": before, "rows": rows_max},
        )
        return await cursor.fetchall()


async def add_rule(connection: psycopg.AsyncConnection, body: RuleBody, actor: Actor) -> str:
    """Adds a rule; its id. Raises `TooManyRules`."""
    # First, so that two at once wait for each other.
    await connection.execute(_BUMP, (body.customer,))
    counted = await (await connection.execute(_COUNT, (body.customer,))).fetchone()
    if counted is not None and counted[0] >= RULES_MAX:
        raise TooManyRules
    row = await (
        await connection.execute(
            "INSERT INTO alerts.rules (customer_id, body, changed_by) VALUES (%s, %s, %s) RETURNING id::text",
            (body.customer, _json(body), actor.name),
        )
    ).fetchone()
    assert row is not None
    await _note(connection, (row[0], 1), body, actor, "made_alert_rule")
    return str(row[0])


async def change_rule(
    connection: psycopg.AsyncConnection, rule_id: str, body: RuleBody, actor: Actor, *, version: int
) -> int | None:
    """Changes a rule of which `version` was read; the new version, or None where there is none. Raises `RuleChanged`."""
    known = await (
        await connection.execute(
            "SELECT version FROM alerts.rules WHERE id = %s AND customer_id = %s AND deleted_at IS NULL FOR UPDATE",
            (rule_id, body.customer),
        )
    ).fetchone()
    if known is None:
        return None
    if known[0] != version:
        raise RuleChanged
    await connection.execute(
        "UPDATE alerts.rules SET body = %s, version = %s, changed_at = now(), changed_by = %s WHERE id = %s",
        (_json(body), version + 1, actor.name, rule_id),
    )
    await connection.execute(_BUMP, (body.customer,))
    await _note(connection, (rule_id, version + 1), body, actor, "changed_alert_rule")
    return version + 1


async def delete_rule(connection: psycopg.AsyncConnection, rule: StoredRule, actor: Actor) -> bool:
    """Deletes a rule; its versions stay, for the incidents that it found."""
    deleted = await connection.execute(
        "UPDATE alerts.rules SET deleted_at = now(), changed_by = %s WHERE id = %s AND deleted_at IS NULL",
        (actor.name, rule.id),
    )
    if deleted.rowcount != 1:
        return False
    await connection.execute(_BUMP, (rule.customer_id,))
    await audit.add(connection, actor, "deleted_alert_rule", rule.body["name"], details={"customer": rule.customer_id})
    return True


async def lock_unpublished(
    connection: psycopg.AsyncConnection, unread: Collection[tuple[str, int]] = ()
) -> AlertRules | None:
    """The rules of one environment that changed since the processor was given them, locked until the transaction ends.

    `unread`: environments that are passed over at this version of their rules. Raises `RulesUnread`.
    """
    row = await (
        await connection.execute(
            """
            SELECT customer_id, version FROM alerts.environments
            WHERE version > published AND (customer_id, version) NOT IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))
            LIMIT 1 FOR UPDATE SKIP LOCKED
            """,
            ([one for one, _ in unread], [version for _, version in unread]),
        )
    ).fetchone()
    if row is None:
        return None
    stored = await rules_of(connection, [row[0]], rows_max=RULES_MAX)
    try:
        rules = [applied(one.id, one.version, one.rule) for one in stored]
    except msgspec.ValidationError as error:
        raise RulesUnread(row[0], row[1]) from error
    return AlertRules(schema_version=SCHEMA_VERSION, customer_id=row[0], version=row[1], rules=rules)


async def notified_by(connection: psycopg.AsyncConnection, rule_id: str) -> Notified | None:
    """Whom a rule notifies now, also one that is deleted; None where there is no such rule, or it cannot be read."""
    try:
        named = UUID(rule_id)
    except ValueError:
        return None
    row = await (await connection.execute("SELECT body FROM alerts.rules WHERE id = %s", (named,))).fetchone()
    if row is None:
        return None
    try:
        return msgspec.convert(_known(RuleBody, row[0]), Notified)
    except msgspec.ValidationError as error:
        log.error("rule_unread", rule=rule_id, why=str(error))
        return None


async def set_published(connection: psycopg.AsyncConnection, rules: AlertRules) -> None:
    """The processor has been given these rules."""
    await connection.execute(
        "UPDATE alerts.environments SET published = %s WHERE customer_id = %s", (rules.version, rules.customer_id)
    )


async def _note(
    connection: psycopg.AsyncConnection, named: tuple[str, int], body: RuleBody, actor: Actor, action: str
) -> None:
    """A version of a rule, `named` by its id and number, and its row of the audit log."""
    rule_id, version = named
    await connection.execute(
        "INSERT INTO alerts.rule_versions (rule_id, version, body, changed_by) VALUES (%s, %s, %s, %s)",
        (rule_id, version, _json(body), actor.name),
    )
    details = {"customer": body.customer, "version": version}
    await audit.add(connection, actor, action, body.name, details=details)


def _known(kind: type[msgspec.Struct], stored: Mapping[str, Any]) -> dict[str, Any]:
    """What this version knows of a rule's body, its quiet hours or a span of these.

    A later version may have written more: it is upgraded first, or was rolled back. The API refuses unknown members.
    """
    known = {name: stored[name] for name in kind.__struct_fields__ if name in stored}
    if kind is RuleBody and "quiet" in known:
        known["quiet"] = _known(Quiet, known["quiet"])
    if kind is Quiet and "spans" in known:
        known["spans"] = [_known(QuietSpan, one) for one in known["spans"]]
    return known


def _json(body: RuleBody) -> Jsonb:
    return Jsonb(msgspec.to_builtins(body))
