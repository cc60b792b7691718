"""Customers from a table in Postgres: taken over while the collector runs; a table that is wrong or away changes nothing."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString, cast
from uuid import uuid4

import aiohttp
import psycopg
import pytest
from prometheus_client import REGISTRY

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from services.collector.customers.table import MIGRATIONS_DIR, CustomersTable, TableAway
from services.collector.intake.sender.customers import Customer, CustomersWrong, Found
from services.rim.database.migrations import migrate
from tests.integration.collecting import SECONDS_MAX, Collector, answered, until

pytestmark = pytest.mark.integration

INSERT = "INSERT INTO collector.customers (customer_id, keys) VALUES ('acme', '{acme-web}')"


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    dsn = postgres.create_database(f"customers_{uuid4().hex}")
    migrate(dsn, "collector", MIGRATIONS_DIR)
    return dsn


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def deployed(dsn: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLLECTOR_CUSTOMERS_DSN": dsn}
    command = [sys.executable, "-m", "deploy.customers_table"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def test_the_command_makes_the_table_and_says_what_is_wrong(postgres: Postgres) -> None:
    dsn = postgres.create_database(f"deployed_{uuid4().hex}")
    assert deployed(dsn).returncode == 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(INSERT)
        connection.execute("UPDATE public.collector_revision SET version_num = '9999'")
    assert CustomersTable(dsn).customers.lists("acme")
    refused = deployed(dsn)
    assert refused.returncode == 1
    assert "at revision 9999 of the collector, newer than this version" in refused.stderr


def reloads(outcome: str) -> float:
    return REGISTRY.get_sample_value("playhead_collector_customers_reloads_total", {"outcome": outcome}) or 0


def test_the_lines_of_the_document_list_a_customer_and_revoke_a_key(dsn: str, connection: psycopg.Connection) -> None:
    page = (Path(__file__).parents[2] / "docs/collector.md").read_text()
    (lines,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    connection.execute(cast("LiteralString", lines))
    listed = CustomersTable(dsn).customers.find("acme-tv")
    assert isinstance(listed, Found)
    assert listed.terms.revoked_keys == ("acme-web",)


def test_every_term_is_read(dsn: str, connection: psycopg.Connection) -> None:
    connection.execute(INSERT)
    connection.execute(
        "INSERT INTO collector.customers VALUES"
        " ('full', '{a,b}', '{old}', 2.5, 1000, 30, 40, 50, 60, 70,"
        " '{a key of thirty-two characters!!}', 'require', '{https://www.full.example}', 16, 0, 'ignore', 80)"
    )
    customers = CustomersTable(dsn).customers
    full = Customer(
        keys=("a", "b"),
        revoked_keys=("old",),
        beacons_per_second=2.5,
        bytes_per_second=1_000,
        bytes_per_day=80,
        cpu_ms_per_second=30,
        spans_per_second=40,
        calls_per_second=50,
        recordings_per_minute=60,
        new_views_per_second=70,
        signing_keys=("a key of thirty-two characters!!",),
        signed_views="require",
        origins=frozenset({"https://www.full.example"}),
        ipv4_bits_kept=16,
        ipv6_bits_kept=0,
        privacy_signals="ignore",
    )
    assert customers.find("b") == Found("full", full)
    assert customers.find("acme-web") == Found("acme", Customer(keys=("acme-web",)))
    assert [customers.find(key) for key in ("old", "acme")] == ["revoked_key", "unknown_customer"]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE collector.customers SET keys = '{no spaces}'", "customer acme"),
        ("INSERT INTO collector.customers (customer_id, keys) VALUES ('other', '{acme-web}')", "key acme-web is of"),
        ("UPDATE collector.customers SET revoked_keys = keys", "both valid and revoked"),
        ("TRUNCATE collector.customers", "no customers"),
        ("DELETE FROM collector.customers_version", "lost its row"),
        ("ALTER TABLE collector.customers RENAME TO gone; UPDATE collector.customers_version SET version = 9", "42P01"),
    ],
)
def test_a_table_that_is_wrong_leaves_the_last_good_customers_in_force(
    dsn: str, connection: psycopg.Connection, statement: str, problem: str
) -> None:
    connection.execute(INSERT)
    table = CustomersTable(dsn)
    good = table.customers
    before = reloads("failed"), reloads("ok")
    table.reload_when_changed()
    assert (reloads("failed"), reloads("ok")) == before
    connection.execute(statement)  # type: ignore[call-overload]
    table.reload_when_changed()
    assert table.customers is good
    assert (reloads("failed"), reloads("ok")) == (before[0] + 1, before[1])
    with pytest.raises((CustomersWrong, TableAway), match=problem):
        CustomersTable(dsn)


def test_a_database_that_is_away_is_reported_by_kind_without_a_password() -> None:
    with pytest.raises(TableAway) as caught:
        CustomersTable("postgresql://user:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert "OperationalError" in str(caught.value)


async def test_a_collector_takes_over_a_changed_table_and_outlives_it(
    broker: Broker, postgres: Postgres, dsn: str, connection: psycopg.Connection, tmp_path: Path
) -> None:
    connection.execute(INSERT)
    settings = {"customers_dsn": dsn, "customers_seconds": "0.1"}
    with Collector(broker.bootstrap, tmp_path, free_port(), **settings) as collector:
        failed = 'playhead_collector_customers_reloads_total{outcome="failed"}'
        async with aiohttp.ClientSession() as client:

            async def status(key: str) -> int:
                beacon = b'{"view_id": "v", "event": "play", "time_ms": 1}'
                return await answered(client, f"{collector.url}/v1/beacons?key={key}", beacon)

            assert [await status(key) for key in ("acme-web", "acme-tv")] == [200, 401]
            connection.execute("UPDATE collector.customers SET keys = '{acme-tv}', revoked_keys = '{acme-web}'")
            await until(lambda: collector.metric('playhead_collector_customers_reloads_total{outcome="ok"}') == 1)
            assert [await status(key) for key in ("acme-web", "acme-tv")] == [410, 200]
            connection.execute("UPDATE collector.customers SET ipv4_bits_kept = 8, keys = '{a b}'")
            await until(lambda: collector.metric(failed) >= 2)
            assert [await status(key) for key in ("acme-web", "acme-tv")] == [410, 200]
        warnings = [line for line in collector.log_lines() if line["event"] == "customers_not_reloaded"]
        # However often it is looked at, a problem is logged once.
        assert len(warnings) == 1
        assert "customer acme" in warnings[0]["problem"]
        assert collector.child.stop(SECONDS_MAX) == 0
