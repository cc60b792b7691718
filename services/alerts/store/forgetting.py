"""Deletions of alert data: all of a customer, or texts of people that name a viewer.

The finalizer calls it, so it is synchronous; each call is part of the transaction of its connection.
"""

from collections.abc import Callable, Mapping
from typing import Final

import psycopg

from services.accounts.core.deletions import names_viewer, without_viewer

_IS_THERE: Final = "SELECT to_regclass('alerts.environments') IS NOT NULL"
#: Who adds or publishes rules of the customer waits from here on, also of one that never had rules.
_LOCK: Final = """
    INSERT INTO alerts.environments (customer_id, version) VALUES (%s, 1)
    ON CONFLICT (customer_id) DO UPDATE SET version = alerts.environments.version
"""
_OF_CUSTOMER: Final = """
    (event ->> 'customer_id' = %(customer)s OR incident_id IN (SELECT id FROM alerts.incidents WHERE customer_id = %(customer)s))
"""
_SKIP: Final = f"""
    UPDATE alerts.deliveries SET state = 'skipped', ended_at = now() WHERE state = 'waiting' AND {_OF_CUSTOMER}
"""  # noqa: S608 - SQL of ours
_OF_INCIDENTS: Final = "incident_id IN (SELECT id FROM alerts.incidents WHERE customer_id = %(customer)s)"
#: In this order: messages are found by their incidents.
_WITHDRAWN: Final[Mapping[str, str]] = {
    "rule_versions": """
        DELETE FROM alerts.rule_versions WHERE rule_id IN (SELECT id FROM alerts.rules WHERE customer_id = %(customer)s)
    """,
    "rules": "DELETE FROM alerts.rules WHERE customer_id = %(customer)s",
}
_FOUND: Final[Mapping[str, str]] = {
    "messages": f"DELETE FROM alerts.deliveries WHERE {_OF_CUSTOMER}",  # noqa: S608 - SQL of ours
    "comments": f"DELETE FROM alerts.comments WHERE {_OF_INCIDENTS}",  # noqa: S608 - SQL of ours
    "changes": f"DELETE FROM alerts.changes WHERE {_OF_INCIDENTS}",  # noqa: S608 - SQL of ours
    "incidents": "DELETE FROM alerts.incidents WHERE customer_id = %(customer)s",
}
_COMMENTS: Final = f"SELECT id, text FROM alerts.comments WHERE {_OF_INCIDENTS}"  # noqa: S608 - SQL of ours
_DELETE_COMMENTS: Final = "DELETE FROM alerts.comments WHERE id = ANY(%s)"
#: Where the name of a rule is, a text of people: table, the member of which document, its rows' keys, and which are a customer's.
_NAMES: Final = (
    ("rules", "body", "name", ("id", "version"), "customer_id = %(customer)s"),
    (
        *("rule_versions", "body", "name", ("rule_id", "version")),
        "rule_id IN (SELECT id FROM alerts.rules WHERE customer_id = %(customer)s)",
    ),
    ("incidents", "event", "rule_name", ("id", "revision"), "customer_id = %(customer)s"),
    ("changes", "event", "rule_name", ("incident_id", "revision"), _OF_INCIDENTS),
    ("deliveries", "event", "rule_name", ("id", "revision"), f"event IS NOT NULL AND {_OF_CUSTOMER}"),
)
_PUBLISH_AGAIN: Final = "UPDATE alerts.environments SET version = version + 1 WHERE customer_id = %(customer)s"


def withdraw_rules(connection: psycopg.Connection, customer_id: str, publish: Callable[[], None]) -> dict[str, int]:
    """Deletes a customer's rules and sends none of its messages that wait; how many of each.

    `publish` tells the processor: behind all earlier rules, and before any that people make later.
    """
    if not _is_there(connection):
        publish()
        return {}
    connection.execute(_LOCK, (customer_id,))
    of_customer = {"customer": customer_id}
    counts = {"skipped_messages": connection.execute(_SKIP, of_customer).rowcount}
    counts |= {name: connection.execute(statement, of_customer).rowcount for name, statement in _WITHDRAWN.items()}
    publish()
    connection.execute("DELETE FROM alerts.environments WHERE customer_id = %(customer)s", of_customer)
    return counts


def delete_incidents(connection: psycopg.Connection, customer_id: str) -> dict[str, int]:
    """Deletes a customer's incidents with their changes, comments and messages; how many of each."""
    if not _is_there(connection):
        return {}
    of_customer = {"customer": customer_id}
    return {name: connection.execute(statement, of_customer).rowcount for name, statement in _FOUND.items()}


def forget_viewer(connection: psycopg.Connection, customer_id: str, viewer: str) -> dict[str, int]:
    """Deletes comments that name a viewer, and the id from names of rules, wherever these are; how many of each."""
    if not _is_there(connection):
        return {}
    of_customer = {"customer": customer_id}
    found = connection.execute(_COMMENTS, of_customer).fetchall()
    naming = [key for key, text in found if names_viewer(text, viewer)]
    counts = {"comments": connection.execute(_DELETE_COMMENTS, (naming,)).rowcount}
    for table, document, member, keys, where in _NAMES:
        counts[f"names_of_{table}"] = 0
        select = f"SELECT {document} ->> '{member}', {', '.join(keys)} FROM alerts.{table} WHERE {where}"  # noqa: S608
        put = f"""
            UPDATE alerts.{table} SET {document} = jsonb_set({document}, '{{{member}}}', to_jsonb(%s::text))
            WHERE {" AND ".join(f"{key} = %s" for key in keys)}
        """  # noqa: S608 - SQL of ours
        for name, *row in connection.execute(select, of_customer).fetchall():
            left = without_viewer(name, viewer)
            if left != name:
                counts[f"names_of_{table}"] += connection.execute(put, (left, *row)).rowcount
    if counts["names_of_rules"]:
        connection.execute(_PUBLISH_AGAIN, of_customer)
    return counts


def _is_there(connection: psycopg.Connection) -> bool:
    """An installation without alerts has no such schema."""
    return connection.execute(_IS_THERE).fetchone() == (True,)
