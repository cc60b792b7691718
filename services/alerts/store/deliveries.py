"""Deliveries in Postgres: messages that wait, in order by incident and receiver, and what became of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.accounts.store.tenants.organisations import OWNER_OF
from services.alerts.store.receivers import RECEIVERS_MAX, Receiver

#: Those that were delivered or skipped are kept for so long, and dead ones.
_KEPT: Final = "30 days"
#: Tests of an organisation within an hour, one to each receiver that it may have: a receiver may be anybody's address.
TESTS_MAX: Final = RECEIVERS_MAX
#: Messages that are due, the oldest, among which it is chosen.
_LOOKED_AT: Final = 1_000
#: How many messages this process is sending to the receiver, and to its organisation.
_TO_RECEIVER: Final = "coalesce((%(receivers)s::text::jsonb ->> waiting.receiver_id::text)::integer, 0)"
_OF_ORGANISATION: Final = "coalesce((%(organisations)s::text::jsonb ->> receivers.organisation_id::text)::integer, 0)"
#: Who owns a customer is asked for with each attempt: it may have moved since its rule named the receiver. Of one receiver, and of
#: one organisation, so many are taken at once: one that hangs, or has very many messages, keeps nobody else's waiting.
CLAIM: Final = f"""
    WITH due AS MATERIALIZED (
        SELECT waiting.id, waiting.due_at, waiting.receiver_id, receivers.organisation_id
        FROM alerts.deliveries AS waiting JOIN alerts.receivers ON receivers.id = waiting.receiver_id
        WHERE waiting.state = 'waiting' AND waiting.due_at <= now() AND {_TO_RECEIVER} < %(of_receiver)s
          AND {_OF_ORGANISATION} < %(of_organisation)s AND NOT EXISTS (
            SELECT FROM alerts.deliveries AS earlier
            WHERE earlier.incident_id = waiting.incident_id AND earlier.receiver_id = waiting.receiver_id
              AND earlier.revision < waiting.revision AND earlier.state = 'waiting'
        )
        ORDER BY waiting.due_at LIMIT {_LOOKED_AT}
    ), ranked AS (
        SELECT id, row_number() OVER (PARTITION BY receiver_id ORDER BY due_at, id) AS of_receiver,
               row_number() OVER (PARTITION BY organisation_id ORDER BY due_at, id) AS of_organisation
        FROM due
    ), next AS MATERIALIZED (
        SELECT waiting.id, receivers.organisation_id::text, receivers.kind, receivers.target, receivers.template,
               waiting.event IS NULL OR coalesce(
                   receivers.organisation_id = {OWNER_OF.format(customer="waiting.event ->> 'customer_id'")}, false
               ) AS is_owners
        FROM ranked JOIN alerts.deliveries AS waiting ON waiting.id = ranked.id
        JOIN alerts.receivers ON receivers.id = waiting.receiver_id
        WHERE of_receiver + {_TO_RECEIVER} <= %(of_receiver)s AND of_organisation + {_OF_ORGANISATION} <= %(of_organisation)s
          AND waiting.state = 'waiting' AND waiting.due_at <= now()
        ORDER BY waiting.due_at LIMIT %(rows)s FOR UPDATE OF waiting SKIP LOCKED
    ), claimed AS (
        UPDATE alerts.deliveries AS one
        SET attempts = one.attempts + is_owners::integer, due_at = now() + make_interval(secs => %(lease)s),
            state = CASE WHEN is_owners THEN 'waiting' ELSE 'skipped' END,
            ended_at = CASE WHEN NOT is_owners THEN now() END,
            problem = CASE WHEN is_owners THEN one.problem ELSE 'the customer is another organisation''s' END
        FROM next WHERE one.id = next.id
        RETURNING one.id, one.incident_id, one.revision, one.event, one.attempts, one.receiver_id::text, next.organisation_id,
                  next.kind, next.target, next.template, one.state
    )
    SELECT id, incident_id, revision, event, attempts, receiver_id, organisation_id, kind, target, template
    FROM claimed WHERE state = 'waiting'
"""  # noqa: S608 - SQL of ours
_SHOWN: Final = """
    SELECT deliveries.id, receivers.name AS receiver, receivers.kind, incident_id, revision, state, attempts, due_at, made_at,
           ended_at, problem
    FROM alerts.deliveries JOIN alerts.receivers ON receivers.id = receiver_id
