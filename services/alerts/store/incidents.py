"""Incidents in Postgres: each change lands once, with the messages that follow from it; what people do with incidents."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.alerts.core.quiet_hours import Quiet, until_ms
from services.alerts.store.rules import notified_by
from shared.schemas.alerts.event import AlertEvent

COMMENTS_MAX: Final = 500
_LAND: Final = """
    INSERT INTO alerts.incidents AS known (id, customer_id, rule_id, revision, opened_at, closed_at, event)
    VALUES (%(id)s, %(customer)s, %(rule)s, %(revision)s, %(opened)s, %(closed)s, %(event)s)
    ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, closed_at = excluded.closed_at, event = excluded.event
    WHERE known.revision < excluded.revision
"""
_CHANGE: Final = """
    INSERT INTO alerts.changes (incident_id, revision, event) VALUES (%(id)s, %(revision)s, %(event)s) ON CONFLICT DO NOTHING
"""
#: All receivers of the rule in one statement: a batch of changes is landed within the time of one question.
_DELIVER: Final = """
    INSERT INTO alerts.deliveries (id, receiver_id, incident_id, revision, event, state, due_at, ended_at)
    SELECT named.id, receivers.id, %(id)s, %(revision)s, %(event)s, CASE WHEN is_sent THEN 'waiting' ELSE 'skipped' END,
           greatest(%(due)s, now()), CASE WHEN NOT is_sent THEN now() END
    FROM unnest(%(deliveries)s::text[], %(receivers)s::uuid[]) AS named (id, receiver_id)
    JOIN alerts.receivers ON receivers.id = named.receiver_id AND receivers.deleted_at IS NULL
    JOIN alerts.incidents ON incidents.id = %(id)s
    CROSS JOIN LATERAL (
        SELECT CASE WHEN %(is_end)s THEN EXISTS (
            -- A receiver that got no message of the opening gets none of the end. Where one was tried, it may have come.
            SELECT FROM alerts.deliveries AS earlier
            WHERE earlier.incident_id = %(id)s AND earlier.receiver_id = receivers.id
              AND (earlier.state <> 'skipped' OR earlier.attempts > 0)
        ) ELSE coalesce(incidents.muted_until <= now(), true) END AS is_sent
    ) AS judged
    ON CONFLICT (id) DO NOTHING
"""
#: What quiet hours still hold when the incident is over is not sent any more.
_HELD: Final = """
    UPDATE alerts.deliveries SET state = 'skipped', ended_at = now()
    WHERE incident_id = %(id)s AND receiver_id = ANY(%(receivers)s::uuid[]) AND state = 'waiting' AND attempts = 0
      AND due_at > now()
"""
_COLUMNS: Final = """
    id, customer_id, rule_id, revision, opened_at, closed_at, event, acknowledged_at, acknowledged_by, muted_until, muted_by
