"""Customers from a table in Postgres: taken over while the collector runs; a table that is wrong or away changes nothing."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, LiteralString, cast
from uuid import uuid4

import aiohttp
import psycopg
import pytest
from prometheus_client import REGISTRY

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from services.accounts.core.credentials import Credential
from services.accounts.store import schema
from services.accounts.store.credentials import keys as keys_store
from services.collector.admission.rates import Amount, RateLimits
from services.collector.customers import table as customers_table
from services.collector.customers.table import MIGRATIONS_DIR, CustomersTable, TableAway
from services.collector.customers.usage import Usage
from services.collector.customers.usage_reports import UsageReports
from services.collector.intake.sender.customers import Customer, CustomersWrong, Found
from services.rim.database.migrations import migrate
from shared.topics import Topic
from tests.integration.accounts.accounts_parts import globex, site
from tests.integration.collector.collecting import SECONDS_MAX, Collector, answered, until
from tests.integration.parts.brokers import OF_COLLECTOR

pytestmark = pytest.mark.integration

INSERT = "INSERT INTO collector.customers (customer_id, keys) VALUES ('acme', '{acme-web}')"


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_COLLECTOR


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
    page = (Path(__file__).parents[3] / "docs/collector.md").read_text()
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


def test_of_a_table_that_never_had_a_customer_nobody_is_one_until_the_first_is_there(
    dsn: str, connection: psycopg.Connection
) -> None:
    table = CustomersTable(dsn)
    assert table.customers.find("acme") == "unknown_customer"
    assert not table.customers.takes_any
    connection.execute(INSERT)
    table.reload_when_changed()
    assert table.customers.lists("acme")
    # That it has none any more is a mistake.
    connection.execute("DELETE FROM collector.customers")
    with pytest.raises(CustomersWrong, match="there are no customers"):
        CustomersTable(dsn)


def test_a_database_that_was_made_again_leaves_the_last_good_customers_in_force(
    dsn: str, connection: psycopg.Connection
) -> None:
    connection.execute(INSERT)
    table = CustomersTable(dsn)
    good, failed = table.customers, reloads("failed")
    connection.execute("DROP SCHEMA collector, limits CASCADE; DROP TABLE public.collector_revision")
    migrate(dsn, "collector", MIGRATIONS_DIR)
    table.reload_when_changed()
    assert table.customers is good
    assert reloads("failed") == failed + 1
    # As many statements have changed it as had changed the one before.
    connection.execute("INSERT INTO collector.customers (customer_id) VALUES ('other')")
    table.reload_when_changed()
    assert table.customers.lists("other")


def make_keys(
    connection: psycopg.Connection, customer_id: str, keys: int, origins: int = 0, ended: str = "NULL"
) -> None:
    connection.execute(
        "INSERT INTO collector.keys (key, customer_id, name, origins, made_by, revoked_at)"  # type: ignore[call-overload]
        " SELECT %s || '-' || number, %s, 'Web', array_fill('https://a.example'::text, ARRAY[%s]), 'somebody',"
        f" {ended} FROM generate_series(1, %s) AS number",
        (customer_id if ended == "NULL" else f"{customer_id}-old", customer_id, origins, keys),
    )


def test_of_more_keys_than_there_are_places_for_those_of_the_customer_with_the_most_are_left_out(
    dsn: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(customers_table, "KEY_PLACES_MAX", 8)
    connection.execute("INSERT INTO collector.customers (customer_id) VALUES ('greedy'), ('acme'), ('broad')")
    make_keys(connection, "greedy", 5)
    make_keys(connection, "acme", 2)
    table = CustomersTable(dsn)
    assert len(table.customers) == 5 + 2 + 1
    # A key takes a place for each of its origins, too.
    make_keys(connection, "broad", 1, origins=5)
    table.reload_when_changed()
    found = {key: table.customers.find(key) for key in ("acme-2", "greedy-1", "broad-1", "greedy", "broad")}
    assert isinstance(found.pop("acme-2"), Found)
    assert isinstance(found.pop("greedy-1"), Found)
    assert set(found.values()) == {"unknown_customer"}
    assert REGISTRY.get_sample_value("playhead_collector_customers_left_out") == 1
    # One that starts serves the others as well.
    assert len(CustomersTable(dsn).customers) == 5 + 2
    connection.execute("UPDATE collector.keys SET origins = '{}'")
    table.reload_when_changed()
    assert isinstance(table.customers.find("broad-1"), Found)
    assert REGISTRY.get_sample_value("playhead_collector_customers_left_out") == 0


def test_keys_that_have_ended_take_no_place_and_the_newest_are_known(
    dsn: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(customers_table, "KEY_PLACES_MAX", 2)
    monkeypatch.setattr(customers_table, "ENDED_KEYS_MAX", 2)
    connection.execute("INSERT INTO collector.customers (customer_id) VALUES ('acme'), ('other')")
    make_keys(connection, "acme", 3, origins=9, ended="now() - number * interval '1 day'")
    make_keys(connection, "other", 2)
    customers = CustomersTable(dsn).customers
    assert [customers.find(f"acme-old-{number}") for number in (1, 2, 3)] == [
        *("revoked_key", "revoked_key", "unknown_customer")
    ]
    # Its id is no key again where no key of it is read any more.
    connection.execute("DELETE FROM collector.keys WHERE key <> 'acme-old-3' AND customer_id = 'acme'")
    make_keys(connection, "other", 2, ended="now()")
    customers = CustomersTable(dsn).customers
    assert [customers.find(key) for key in ("acme-old-3", "acme")] == ["unknown_customer", "unknown_customer"]
    assert isinstance(customers.find("other-2"), Found)


def test_a_database_that_is_away_is_reported_by_kind_without_a_password() -> None:
    with pytest.raises(TableAway) as caught:
        CustomersTable("postgresql://user:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert "OperationalError" in str(caught.value)


DEFAULTS = {"beacons_per_second": 10_000.0, "bytes_per_day": 86_400_000.0}


class Process:
    """What one collector counts and reports."""

    def __init__(self, dsn: str) -> None:
        self.usage = Usage()
        self.limits = RateLimits(Customer(**DEFAULTS), self.usage)
        self.reports = UsageReports(dsn, uuid4().hex, self.usage, DEFAULTS, self.hear)

    def hear(self, stored: Mapping[str, float]) -> None:
        self.limits.set_stored(stored, time.monotonic())

    def take(self, size_bytes: int, customer: str = "acme") -> float:
        amounts, terms = {customer: Amount(size_bytes)}, {customer: Customer()}
        if wait := self.limits.wait_seconds(amounts, terms, time.monotonic()):
            self.limits.count_refused(amounts, terms, time.monotonic())
        return wait


async def test_all_collectors_together_keep_a_customers_day(dsn: str, connection: psycopg.Connection) -> None:
    first, second = Process(dsn), Process(dsn)
    assert first.take(86_000_000) == 0
    assert second.take(300_000) == 0
    for process in (first, second, first):
        await process.reports.send()
    # 100,000 bytes are left for both, and what has drained at 1,000 bytes a second.
    for process in (first, second):
        assert process.take(1) == 0
        assert process.take(100_000 + round(1_000 * SECONDS_MAX)) == 0
        assert process.take(1) > 0
        await process.reports.send()
    # One that starts later knows what the day has left before its first request.
    third = Process(dsn)
    await third.reports.send()
    assert third.take(1) > 0
    assert third.take(1, "other") == 0
    row = connection.execute("SELECT bytes FROM limits.stored WHERE customer_id = 'acme'").fetchone()
    assert row is not None
    assert 86_500_000 - 1_000 * SECONDS_MAX < row[0] < 86_500_002 + 2_000 * SECONDS_MAX
    refused = connection.execute("SELECT customer_id, name, requests, amount FROM limits.refused").fetchall()
    assert refused == [("acme", "bytes_per_day", 2, 2.0)]
    assert dict(connection.execute("SELECT name, value FROM limits.defaults").fetchall()) == DEFAULTS
    count = connection.execute("SELECT count(*) FROM limits.collectors").fetchone()
    assert count == (3,)


async def test_a_report_whose_outcome_is_unknown_is_not_counted_twice(
    dsn: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(dsn)
    process.take(1_000_000)
    with monkeypatch.context() as patched:
        # It commits, and the answer is lost.
        patched.setattr(process.usage, "settle", lambda: None)
        await process.reports.send()
    process.take(2_000_000)
    await process.reports.finish()
    row = connection.execute("SELECT bytes FROM limits.stored").fetchone()
    assert row is not None
    assert 3_000_000 - 1_000 * SECONDS_MAX < row[0] <= 3_000_000


async def test_reports_that_fail_are_counted_and_sent_later(dsn: str, connection: psycopg.Connection) -> None:
    process = Process(dsn)
    process.take(1_000_000)
    connection.execute("ALTER TABLE limits.stored RENAME TO away")
    await process.reports.send()
    await process.reports.send()
    connection.execute("ALTER TABLE limits.away RENAME TO stored")
    await process.reports.send()
    assert connection.execute("SELECT customer_id, bytes FROM limits.stored").fetchall() == [("acme", 1_000_000.0)]


async def test_a_collector_takes_over_a_changed_table_and_outlives_it(
    broker: Broker, postgres: Postgres, dsn: str, connection: psycopg.Connection, tmp_path: Path
) -> None:
    connection.execute(INSERT)
    settings = {"customers_dsn": dsn, "customers_seconds": "0.1", "usage_seconds": "0.1"}
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
            # Limits that change are in force without a restart, and what they refuse is reported.
            connection.execute("UPDATE collector.customers SET bytes_per_day = 100")
            await until(lambda: collector.metric('playhead_collector_customers_reloads_total{outcome="ok"}') == 2)
            assert [await status("acme-tv") for _ in range(4)][-1] == 429
            refused = "SELECT requests FROM limits.refused WHERE customer_id = 'acme' AND name = 'bytes_per_day'"
            await until(lambda: connection.execute(refused).fetchone() is not None)
            connection.execute("UPDATE collector.customers SET bytes_per_day = NULL")
            await until(lambda: collector.metric('playhead_collector_customers_reloads_total{outcome="ok"}') == 3)
            connection.execute("UPDATE collector.customers SET ipv4_bits_kept = 8, keys = '{a b}'")
            await until(lambda: collector.metric(failed) >= 2)
            assert [await status(key) for key in ("acme-web", "acme-tv")] == [410, 200]
        warnings = [line for line in collector.log_lines() if line["event"] == "customers_not_reloaded"]
        # However often it is looked at, a problem is logged once; on a busy machine Postgres may be away in between.
        problems = [line["problem"] for line in warnings]
        assert all(one != following for one, following in pairwise(problems))
        assert any("customer acme" in one for one in problems)
        assert collector.child.stop(SECONDS_MAX) == 0


async def test_keys_that_the_product_makes_changes_replaces_and_revokes_hold_in_all_collectors(
    broker: Broker, dsn: str, connection: psycopg.Connection, tmp_path: Path
) -> None:
    # Its id is the key of a customer without keys.
    connection.execute("INSERT INTO collector.customers (customer_id) VALUES ('acme')")
    schema.migrate(dsn)
    ports = free_port(), free_port()
    async with site(dsn) as home, aiohttp.ClientSession() as client:
        owner = await home.owner()
        with ExitStack() as running:
            collectors = [
                running.enter_context(Collector(broker.bootstrap, tmp_path, port, f"c{port}", customers_dsn=dsn))
                for port in ports
            ]

            async def statuses(key: str, origin: str = "", beacons: int = 1) -> set[int]:
                beacon = b'{"view_id": "v", "event": "play", "time_ms": 1}\n' * beacons
                headers = {"Origin": origin} if origin else {}
                return {
                    await answered(client, f"{one.url}/v1/beacons?key={key}", beacon, headers) for one in collectors
                }

            async def all_answer(status: int, key: str, origin: str = "", beacons: int = 1) -> None:
                async with asyncio.timeout(SECONDS_MAX):
                    while await statuses(key, origin, beacons) != {status}:  # noqa: ASYNC110 - it asks others
                        await asyncio.sleep(0.1)

            assert await statuses("acme") == {200}
            made = await home.got(
                "POST", "/v1/keys", owner, {"customer": "acme", "name": "Web", "origins": ["https://acme.example"]}
            )
            key = made["key"]
            await all_answer(200, key, "https://acme.example")
            # What was in use stays in use until somebody ends it; pages of others may not send with the new one.
            assert await statuses("acme") == {200}
            assert await statuses(key, "https://evil.example") == {403}
            await home.got("PATCH", f"/v1/keys/{key}", owner, {"origins": []})
            await all_answer(200, key, "https://evil.example")
            # It may send so much, and its customer more.
            await home.got("PATCH", f"/v1/keys/{key}", owner, {"beacons_per_second": 0.1})
            await all_answer(429, key)
            assert await statuses("acme") == {200}
            await home.got("PATCH", f"/v1/keys/{key}", owner, {"beacons_per_second": None})
            await all_answer(200, key)
            # Both hold for some time, then the new one alone.
            new = (await home.got("POST", f"/v1/keys/{key}/replace", owner, {"overlap_hours": 8 / 3_600}))["key"]
            await all_answer(200, new)
            await all_answer(410, key)
            assert await statuses(new) == {200}
            for ended in (new, "acme"):
                await home.got("DELETE", f"/v1/keys/{ended}", owner)
                await all_answer(410, ended)
        assert (await home.ask("DELETE", f"/v1/keys/{new}", owner))[0] == 404
        listed = (await home.got("GET", "/v1/keys?customer=acme", owner))["keys"]
        assert {one["key"]: one["revoked_ms"] is not None for one in listed} == {key: False, new: True, "acme": True}
        entries = (await home.got("GET", "/v1/audit", owner))["entries"]
        assert [one["action"] for one in entries if "key" in one["action"]][::-1] == [
            *("made_key", "changed_key", "changed_key", "changed_key", "replaced_key", "revoked_key", "revoked_key"),
            *("revoked_key", "revoked_key_failed"),
        ]


async def test_no_organisation_takes_the_places_of_others_and_none_takes_more_than_there_are(
    dsn: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_store, "ORGANISATION_PLACES_MAX", 4)
    schema.migrate(dsn)
    async with site(dsn) as home:
        owner = await home.owner()
        boss = await globex(home, owner)
        first, second = [(await home.got("POST", "/v1/customers", boss, {"name": name}))["id"] for name in "ab"]

        async def made(who: Credential, customer: str, **more: Any) -> int:
            status, _ = await home.ask("POST", "/v1/keys", who, {"customer": customer, "name": "Web"} | more)
            return status

        pages = ["https://a.example", "https://b.example"]
        assert await made(boss, first, origins=pages) == 201
        assert await made(boss, second) == 201
        # All its customers together: also by a token for one of them.
        one = {"name": "one", "scopes": ["manage"], "customers": [second]}
        token = (await home.got("POST", "/v1/tokens", boss, one))["token"]
        wanted = {"customer": second, "name": "Web"}
        status, problem = await home.ask("POST", "/v1/keys", token, wanted)
        assert (status, problem["title"].partition(" has ")[0]) == (409, "The organisation or the installation")
        key = (await home.got("GET", f"/v1/keys?customer={second}", boss))["keys"][0]["key"]
        assert (await home.ask("PATCH", f"/v1/keys/{key}", boss, {"origins": pages[:1]}))[0] == 409
        assert (await home.ask("PATCH", f"/v1/keys/{key}", boss, {"name": "TV"}))[0] == 200
        assert (await home.ask("POST", f"/v1/keys/{key}/replace", boss, {}))[0] == 409
        # Others have theirs, up to what there is.
        assert [await made(owner, customer) for customer in ("acme", "other")] == [201, 201]
        monkeypatch.setattr(keys_store, "KEY_PLACES_MAX", 6)
        assert await made(owner, "acme") == 409
        # A key that has ended takes none.
        await home.got("DELETE", f"/v1/keys/{key}", boss)
        assert await made(owner, "acme") == 201
        monkeypatch.setattr(keys_store, "KEY_PLACES_MAX", 100)
        monkeypatch.setattr(keys_store, "CUSTOMERS_MAX", 4)
        assert [await made(owner, customer) for customer in ("acme", "one-more")] == [201, 409]
    assert connection.execute("SELECT count(*) FROM collector.customers").fetchone() == (4,)


async def test_of_the_keys_of_a_customer_that_have_ended_the_last_are_kept(
    dsn: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_store, "ENDED_KEYS_MAX", 2)
    schema.migrate(dsn)
    connection.execute("INSERT INTO collector.customers (customer_id) VALUES ('acme')")
    async with site(dsn) as home:
        owner = await home.owner()
        ended = ["acme"]
        for number in range(4):
            made = await home.got("POST", "/v1/keys", owner, {"customer": "acme", "name": f"Web {number}"})
            await home.got("DELETE", f"/v1/keys/{ended[-1]}", owner)
            ended.append(made["key"])
    kept = connection.execute("SELECT key FROM collector.keys WHERE customer_id = 'acme'").fetchall()
    assert {key for (key,) in kept} == set(ended[-4:])
    # Its id, whose row is gone, stays ended.
    assert CustomersTable(dsn).customers.find("acme") == "unknown_customer"


async def test_keys_are_those_of_the_askers_customers(postgres: Postgres, dsn: str) -> None:
    schema.migrate(dsn)
    async with site(dsn) as home:
        owner = await home.owner()
        made = await home.got("POST", "/v1/organisations", owner, {"name": "Globex", "owner": "boss@globex.example"})
        boss = await home.join(made["link"])
        key = (await home.got("POST", "/v1/keys", owner, {"customer": "acme", "name": "Web"}))["key"]
        for method, path, body in (
            ("GET", "/v1/keys?customer={customer}", None),
            ("POST", "/v1/keys", {"customer": "{customer}", "name": "Mine"}),
            ("PATCH", "/v1/keys/{key}", {"name": "Mine"}),
            ("POST", "/v1/keys/{key}/replace", {}),
            ("DELETE", "/v1/keys/{key}", None),
        ):
            answers = []
            for customer, its_key in (("acme", key), ("none", "pk_none")):
                given = body and {name: value.format(customer=customer) for name, value in body.items()}
                answers.append(await home.ask(method, path.format(customer=customer, key=its_key), boss, given))
            assert answers[0] == answers[1]
            assert answers[0][0] == 404, path
        for wrong in ({"origins": ["https://acme.example/path"]}, {"beacons_per_second": 0}, {"name": ""}, {"x": 1}):
            body = {"customer": "acme", "name": "Web"} | wrong
            assert (await home.ask("POST", "/v1/keys", owner, body))[0] == 400, wrong
    # Without a table the answer says so.
    async with site(bare := postgres.create_database(f"bare_{uuid4().hex}")) as home:
        schema.migrate(bare)
        status, problem = await home.ask("GET", "/v1/keys?customer=acme", await home.owner())
        assert (status, problem["title"]) == (503, "Write keys are not managed here")
