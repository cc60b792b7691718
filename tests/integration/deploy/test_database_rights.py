"""`python -m deploy.database` makes users that may do what their service does, and nothing else; it may run again."""

import argparse
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pydantic
import pytest
from psycopg.conninfo import make_conninfo

from deploy import database
from deploy.database import DatabaseSettings
from deploy.local.paths import ROOT
from deploy.local.postgres import Postgres
from deploy.observability.experience import CUSTOMERS, PANELS, SqlPanel
from services.alerts.store import forgetting
from services.alerts.store.deliveries import CLAIM
from services.collector.customers.table import CustomersTable
from services.collector.intake.sender.customers import Found
from services.finalizer.jobs.deletions import asking
from services.finalizer.serving import customer_limits
from services.finalizer.serving.deletion_requests import DeletionRequests
from services.finalizer.settings import FinalizerSettings
from tests.integration.accounts.accounts_parts import HERE, PASSWORD, site
from tests.integration.observability.grafana import filled

pytestmark = pytest.mark.integration

PASSWORDS = {
    user: secrets.token_hex(16) for user in ("finalizer", "serving", "query", "dashboard", "notifications", "grafana")
}


@pytest.fixture(scope="module")
def made(postgres: Postgres) -> Iterator[str]:
    """The superuser's address of a database that the command has made twice."""
    dsn = postgres.create_database("rights")
    for _ in range(2):
        make(dsn)
    yield dsn
    # Users belong to the whole server, which other tests use too.
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE rights WITH (FORCE)")
        for user in database.USERS:
            connection.execute(f"DROP ROLE {user}")  # type: ignore[arg-type]


def make(dsn: str) -> None:
    """What the command does."""
    passwords = {f"{user}_password": pydantic.SecretStr(password) for user, password in PASSWORDS.items()}
    database.make(DatabaseSettings(dsn=pydantic.SecretStr(dsn), **passwords))


def as_user(dsn: str, user: str) -> psycopg.Connection:
    return psycopg.connect(make_conninfo(dsn, user=user, password=PASSWORDS[user]), autocommit=True)


MAY = [
    ("dashboard", "SELECT FROM serving.views"),
    ("dashboard", "SELECT FROM limits.defaults"),
    ("dashboard", "INSERT INTO accounts.organisations SELECT * FROM accounts.organisations WHERE false"),
    ("dashboard", "INSERT INTO accounts.known_sites SELECT * FROM accounts.known_sites WHERE false"),
    ("dashboard", "SELECT FROM accounts.audit"),
    ("dashboard", "SELECT customer_id, keys FROM collector.customers"),
    ("query", "SELECT FROM serving.views"),
    ("query", "SELECT FROM finalizer.dirty_slices"),
    ("serving", "DELETE FROM serving.views"),
    ("finalizer", "CREATE TABLE serving.own (one int)"),
    ("notifications", "SELECT FROM alerts.deliveries"),
    ("notifications", re.sub(r"%\((busy)?\w+\)s", lambda found: "'{}'" if found[1] else "1", CLAIM)),
]
MAY_NOT = [
    ("dashboard", "INSERT INTO serving.sums SELECT * FROM serving.sums WHERE false"),
    ("dashboard", "DELETE FROM serving.views"),
    ("dashboard", "SELECT FROM finalizer.fence"),
    ("dashboard", "SELECT * FROM collector.customers"),
    ("dashboard", "UPDATE accounts.audit SET action = action"),
    ("dashboard", "DELETE FROM accounts.audit"),
    ("dashboard", "TRUNCATE accounts.audit"),
    ("dashboard", "CREATE SCHEMA own"),
    ("dashboard", "CREATE TABLE public.own (one int)"),
    ("dashboard", "CREATE ROLE own"),
    ("query", "DELETE FROM serving.views"),
    ("query", "SELECT FROM collector.customers"),
    ("query", "SELECT FROM alerts.receivers"),
    ("query", "DELETE FROM accounts.tokens"),
    ("serving", "SELECT FROM accounts.people"),
    ("finalizer", "SELECT FROM accounts.people"),
    ("finalizer", "SELECT name FROM accounts.customers"),
    ("finalizer", "SELECT FROM accounts.audit"),
    ("finalizer", "DELETE FROM accounts.deletions"),
    ("finalizer", "SELECT FROM alerts.receivers"),
    ("notifications", "SELECT FROM accounts.people"),
    ("notifications", "SELECT name FROM accounts.organisations"),
    ("notifications", "UPDATE accounts.customers SET name = name"),
    ("notifications", "SELECT FROM serving.views"),
    ("grafana", "SELECT viewer_id FROM serving.views"),
    ("grafana", "SELECT document FROM serving.views"),
    ("grafana", "SELECT FROM serving.live_minutes"),
    ("grafana", "SELECT FROM finalizer.fence"),
    ("grafana", "SELECT FROM accounts.people"),
    ("grafana", "SELECT FROM alerts.receivers"),
    ("grafana", "SELECT FROM collector.customers"),
    ("grafana", "DELETE FROM serving.rollups"),
    ("grafana", "CREATE TABLE public.own (one int)"),
]


@pytest.mark.parametrize(("user", "statement"), MAY)
def test_a_user_may_do_what_its_service_does(made: str, user: str, statement: str) -> None:
    with as_user(made, user) as connection:
        connection.execute(statement)  # type: ignore[arg-type]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_grafanas_user_may_read_what_each_panel_shows(made: str, panel: SqlPanel) -> None:
    with as_user(made, "grafana") as connection:
        connection.execute(filled(panel.sql, "2026-03-27", "2026-03-28", ["acme"]).encode())
        connection.execute(CUSTOMERS.encode())


