"""Organisations, and the customers (environments) that they own."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psycopg
from psycopg.rows import class_row

from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.rim.database import locks

#: Of one organisation.
CUSTOMERS_MAX: Final = 10_000

_ORGANISATIONS: Final = """
    SELECT o.id::text AS id, o.name, o.owns_rest AS runs_installation, o.created_at,
        (SELECT count(*) FROM accounts.members AS m WHERE m.organisation_id = o.id) AS people,
        (SELECT count(*) FROM accounts.customers AS c WHERE c.organisation_id = o.id) AS customers,
        EXISTS (SELECT FROM accounts.members AS m WHERE m.organisation_id = o.id AND m.person_id = %(person_id)s::uuid) AS is_member
    FROM accounts.organisations AS o
    WHERE o.id::text > %(after)s AND (%(all)s OR o.id = %(organisation_id)s::uuid
        OR EXISTS (SELECT FROM accounts.members AS m WHERE m.organisation_id = o.id AND m.person_id = %(person_id)s::uuid))
    ORDER BY o.id::text LIMIT %(rows_max)s
"""
_NEW: Final = "INSERT INTO accounts.organisations (name) VALUES (%s) RETURNING id::text"
_RENAME: Final = "UPDATE accounts.organisations SET name = %s WHERE id::text = %s RETURNING name"
#: Waits for a person who is just joining; until the transaction ends no other person joins.
_LOCK: Final = "SELECT FROM accounts.organisations WHERE id::text = %s FOR UPDATE"
_PEOPLE: Final = "SELECT count(*) FROM accounts.members WHERE organisation_id::text = %s"
_EXISTS: Final = "SELECT EXISTS (SELECT FROM accounts.organisations WHERE id::text = %s)"
_CUSTOMERS: Final = """
    SELECT c.customer_id AS id, c.name, c.organisation_id::text AS organisation_id, c.created_at
    FROM accounts.customers AS c
    WHERE c.customer_id > %(after)s AND (%(all)s OR c.organisation_id = %(organisation_id)s)
        AND (%(owned_by)s = '' OR c.organisation_id::text = %(owned_by)s)
        AND (%(among)s::text[] IS NULL OR c.customer_id = ANY(%(among)s::text[]))
    ORDER BY c.customer_id LIMIT %(rows_max)s
"""
#: Of a row of `accounts.deletions`.
DELETION_UNDER_WAY: Final = "state IN ('pending', 'running')"
#: Whether an organisation may have one more customer.
_HAS_ROOM: Final = f"(SELECT count(*) FROM accounts.customers WHERE organisation_id::text = %s) < {CUSTOMERS_MAX}"  # noqa: S608
_NEW_CUSTOMER: Final = f"""
    INSERT INTO accounts.customers (customer_id, organisation_id, name) SELECT %s, %s, %s
    WHERE {_HAS_ROOM} ON CONFLICT (customer_id) DO NOTHING RETURNING created_at
"""
#: Who runs the installation owns what is not listed.
_LIST_CUSTOMER: Final = """
    INSERT INTO accounts.customers (customer_id, organisation_id) SELECT %s, id FROM accounts.organisations WHERE owns_rest
    ON CONFLICT (customer_id) DO NOTHING
"""
_FIND_CUSTOMER: Final = "SELECT organisation_id::text, name FROM accounts.customers WHERE customer_id = %s FOR UPDATE"
_CHANGE_CUSTOMER: Final = """
    UPDATE accounts.customers SET organisation_id = %s, name = %s WHERE customer_id = %s
    RETURNING customer_id AS id, name, organisation_id::text AS organisation_id, created_at
"""
_IS_DELETED: Final = f"SELECT EXISTS (SELECT FROM accounts.deletions WHERE {DELETION_UNDER_WAY} AND customer_id = %s)"  # noqa: S608
#: Who runs the installation owns what is not listed, too: that has no end.
_BESIDE: Final = """
    SELECT c.customer_id FROM accounts.customers AS c JOIN accounts.organisations AS o ON o.id = c.organisation_id
    WHERE NOT o.owns_rest AND o.id = (SELECT organisation_id FROM accounts.customers WHERE customer_id = %s)