"""


class Overtaken(ValueError):
    """A later message of the incident was delivered: this one would come out of order, and open again what is over."""


class TooManyTests(RuntimeError):
    """The organisation has sent as many tests within an hour as it may."""


@dataclass(frozen=True)
class Claimed:
    """A message that this process sends now."""

    id: str
    incident_id: str | None
    revision: int
    event: dict[str, Any] | None
    attempts: int
    receiver_id: str
    organisation_id: str
    kind: str
    target: dict[str, Any]
    template: str | None


@dataclass(frozen=True)
class Delivery:
    """The delivery of a message and its outcome."""

    id: str
    receiver: str
    kind: str
    incident_id: str | None
    revision: int
    state: str
    attempts: int
    due_at: datetime
    made_at: datetime
    ended_at: datetime | None
    problem: str | None


@dataclass(frozen=True)
class Room:
    """How many messages may be claimed in all; how many may be under way to a receiver and of an organisation, and are."""

    rows: int
    of_receiver: int
    of_organisation: int
    #: By id.
    receivers: Mapping[str, int]
    organisations: Mapping[str, int]


async def claim(connection: psycopg.AsyncConnection, *, room: Room, lease_seconds: float) -> list[Claimed]:
    """Messages whose turn it is. If no outcome is stored, any process may claim them again after the lease.

    Messages about a customer of another organisation than the receiver's are skipped.
    """
    async with connection.cursor(row_factory=class_row(Claimed)) as cursor:
        under_way = {"receivers": Jsonb(room.receivers), "organisations": Jsonb(room.organisations)}
        await cursor.execute(CLAIM, vars(room) | under_way | {"lease": lease_seconds})
        return await cursor.fetchall()


async def delivered(connection: psycopg.AsyncConnection, delivery_id: str) -> None:
    """The receiver has it, also where it was muted while it was sent."""
    await connection.execute(
        "UPDATE alerts.deliveries SET state = 'delivered', ended_at = now(), problem = NULL WHERE id = %s",
        (delivery_id,),
    )


async def failed(
    connection: psycopg.AsyncConnection, delivery_id: str, problem: str, wait_seconds: float | None
) -> None:
    """An attempt failed: another one after so long, or (None) none: it is dead."""
    if wait_seconds is None:
        await connection.execute(
            "UPDATE alerts.deliveries SET state = 'dead', ended_at = now(), problem = %s WHERE id = %s AND state = 'waiting'",
            (problem, delivery_id),
        )
        return
    await connection.execute(
        """
        UPDATE alerts.deliveries SET due_at = now() + make_interval(secs => %s), problem = %s
        WHERE id = %s AND state = 'waiting'
        """,
        (wait_seconds, problem, delivery_id),
    )


async def add_test(connection: psycopg.AsyncConnection, receiver: Receiver, delivery_id: str, actor: Actor) -> None:
    """A message that says that messages arrive. Raises `TooManyTests`."""
    added = await connection.execute(
        """
        INSERT INTO alerts.deliveries (id, receiver_id) SELECT %(id)s, %(receiver)s
        WHERE (
            SELECT count(*) FROM alerts.deliveries AS sent JOIN alerts.receivers ON receivers.id = sent.receiver_id
            WHERE sent.incident_id IS NULL AND sent.made_at > now() - interval '1 hour'
              AND receivers.organisation_id = %(organisation)s
        ) < %(most)s
        """,
        {
            "id": delivery_id,
            "receiver": receiver.id,
            "organisation": receiver.organisation_id,
            "most": TESTS_MAX,
        },
    )
    if added.rowcount == 0:
        raise TooManyTests
    await audit.add(connection, actor, "tested_alert_receiver", receiver.name)


async def newest(
    connection: psycopg.AsyncConnection,
    organisation_id: str,
    *,
    state: str | None,
    after: tuple[datetime, str] | None,
    rows_max: int,
) -> list[Delivery]:
    """The deliveries to an organisation's receivers, the newest first, of equal times by id; after one of this time and id."""
    after_at, after_id = after or (None, "")
    async with connection.cursor(row_factory=class_row(Delivery)) as cursor:
        await cursor.execute(
            f"""
            {_SHOWN} WHERE receivers.organisation_id = %(organisation)s AND (%(state)s::text IS NULL OR state = %(state)s)
              AND (%(after_at)s::timestamptz IS NULL OR made_at < %(after_at)s
                   OR (made_at = %(after_at)s AND deliveries.id > %(after_id)s))
            ORDER BY made_at DESC, deliveries.id LIMIT %(rows)s
            """,
            {
                "organisation": organisation_id,
                "state": state,
                "after_at": after_at,
                "after_id": after_id,
                "rows": rows_max,
            },
        )
        return await cursor.fetchall()


async def of_incident(connection: psycopg.AsyncConnection, incident_id: str, organisation_id: str) -> list[Delivery]:
    """Which of an organisation's receivers were notified of an incident."""
    async with connection.cursor(row_factory=class_row(Delivery)) as cursor:
        await cursor.execute(
            f"{_SHOWN} WHERE incident_id = %s AND receivers.organisation_id = %s ORDER BY revision, made_at LIMIT 500",
            (incident_id, organisation_id),
        )
        return await cursor.fetchall()


async def again(connection: psycopg.AsyncConnection, delivery_id: str, actor: Actor) -> bool:
    """A dead message of the actor's organisation is tried again; False where there is no such message. Raises `Overtaken`."""
    found = await connection.execute(
        """
        SELECT EXISTS (
            SELECT FROM alerts.deliveries AS later
            WHERE later.incident_id = dead.incident_id AND later.receiver_id = dead.receiver_id
              AND later.revision > dead.revision AND later.state = 'delivered'
        )
        FROM alerts.deliveries AS dead JOIN alerts.receivers ON receivers.id = dead.receiver_id
        WHERE dead.id = %s AND dead.state = 'dead' AND receivers.organisation_id = %s AND receivers.deleted_at IS NULL
        FOR UPDATE OF dead
        """,
        (delivery_id, actor.organisation_id),
    )
    row = await found.fetchone()
    if row is None:
        return False
    if row[0]:
        raise Overtaken
    await connection.execute(
        "UPDATE alerts.deliveries SET state = 'waiting', attempts = 0, due_at = now(), ended_at = NULL WHERE id = %s",
        (delivery_id,),
    )
    await audit.add(connection, actor, "tried_message_again", delivery_id)
    return True


async def clean(connection: psycopg.AsyncConnection) -> None:
    """Deletes what has been over for long. Messages of open incidents stay: they say who is notified of the end."""
    await connection.execute(
        f"""
        DELETE FROM alerts.deliveries WHERE state <> 'waiting' AND ended_at < now() - interval '{_KEPT}'
          AND NOT EXISTS (SELECT FROM alerts.incidents WHERE id = incident_id AND closed_at IS NULL)
        """  # noqa: S608 - SQL of ours
    )