@pytest.mark.parametrize(("user", "statement"), MAY_NOT)
def test_a_user_may_do_nothing_else(made: str, user: str, statement: str) -> None:
    with as_user(made, user) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)  # type: ignore[arg-type]


def test_the_finalizer_deletes_what_alerts_have_of_a_customer_or_a_viewer(made: str) -> None:
    with as_user(made, "finalizer") as connection:
        assert forgetting.withdraw_rules(connection, "acme", lambda: None)["rules"] == 0
        assert forgetting.delete_incidents(connection, "acme")["incidents"] == 0
        assert forgetting.forget_viewer(connection, "acme", "a viewer")["comments"] == 0


def test_the_command_that_deletes_a_customer_runs_with_the_finalizers_rights(made: str) -> None:
    dsn = make_conninfo(made, user="finalizer", password=PASSWORDS["finalizer"])
    with psycopg.connect(made, autocommit=True) as connection:
        for customer in ("acme", "other"):
            connection.execute("INSERT INTO limits.stored VALUES (%s, 1, 1, now())", (customer,))
            connection.execute("INSERT INTO limits.refused VALUES (%s, 'views', now(), 1, 1, now())", (customer,))
    needed = {"warehouse_dir": "w", "checkpoint_dir": "c", "jars_dir": "j", "postgres_dsn": dsn}
    settings = FinalizerSettings.load({f"FINALIZER_{name.upper()}": value for name, value in needed.items()})
    command = argparse.ArgumentParser()
    asking.add_to(command.add_subparsers(), print)

    made_id = asking.ask(settings, command.parse_args(["forget", "--customer", "acme", "--whole-customer"]))
    assert [one.id for one in DeletionRequests(dsn).open()] == [made_id]
    assert not asking.Asked(settings, made_id).is_over()
    assert customer_limits.delete_counts(dsn, "acme") == {"limits.stored": 1, "limits.refused": 1}
    with psycopg.connect(made) as connection:
        for table in ("stored", "refused"):
            left = connection.execute(f"SELECT customer_id FROM limits.{table}").fetchall()
            assert left == [("other",)]


def test_a_user_without_a_password_cannot_log_in(made: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(make_conninfo(made, user="collector"))


_MADE_BY_PEOPLE = """
    INSERT INTO collector.customers (customer_id, keys, signing_keys) VALUES ('acme', '{acme-key}', ARRAY[repeat('0a', 32)]);
    INSERT INTO collector.keys (key, customer_id, name, made_by) VALUES ('own-key', 'acme', 'web', 'somebody');
    INSERT INTO limits.stored VALUES ('acme', 7, 70, '2026-02-01');
    INSERT INTO alerts.environments VALUES ('acme', 3);
    INSERT INTO alerts.receivers (organisation_id, name, kind, target, changed_by)
        SELECT id, 'ops', 'slack', '{"url": "https://chat.example.com"}', 'somebody' FROM accounts.organisations;
    INSERT INTO alerts.rules (customer_id, body, changed_by) VALUES ('acme', '{}', 'somebody');
    INSERT INTO accounts.retention VALUES ('acme', 'views', 30);
"""


def in_postgres_alone(dsn: str) -> dict[str, Any]:
    """The rows of every table that nothing else has, and how far each schema was migrated."""
    with psycopg.connect(dsn) as connection:
        tables = connection.execute("""
            SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
            WHERE schemaname IN ('accounts', 'alerts', 'collector', 'limits', 'public') ORDER BY 1
        """).fetchall()
        return {
            name: connection.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1").fetchall()  # type: ignore[arg-type]
            for (name,) in tables
        }


async def test_a_database_that_was_lost_is_made_again_from_its_backup_by_the_runbooks_commands(
    made: str, postgres: Postgres, tmp_path: Path
) -> None:
    commands = re.findall(r"`(pg_\w+ [^`]+)`", (ROOT / "docs/runbook.md").read_text())
    backup, restore = commands
    dsn = postgres.create_database("lost")
    make(dsn)

    def run(command: str) -> None:
        environ = {**os.environ, "DATABASE_DSN": dsn, "PATH": f"{postgres.programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", command], check=True, timeout=60, cwd=tmp_path, env=environ)

    def drop() -> None:
        with psycopg.connect(made, autocommit=True) as connection:
            connection.execute("DROP DATABASE lost WITH (FORCE)")

    try:
        async with site(dsn) as home:
            await home.owner()
        with psycopg.connect(dsn) as connection:
            connection.execute(_MADE_BY_PEOPLE)
            connection.execute("INSERT INTO finalizer.swapped VALUES (7)")
        run(backup)
        before = in_postgres_alone(dsn)
        drop()

        postgres.create_database("lost")
        run(restore)
        make(dsn)

        assert in_postgres_alone(dsn) == before
        empty = [name for name, rows in before.items() if not rows]
        assert not {"accounts.people", "accounts.audit", "collector.keys", "alerts.rules", "limits.stored"} & set(empty)
        async with site(dsn) as home:
            assert await home.accounts.log_in("owner@example.com", PASSWORD, **HERE)
        found = [CustomersTable(dsn).customers.find(key) for key in ("acme-key", "own-key")]
        assert [isinstance(one, Found) and one.terms.signing_keys for one in found] == [("0a" * 32,)] * 2
        for user, statement in MAY:
            with as_user(dsn, user) as connection:
                connection.execute(statement)  # type: ignore[arg-type]
        with as_user(dsn, "finalizer") as connection:
            # `publish` fills it.
            assert connection.execute("SELECT FROM finalizer.swapped").fetchall() == []
    finally:
        drop()