"""
_SWITCH: Final = """
    UPDATE accounts.sessions AS s SET organisation_id = m.organisation_id FROM accounts.members AS m
    WHERE s.id = %s AND m.person_id = s.person_id AND m.organisation_id::text = %s RETURNING m.organisation_id::text
"""

#: Of a statement: whose the customer is whose id stands in place of {customer}; null where nobody owns it.
OWNER_OF: Final = """coalesce(
    (SELECT organisation_id FROM accounts.customers WHERE customer_id = {customer}),
    (SELECT id FROM accounts.organisations WHERE owns_rest)
)"""


class OrganisationUnknown(LookupError):
    """There is no such organisation for the asker."""


class OrganisationHasPeople(ValueError):
    """Its own people invite others."""


class CustomerUnknown(LookupError):
    """There is no such customer for the asker."""


class DeletionUnderWay(ValueError):
    """What is deleted of the customer would be the new owner's."""


class CustomerTaken(ValueError):
    """The customer is listed already, or the organisation has as many as it may."""


@dataclass(frozen=True)
class Organisation:
    """An organisation, with how many people and listed customers it has."""

    id: str
    name: str
    runs_installation: bool
    created_at: datetime
    people: int
    customers: int
    #: Whether the asker is a person in it.
    is_member: bool


@dataclass(frozen=True)
class OwnedCustomer:
    """A customer that is listed as an organisation's."""

    id: str
    name: str
    organisation_id: str
    created_at: datetime


async def organisations(
    connection: psycopg.AsyncConnection,
    *,
    organisation_id: str,
    person_id: str | None,
    all_of_them: bool,
    after: str,
    rows_max: int,
) -> list[Organisation]:
    """The asker's organisation and those that it is a member of, or all, by id."""
    given = {
        "after": after,
        "all": all_of_them,
        "organisation_id": organisation_id,
        "person_id": person_id,
        "rows_max": rows_max,
    }
    async with connection.cursor(row_factory=class_row(Organisation)) as cursor:
        await cursor.execute(_ORGANISATIONS, given)
        return await cursor.fetchall()


async def add_organisation(connection: psycopg.AsyncConnection, name: str, actor: Actor) -> str:
    """A new organisation without people; its id. Noted for it and for who made it."""
    row = await (await connection.execute(_NEW, (name,))).fetchone()
    assert row is not None
    await audit.add(connection, actor, "made_organisation", name)
    await audit.add(connection, actor, "made_organisation", name, organisation_id=row[0])
    return str(row[0])


async def rename(connection: psycopg.AsyncConnection, organisation_id: str, name: str, actor: Actor) -> None:
    """Gives an organisation another name. Raises `OrganisationUnknown`."""
    row = await (await connection.execute(_RENAME, (name, organisation_id))).fetchone()
    if row is None:
        raise OrganisationUnknown
    await audit.add(connection, actor, "renamed_organisation", name, organisation_id=organisation_id)


async def check_empty(connection: psycopg.AsyncConnection, organisation_id: str) -> None:
    """Raises `OrganisationUnknown`, or `OrganisationHasPeople` if somebody has joined.

    Until the transaction ends nobody joins, and no other one looks: else each would make a link, and all of them would be good.
    """
    if await (await connection.execute(_LOCK, (organisation_id,))).fetchone() is None:
        raise OrganisationUnknown
    if await (await connection.execute(_PEOPLE, (organisation_id,))).fetchone() != (0,):
        raise OrganisationHasPeople


async def switch(connection: psycopg.AsyncConnection, session_id: str, organisation_id: str, actor: Actor) -> None:
    """The session continues in another organisation of the same person. Raises `OrganisationUnknown`."""
    row = await (await connection.execute(_SWITCH, (session_id, organisation_id))).fetchone()
    if row is None:
        raise OrganisationUnknown
    await audit.add(connection, actor, "entered_organisation", organisation_id=organisation_id)


