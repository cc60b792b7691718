"""Rows of schema `alerts`, as rules and incidents leave them, for tests that delete them."""

import re

import psycopg
from psycopg.types.json import Jsonb

from services.alerts.store import schema

#: What `add_alerts` adds: names of rules by table; what a deletion counts when rules are withdrawn, and what when incidents go.
NAMES = {"rules": 1, "rule_versions": 2, "incidents": 1, "changes": 2, "deliveries": 2}
WITHDRAWN = {"skipped_messages": 1, "rule_versions": 2, "rules": 1}
FOUND = {"messages": 2, "comments": 2, "changes": 2, "incidents": 1}


def add_alerts(dsn: str, customer: str, words: str) -> None:
    """A rule in two versions, and an incident with two changes, two comments and two messages, one of which waits."""
    schema.migrate(dsn)
    body = Jsonb({"customer": customer, "name": f"Of {words}", "metric": "rebuffering"})
    event = Jsonb({"customer_id": customer, "rule_name": f"Of {words}", "slices": []})
    incident = f"of {customer}"
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO alerts.environments VALUES (%s, 3, 3)", (customer,))
        (rule,) = connection.execute(
            "INSERT INTO alerts.rules (customer_id, version, body, changed_by) VALUES (%s, 2, %s, 'ada') RETURNING id",
            (customer, body),
        ).fetchone() or ("",)
        for version in (1, 2):
            statement = (
                "INSERT INTO alerts.rule_versions (rule_id, version, body, changed_by) VALUES (%s, %s, %s, 'ada')"
            )
            connection.execute(statement, (rule, version, body))
        statement = """
            INSERT INTO alerts.incidents (id, customer_id, rule_id, revision, opened_at, event)
            VALUES (%s, %s, %s, 2, now(), %s)
        """
        connection.execute(statement, (incident, customer, str(rule), event))
        made = "INSERT INTO alerts.receivers (organisation_id, name, kind, target, changed_by)"
        (receiver,) = connection.execute(
            f"{made} VALUES (gen_random_uuid(), 'mail', 'email', '{{}}', 'ada') RETURNING id"
        ).fetchone() or ("",)
        for revision, state in ((1, "delivered"), (2, "waiting")):
            statement = "INSERT INTO alerts.changes (incident_id, revision, event) VALUES (%s, %s, %s)"
            connection.execute(statement, (incident, revision, event))
            statement = "INSERT INTO alerts.deliveries (id, receiver_id, incident_id, revision, event, state)"
            statement += " VALUES (%s, %s, %s, %s, %s, %s)"
            connection.execute(statement, (f"{customer} {revision}", receiver, incident, revision, event, state))
        for text in (f"It is {words} again.", "Somebody else looks after it."):
            statement = "INSERT INTO alerts.comments (incident_id, author, text) VALUES (%s, 'ada', %s)"
            connection.execute(statement, (incident, text))


def alerts_holding(dsn: str, pattern: str) -> dict[str, int]:
    """By table of schema `alerts`, in how many rows a text matches."""
    tables_of_alerts = ("environments", "rules", "rule_versions", "incidents", "changes", "comments", "deliveries")
    found = {}
    with psycopg.connect(dsn) as connection:
        for table in tables_of_alerts:
            rows = connection.execute(f"SELECT t::text FROM alerts.{table} AS t").fetchall()  # type: ignore[arg-type]
            found[table] = sum(re.search(pattern, row[0]) is not None for row in rows)
    return {table: count for table, count in found.items() if count}
