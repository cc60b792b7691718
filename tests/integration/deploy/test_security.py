"""All services over TLS with passwords, with the rights that docs/security.md gives them; and who is not let in."""

import asyncio
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, LiteralString, cast

import aiohttp
import psycopg
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from deploy.local.paths import ROOT
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child, wait_until
from deploy.rights import documented, grant
from deploy.topics import create_topics
from services.accounts.commands import make_tenant
from services.accounts.store import schema
from services.alerts.store import schema as alerts_schema
from services.collector.customers.table import MIGRATIONS_DIR, CustomersTable, TableAway
from services.rim.database.migrations import migrate
from services.rim.http.credentials import entry
from services.rim.http.tls import client_context
from services.rim.kafka import connection
from services.rim.kafka.connection import TopicsWrong, client_config, verify_topics
from shared.settings import Settings
from shared.topics import BEACONS, LIVE, SPANS, VIEWS
from tests.integration.collector.collecting import Collector, answered, reading
from tests.integration.finalizer.finalizing import Installation
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.installed import kafka
from tests.integration.parts.secured import ADMIN_TOKEN, MARK, Authority, SecuredBroker, TlsFront, secured_broker
from tests.integration.parts.slots import Slot
from tests.unit.collector.intake.bodies import mux_body, mux_event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SECONDS_MAX = 120.0
LOOKUP_TOKEN = f"{MARK}-of-the-lookups"
DATABASE = "secured"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with the documented rights, a user without any, and all topics, made by their own user."""
    secured = secured_broker(tmp_path_factory.mktemp("secured"), authority)
    with secured.broker:
        rights = documented()
        secured.make_users([*{right.user for right in rights}, "nobody"])
        grant(kafka(secured.broker.bootstrap), rights)
        create_topics(secured.settings("topics"))
        yield secured


@pytest.fixture(scope="module")
def front(postgres: Postgres, authority: Authority) -> Iterator[TlsFront]:
    """TLS before a database that the finalizer owns, with the customers table."""
    dsn = postgres.create_database(DATABASE)
    migrate(dsn, "collector", MIGRATIONS_DIR)
    schema.migrate(dsn)
    alerts_schema.migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for role in (
            "tls_collector",
            "tls_dashboard",
            "tls_finalizer",
            "tls_notifications",
            "tls_query",
            "tls_serving",
        ):
            connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"ALTER DATABASE {DATABASE} OWNER TO tls_finalizer")
        connection.execute("INSERT INTO collector.customers (customer_id) VALUES ('acme')")
        connection.execute(rights_in_postgres()[1])
        connection.execute(rights_in_postgres()[2])
        connection.execute(rights_in_postgres()[3])
    with TlsFront(postgres.dsn, authority) as front:
        yield front


def rights_in_postgres() -> list[LiteralString]:
    """The lines of docs/security.md, with this test's names: those of the serving database, the customers and the accounts."""

    def renamed(users: re.Match[str]) -> str:
        return re.sub(r"\w+", r"tls_\g<0>", users[0])

    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.DOTALL)
    ours = [re.sub(r"(?<= TO )[\w, ]+", renamed, lines.replace("playhead", DATABASE)) for lines in blocks]
    return cast("list[LiteralString]", ours)


def get(url: str, token: str = "", ca_file: Path | None = None) -> tuple[int, Any]:
    """Status and body; status 0 where nobody listens, or nobody whose name `ca_file` knows."""
    context = client_context("" if ca_file is None else str(ca_file))
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError:
        return 0, b""


async def play(collector: Collector, *events: dict[str, Any]) -> None:
    async with aiohttp.ClientSession() as client:
        assert await answered(client, collector.url, mux_body(*events)) == 200


def dashboard_on(secured: SecuredBroker, front: TlsFront, folder: Path, port: int, lookups: str) -> Child:
    return Child(
        "dashboard",
        [sys.executable, "-m", "services.dashboard"],
        log_file=folder / "dashboard.log",
        env=os.environ
        | secured.environ("dashboard")
        | {
            "DASHBOARD_HOST": "127.0.0.1",
            "DASHBOARD_PORT": str(port),
            "DASHBOARD_ADMIN_HOST": "127.0.0.1",
            "DASHBOARD_ADMIN_PORT": str(free_port()),
            "DASHBOARD_POSTGRES_DSN": front.dsn("tls_dashboard", DATABASE),
            "DASHBOARD_LOOKUP_URL": lookups,
            "DASHBOARD_LOOKUP_TOKEN": LOOKUP_TOKEN,
            "DASHBOARD_LOOKUP_CA_FILE": str(secured.authority.ca_file),
        },
    )