async def customers(
    connection: psycopg.AsyncConnection,
    *,
    organisation_id: str,
    all_of_them: bool,
    owned_by: str,
    among: Iterable[str] | None,
    after: str,
    rows_max: int,
) -> list[OwnedCustomer]:
    """The listed customers of an organisation, or of all, by id.

    Of them those that `owned_by` owns, if it is given, and those of `among`, unless that is None.
    """
    given = {
        "after": after,
        "all": all_of_them,
        "organisation_id": organisation_id,
        "owned_by": owned_by,
        "among": None if among is None else sorted(among),
        "rows_max": rows_max,
    }
    async with connection.cursor(row_factory=class_row(OwnedCustomer)) as cursor:
        await cursor.execute(_CUSTOMERS, given)
        return await cursor.fetchall()


async def customers_beside(connection: psycopg.AsyncConnection, customer_id: str) -> list[str]:
    """The customers of the organisation that owns this one, itself too; none where it runs the installation."""
    return [beside for (beside,) in await (await connection.execute(_BESIDE, (customer_id,))).fetchall()]


async def add_customer(
    connection: psycopg.AsyncConnection, customer_id: str, name: str, actor: Actor, *, organisation_id: str
) -> datetime:
    """Lists a customer as an organisation's; when. Raises `CustomerTaken` or `OrganisationUnknown`."""
    await _check(connection, organisation_id)
    given = (customer_id, organisation_id, name, organisation_id)
    row = await (await connection.execute(_NEW_CUSTOMER, given)).fetchone()
    if row is None:
        raise CustomerTaken
    details = {"organisation": organisation_id, "name": name}
    await audit.add(connection, actor, "made_customer", customer_id, organisation_id=organisation_id, details=details)
    if organisation_id != actor.organisation_id:
        await audit.add(connection, actor, "made_customer", customer_id, details=details)
    made_at: datetime = row[0]
    return made_at


async def change_customer(
    connection: psycopg.AsyncConnection,
    customer_id: str,
    actor: Actor,
    *,
    owner_id: str | None,
    name: str | None,
    new_owner_id: str | None,
) -> OwnedCustomer:
    """Renames a listed customer of `owner_id` (None: of any organisation), or gives it to another organisation.

    With None a customer that is not listed can be given, too: it is listed then. Raises `CustomerUnknown`,
    `OrganisationUnknown`, `CustomerTaken` where the organisation has as many as it may, or `DeletionUnderWay`.
    """
    if new_owner_id is not None:
        await lock_deletions(connection)
    if owner_id is None and new_owner_id is not None:
        await connection.execute(_LIST_CUSTOMER, (customer_id,))
    row = await (await connection.execute(_FIND_CUSTOMER, (customer_id,))).fetchone()
    if row is None or (owner_id is not None and row[0] != owner_id):
        raise CustomerUnknown
    before_id, before_name = row
    if new_owner_id is not None:
        await _check(connection, new_owner_id)
        if new_owner_id != before_id:
            has_room = await (await connection.execute(f"SELECT {_HAS_ROOM}", (new_owner_id,))).fetchone()
            if has_room != (True,):
                raise CustomerTaken
            if await (await connection.execute(_IS_DELETED, (customer_id,))).fetchone() == (True,):
                raise DeletionUnderWay
    after_id, after_name = new_owner_id or before_id, before_name if name is None else name
    async with connection.cursor(row_factory=class_row(OwnedCustomer)) as cursor:
        found = await (await cursor.execute(_CHANGE_CUSTOMER, (after_id, after_name, customer_id))).fetchone()
    assert found is not None
    details = {"from": before_id, "to": after_id, "name": after_name}
    for one in dict.fromkeys((before_id, after_id)):
        await audit.add(connection, actor, "changed_customer", customer_id, organisation_id=one, details=details)
    return found


async def lock_deletions(connection: psycopg.AsyncConnection) -> None:
    """Until the transaction ends no other one asks for a deletion, or gives a customer to an organisation."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (locks.DELETIONS,))


async def _check(connection: psycopg.AsyncConnection, organisation_id: str) -> None:
    row = await (await connection.execute(_EXISTS, (organisation_id,))).fetchone()
    if row != (True,):
        raise OrganisationUnknown