"""


@dataclass(frozen=True)
class StoredIncident:
    """An incident, and what people did with it."""

    id: str
    customer_id: str
    rule_id: str
    revision: int
    opened_at: datetime
    closed_at: datetime | None
    event: dict[str, Any]
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    muted_until: datetime | None
    muted_by: str | None


@dataclass(frozen=True)
class Comment:
    """A comment on an incident."""

    id: int
    at: datetime
    author: str
    text: str


async def land(connection: psycopg.AsyncConnection, event: AlertEvent, *, now_ms: int) -> bool:
    """Takes a change in, with the messages to its rule's receivers; False where it was there already.

    Muted incidents have no messages but the end: what an opening began elsewhere, such as an alert of PagerDuty, is over with it.
    """
    values: dict[str, Any] = {
        "id": event.incident_id,
        "customer": event.customer_id,
        "rule": event.rule_id,
        "revision": event.revision,
        "opened": _time(event.opened_ms),
        "closed": _time(event.at_ms) if event.change == "closed" else None,
        "event": Jsonb(_storable(msgspec.to_builtins(event))),
    }
    await connection.execute(_LAND, values)
    if (await connection.execute(_CHANGE, values)).rowcount != 1:
        return False
    # Who is notified may have changed since the incident opened.
    found = await notified_by(connection, event.rule_id)
    if found is None or not found.receivers:
        return True
    values |= {
        "receivers": found.receivers,
        "deliveries": [delivery_id(event.incident_id, event.revision, one) for one in found.receivers],
        "due": _time(_due_ms(found.quiet, event.at_ms, now_ms)),
        "is_end": event.change == "closed",
    }
    if event.change == "closed":
        await connection.execute(_HELD, values)
    await connection.execute(_DELIVER, values)
    return True


def _due_ms(quiet: Quiet, at_ms: int, now_ms: int) -> int:
    """When a change is sent: when it came, or when quiet hours are over. It may land late, in hours that began meanwhile.

    What nothing holds is due before this moment: else the end of an incident that lands with its opening would find it held.
    """
    begins_ms = max(at_ms, now_ms)
    ends_ms = until_ms(quiet, begins_ms)
    return ends_ms if ends_ms > begins_ms else at_ms


def _storable(value: Any) -> Any:
    """JSON without zero characters, which Postgres has in no text: slices have the names that players send."""
    if isinstance(value, str):
        return value.replace("\0", " ")
    if isinstance(value, dict):
        return {_storable(name): _storable(one) for name, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list) else value


def delivery_id(incident_id: str, revision: int, receiver_id: str) -> str:
    """The idempotency key of a message: the same in every attempt, and after every replay."""
    named = f"{incident_id}/{revision}/{receiver_id}".encode()
    return f"msg_{hashlib.sha256(named).hexdigest()[:32]}"


async def newest(
    connection: psycopg.AsyncConnection,
    customer_ids: Sequence[str] | None,
    *,
    all_but: Sequence[str] = (),
    only_open: bool,
    before: datetime | None,
    after: tuple[datetime, str] | None,
    rows_max: int,
) -> list[StoredIncident]:
    """The incidents of these customers (None: of all but some), the newest first, of equal times by id.

    Only those that opened before a time, and those after the one that opened then and has this id.
    """
    after_at, after_id = after or (None, "")
    async with connection.cursor(row_factory=class_row(StoredIncident)) as cursor:
        await cursor.execute(
            f"""
            SELECT {_COLUMNS} FROM alerts.incidents
            WHERE (%(customers)s::text[] IS NULL OR customer_id = ANY(%(customers)s)) AND customer_id <> ALL(%(all_but)s::text[])
              AND (NOT %(only_open)s OR closed_at IS NULL) AND (%(before)s::timestamptz IS NULL OR opened_at < %(before)s)
              AND (%(after_at)s::timestamptz IS NULL OR opened_at < %(after_at)s
                   OR (opened_at = %(after_at)s AND id > %(after_id)s))
            ORDER BY opened_at DESC, id LIMIT %(rows)s
            """,  # noqa: S608 - SQL of ours
            {
                "customers": None if customer_ids is None else list(customer_ids),
                "all_but": list(all_but),
                "only_open": only_open,
                "before": before,
                "after_at": after_at,
                "after_id": after_id,
                "rows": rows_max,
            },
        )
        return await cursor.fetchall()


async def find_incident(connection: psycopg.AsyncConnection, incident_id: str) -> StoredIncident | None:
    """One incident; None where there is none."""
    async with connection.cursor(row_factory=class_row(StoredIncident)) as cursor:
        await cursor.execute(f"SELECT {_COLUMNS} FROM alerts.incidents WHERE id = %s", (incident_id,))  # noqa: S608
        return await cursor.fetchone()


async def changes_of(connection: psycopg.AsyncConnection, incident_id: str) -> list[dict[str, Any]]:
    """All changes of an incident, in order."""
    rows = await (
        await connection.execute(
            "SELECT event FROM alerts.changes WHERE incident_id = %s ORDER BY revision LIMIT 1000", (incident_id,)
        )
    ).fetchall()
    return [row[0] for row in rows]


async def comments_of(connection: psycopg.AsyncConnection, incident_id: str) -> list[Comment]:
    """The comments on an incident, in order."""
    async with connection.cursor(row_factory=class_row(Comment)) as cursor:
        await cursor.execute(
            f"SELECT id, at, author, text FROM alerts.comments WHERE incident_id = %s ORDER BY id LIMIT {COMMENTS_MAX}",  # noqa: S608
            (incident_id,),
        )
        return await cursor.fetchall()


async def comment(connection: psycopg.AsyncConnection, incident: StoredIncident, text: str, actor: Actor) -> bool:
    """Adds a comment; False where there are as many as there may be."""
    added = await connection.execute(
        f"""
        INSERT INTO alerts.comments (incident_id, author, text) SELECT %s, %s, %s
        WHERE (SELECT count(*) FROM alerts.comments WHERE incident_id = %s) < {COMMENTS_MAX}
        """,  # noqa: S608 - SQL of ours
        (incident.id, actor.name, text, incident.id),
    )
    if added.rowcount != 1:
        return False
    details = {"customer": incident.customer_id}
    await audit.add(connection, actor, "commented_on_incident", incident.id, details=details)
    return True


async def acknowledge(connection: psycopg.AsyncConnection, incident: StoredIncident, actor: Actor) -> None:
    """Records the first person who takes care of it."""
    changed = await connection.execute(
        """
        UPDATE alerts.incidents SET acknowledged_at = now(), acknowledged_by = %s
        WHERE id = %s AND acknowledged_at IS NULL
        """,
        (actor.name, incident.id),
    )
    if changed.rowcount:
        details = {"customer": incident.customer_id}
        await audit.add(connection, actor, "acknowledged_incident", incident.id, details=details)


async def mute(
    connection: psycopg.AsyncConnection, incident: StoredIncident, until: datetime | None, actor: Actor
) -> None:
    """No message until then but that of the end, those that wait or are tried again included; None: messages again."""
    await connection.execute(
        "UPDATE alerts.incidents SET muted_until = %s, muted_by = %s WHERE id = %s", (until, actor.name, incident.id)
    )
    if until is not None:
        await connection.execute(
            """
            UPDATE alerts.deliveries SET state = 'skipped', ended_at = now()
            WHERE incident_id = %s AND state = 'waiting' AND event ->> 'change' <> 'closed'
            """,
            (incident.id,),
        )
    action = "unmuted_incident" if until is None else "muted_incident"
    await audit.add(connection, actor, action, incident.id, details={"customer": incident.customer_id})


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)