def serving_on(secured: SecuredBroker, front: TlsFront, folder: Path, admin_port: int) -> Child:
    return Child(
        "serving",
        [sys.executable, "-m", "services.serving"],
        log_file=folder / "serving.log",
        env=os.environ
        | secured.environ("serving")
        | {
            "SERVING_ADMIN_HOST": "127.0.0.1",
            "SERVING_ADMIN_PORT": str(admin_port),
            "SERVING_POSTGRES_DSN": front.dsn("tls_serving", DATABASE),
            "SERVING_COMPARE_SECONDS": "1",
        },
    )


def test_from_beacon_to_row_over_tls_with_the_documented_rights_alone(
    secured: SecuredBroker, front: TlsFront, postgres: Postgres, warm_jvm: WarmJvm, tmp_path: Path
) -> None:
    lookup_port, page_port, serving_port = free_port(), free_port(), free_port()
    lookups, page = f"https://127.0.0.1:{lookup_port}", f"http://127.0.0.1:{page_port}"
    entries_file = tmp_path / "lookup.entries"
    entries_file.write_text(entry("dashboard", ["lookups"], LOOKUP_TOKEN) + "\n")
    slot = Slot(
        secured.bootstrap,
        tmp_path,
        0,
        PROCESSOR_LOOKUP_HOST="127.0.0.1",
        PROCESSOR_LOOKUP_PORT=str(lookup_port),
        PROCESSOR_LOOKUP_URL=lookups,
        PROCESSOR_LOOKUP_TOKEN=f"{MARK}-of-the-slots",
        PROCESSOR_LOOKUP_CREDENTIALS_FILE=str(entries_file),
        PROCESSOR_LOOKUP_CERTIFICATE_FILE=str(secured.authority.server_file),
        PROCESSOR_LOOKUP_KEY_FILE=str(secured.authority.server_file),
        PROCESSOR_LOOKUP_CA_FILE=str(secured.authority.ca_file),
        VIDEO_VIEWS_FINISH_CLEAN_MS="500",
        **secured.environ("video_views"),
    )
    collector = Collector(
        secured.bootstrap,
        tmp_path,
        free_port(),
        environ=secured.environ("collector"),
        customers_dsn=front.dsn("tls_collector", DATABASE),
    )
    dashboard = dashboard_on(secured, front, tmp_path, page_port, lookups)
    serving = serving_on(secured, front, tmp_path, serving_port)
    finalizer = Installation(
        tmp_path,
        secured.bootstrap,
        front.dsn("tls_finalizer", DATABASE),
        environ=secured.environ("finalizer"),
        jvm=warm_jvm,
    )
    view, ca = f"{lookups}/views/acme/view-1", secured.authority.ca_file
    try:
        slot.start()
        with collector, reading(secured.broker.bootstrap, VIEWS.name) as reader:
            asyncio.run(play(collector, mux_event(e="viewstart", xsqno=1), mux_event(e="playing", xsqno=2)))
            wait_until(lambda: get(view, LOOKUP_TOKEN, ca)[0] == 200, SECONDS_MAX, "the open view is found")
            assert get(view, "another token of 16", ca)[0] == 401
            assert get(f"{lookups}/partitions", LOOKUP_TOKEN, ca)[0] == 403
            # Nobody speaks plain HTTP there, and nobody trusts a name that the system's authorities do not know.
            assert get(view.replace("https", "http", 1), LOOKUP_TOKEN)[0] == 0
            assert get(view, LOOKUP_TOKEN)[0] == 0
            for admin in (collector.admin, f"http://127.0.0.1:{slot.admin_port}"):
                assert [get(f"{admin}/metrics")[0], get(f"{admin}/metrics", ADMIN_TOKEN)[0]] == [401, 200]
            asyncio.run(play(collector, mux_event(e="viewend", xsqno=3)))
            (row,) = reader.until(bool, SECONDS_MAX)
            assert row.key == b"acme:view-1"
            assert finalizer.run_once() == 0
            with psycopg.connect(postgres.dsn_of(DATABASE), autocommit=True) as connection:
                connection.execute(rights_in_postgres()[0])
            # Somebody is watching when the page opens, however long that took.
            asyncio.run(play(collector, mux_event(e="viewstart", xid="view-2", xsqno=1)))
            assert collector.child.stop(SECONDS_MAX) == 0
        serving.start()
        with psycopg.connect(postgres.dsn_of(DATABASE), autocommit=True) as connection:
            whole = lambda: connection.execute("SELECT is_whole FROM serving.coverage").fetchone() == (True,)  # noqa: E731
            serving.wait_until(whole, SECONDS_MAX, "hot rows are whole")
            assert connection.execute(
                "SELECT count(*) FROM serving.positions WHERE landed_at IS NOT NULL"
            ).fetchone() == (1,)
        ready = f"http://127.0.0.1:{serving_port}/readyz"
        serving.wait_until(lambda: get(ready, ADMIN_TOKEN)[0] == 200, SECONDS_MAX, "ready")
        assert serving.stop(SECONDS_MAX) == 0
        dashboard.start()
        tenant = make_tenant(postgres.dsn_of(DATABASE), organisation="Acme", email="owner@acme.example")
        dashboard.wait_until(lambda: _sees(page, "acme", tenant.token), SECONDS_MAX, "the page knows the view")
        assert get(f"{page}/v1/live")[0] == 401
        assert dashboard.stop(SECONDS_MAX) == 0
        assert slot.terminate() == 0
    finally:
        slot.end()
        serving.kill()
        dashboard.kill()
    logs = [secured.broker.log_file, *tmp_path.glob("*.log")]
    assert len(logs) == 6
    assert [file.name for file in logs if MARK in file.read_text()] == []


def _sees(page: str, customer_id: str, token: str) -> bool:
    """Whether the dashboard has live figures, those of earlier, the customer's limits, and the view's own life."""
    until_ms = int(time.time()) // 60 * 60_000
    history = f"{page}/v1/live/history?customer={customer_id}&from_ms={until_ms - 600_000}&until_ms={until_ms}"
    if get(history, token)[0] != 200:
        return False
    # The collector's report and the finalizer's default have come with the documented rights.
    status, limits = get(f"{page}/v1/limits?customer={customer_id}", token)
    if status != 200:
        return False
    values = {one["name"]: one["value"] for one in json.loads(limits)["limits"]}
    if (values["beacons_per_second"], values["members_max"]) != (10_000.0, 1_000.0):
        return False
    live, life = get(f"{page}/v1/live", token), get(f"{page}/v1/open-views?customer={customer_id}", token)
    return (live[0], life[0]) == (200, 200) and bool(json.loads(live[1])["series"])


def test_a_refused_client_reports_the_reason(
    secured: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BOOT_SECONDS_MAX", 30.0)
    stranger = Authority(tmp_path).ca_file

    def why(settings: Settings) -> str:
        with pytest.raises(TopicsWrong) as caught:
            verify_topics(settings, [BEACONS])
        return str(caught.value)

    with ThreadPoolExecutor() as threads:
        wrong_password, wrong_authority, no_rights = threads.map(
            why,
            [
                secured.settings("collector", kafka_password="wrong"),
                secured.settings("collector", kafka_ca_file=str(stranger)),
                secured.settings("nobody"),
            ],
        )
    assert "SCRAM-SHA-512" in wrong_password
    assert "certificate verify failed" in wrong_authority
    assert "topic beacons is missing" in no_rights
    assert "grant the right to see it" in no_rights
    assert MARK not in wrong_password + wrong_authority + no_rights


def test_no_user_may_do_what_its_service_does_not(secured: SecuredBroker) -> None:
    refused: list[KafkaError | None] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        refused.append(error)

    for user, topic in (("dashboard", LIVE.name), ("video_views", SPANS.name), ("finalizer", VIEWS.name)):
        producer = Producer(client_config(secured.settings(user), "test"))
        producer.produce(topic, b"{}", partition=0, on_delivery=on_delivery)
        assert producer.flush(SECONDS_MAX) == 0
    assert [error.code() for error in refused if error] == [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3

    reader = Consumer(client_config(secured.settings("collector"), "test") | {"group.id": "dashboard-live"})
    reader.assign([TopicPartition(BEACONS.name, 0, 0)])
    codes: set[int] = set()

    def is_refused() -> bool:
        message = reader.poll(1.0)
        if message is not None:
            error = message.error()
            assert error is not None
            codes.add(error.code())
        return KafkaError.TOPIC_AUTHORIZATION_FAILED in codes

    wait_until(is_refused, SECONDS_MAX, "the collector's user may not read beacons")
    reader.close()


def test_a_postgres_that_cannot_prove_its_name_is_not_trusted(front: TlsFront, tmp_path: Path) -> None:
    assert CustomersTable(front.dsn("tls_collector", DATABASE)).customers.lists("acme")
    for dsn in (
        front.dsn("tls_collector", DATABASE, ca_file=Authority(tmp_path).ca_file),
        front.dsn("tls_collector", DATABASE, sslmode="disable"),
    ):
        with pytest.raises(TableAway) as caught:
            CustomersTable(dsn)
        assert MARK not in str(caught.value)
