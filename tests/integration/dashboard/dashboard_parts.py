"""The dashboard with a broker and Postgres of its own, and what tests put into them."""

import os
import random
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Producer
from deltalake import write_deltalake

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from services.accounts.commands import login_link, make_tenant
from services.collector.admission.rates import Amount, RateLimits
from services.collector.customers.usage import Usage
from services.collector.customers.usage_reports import UsageReports
from services.collector.intake.sender.customers import Customer
from services.finalizer.serving.migrate import migrate
from services.rim.http.credentials import entry
from services.rim.kafka.connection import client_config
from shared import codec
from shared.schemas.live import BUCKET_MS, Live
from shared.settings import Settings
from shared.topics import LIVE
from tests.integration.finalizer.served import MEASURES
from tests.integration.parts.brokers import OF_VIEWS, broker_with_topics
from tests.integration.parts.installed import kafka, variables
from tests.integration.parts.slots import Slot
from tests.integration.query.querying import as_table
from tests.unit.query.parts.recounting import a_view

ROOT = Path(__file__).parents[3]


TOKEN = "a token of sixteen or more"


#: The owner of everything, whose browser tests look through.
WATCHER = "watcher@tests.localhost"


#: The states of the captured view, as long as they lasted.
LIFE = (
    "starting 3.00 s, playing 4.39 s, rebuffering 2.56 s, playing 1.67 s, seeking 710 ms, playing 1.51 s, paused 2.01 s, "
    "playing 3.00 s"
)


@dataclass
class Installation:
    """A broker, a Postgres, and the dashboard over them; nobody else's."""

    broker: Broker
    postgres: Postgres
    folder: Path
    dashboard: Child
    port: int
    settings: Settings
    lookup_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @cached_property
    def token(self) -> str:
        """A bearer token that reads everything."""
        return make_tenant(self.postgres.dsn, organisation="Tests", email=WATCHER).token

    @cached_property
    def _producer(self) -> Producer:
        # A test may stop the broker for a while.
        return Producer(client_config(self.settings, "test") | {"acks": "all", "reconnect.backoff.max.ms": 500})

    def login_url(self) -> str:
        """An address that logs the owner of everything in, once."""
        return f"{self.url}login#{login_link(self.postgres.dsn, WATCHER)}"

    def count(self, customer_id: str, bucket_ms: int, partition: int = 0, **figures: Any) -> None:
        """Puts one live record into the topic, as the processor would."""
        self.put(customer_id, bucket_ms, partition, **figures)
        self.flush()

    def put(self, customer_id: str, bucket_ms: int, partition: int = 0, **figures: Any) -> None:
        """The same of one of several records: they are in the topic after `flush`."""
        zeros = dict.fromkeys(
            set(Live.__struct_fields__) - {"partition", "customer_id", "bucket_ms", "schema_version", "slices"}, 0
        )
        live = Live(
            schema_version=1, partition=partition, customer_id=customer_id, bucket_ms=bucket_ms, **(zeros | figures)
        )
        key = f"{partition}:{customer_id}:{bucket_ms}"
        self._producer.produce(LIVE.name, codec.LIVE.encode(live), key, partition)

    def flush(self) -> None:
        """Waits until all records are in their topic."""
        assert self._producer.flush(30) == 0

    def publish_others(self, customer_id: str, dimension: str, views: int) -> None:
        """Says that so many views of today are under "(other)"."""
        day = datetime.fromtimestamp(time.time() // 86_400 * 86_400, UTC)
        measures = dict.fromkeys(MEASURES, 0) | {"views": views}
        values = ", ".join(["%s"] * len(measures))
        with psycopg.connect(self.postgres.dsn) as connection:
            connection.execute(
                f"INSERT INTO serving.rollups (grain, start, customer_id, dimensions, members, {', '.join(measures)}, uniques,"
                " startup_ms_buckets, startup_ms_counts, rebuffer_ms_buckets, rebuffer_ms_counts)"
                f" VALUES ('day', %s, %s, %s, '{{(other)}}', {values}, '', '{{}}', '{{}}', '{{}}', '{{}}')",
                (day, customer_id, dimension, *measures.values()),
            )


def start_dashboard(
    folder: Path, broker: Broker, dsn: str, port: int, lookup_port: int, *, query_url: str = "", **environ: str
) -> Child:
    admin_port = free_port()
    child = Child(
        "dashboard",
        [sys.executable, "-m", "services.dashboard"],
        log_file=folder / "dashboard.log",
        folder=ROOT,
        env=os.environ
        | {
            **variables(broker.bootstrap),
            "DASHBOARD_HOST": "127.0.0.1",
            "DASHBOARD_PORT": str(port),
            "DASHBOARD_ADMIN_HOST": "127.0.0.1",
            "DASHBOARD_ADMIN_PORT": str(admin_port),
            "DASHBOARD_POSTGRES_DSN": dsn,
            "DASHBOARD_QUERY_SECONDS_MAX": "3",
            "DASHBOARD_LIVE_SETTLE_SECONDS": "1",
            "DASHBOARD_LOOKUP_URL": f"http://127.0.0.1:{lookup_port}",
            "DASHBOARD_LOOKUP_TOKEN": TOKEN,
            "DASHBOARD_QUERY_URL": query_url,
            **environ,
        },
    )
    child.start()
    token = make_tenant(dsn, organisation="Tests", email=WATCHER).token
    child.wait_until(lambda: answers(f"http://127.0.0.1:{port}/v1/live", token), 120, "answering")
    for path in ("readyz", "metrics"):
        # A process that gets no CPU for seconds answers late, which is no refusal.
        child.wait_until(lambda path=path: answers(f"http://127.0.0.1:{admin_port}/{path}"), 60, path)
    return child


def start_query(folder: Path, postgres: Postgres, warehouse: Path, port: int, *, lookup_port: int = 0) -> Child:
    """The service that answers questions, over a warehouse."""
    admin_port, exports = free_port(), folder / "exports"
    exports.mkdir(exist_ok=True)
    child = Child(
        "query",
        [sys.executable, "-m", "services.query"],
        log_file=folder / "query.log",
        folder=ROOT,
        env=os.environ
        | {
            "QUERY_HOST": "127.0.0.1",
            "QUERY_PORT": str(port),
            "QUERY_ADMIN_HOST": "127.0.0.1",
            "QUERY_ADMIN_PORT": str(admin_port),
            "QUERY_POSTGRES_DSN": postgres.dsn,
            "QUERY_WAREHOUSE_DIR": str(warehouse),
            "QUERY_THREADS": "1",
            "QUERY_EXPORTS_DIR": str(exports),
        }
        | ({"QUERY_LOOKUP_URL": f"http://127.0.0.1:{lookup_port}", "QUERY_LOOKUP_TOKEN": TOKEN} if lookup_port else {}),
    )
    child.start()
    child.wait_until(lambda: answers(f"http://127.0.0.1:{admin_port}/readyz"), 120, "ready")
    return child


def answers(url: str, token: str = "") -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def newest_bucket() -> int:
    now_ms = int(time.time() * 1_000)
    return now_ms - now_ms % BUCKET_MS - BUCKET_MS


@contextmanager
def at_work(folder: Path, postgres_folder: Path) -> Iterator[Installation]:
    """Everything started, until the block ends; the warehouse has one view."""
    postgres = Postgres(postgres_folder)
    port, lookup_port, query_port = free_port(), free_port(), free_port()
    write_deltalake(folder / "warehouse" / "views", as_table([a_view(random.Random(1), "one")]), partition_by=["day"])
    with broker_with_topics(folder / "broker", OF_VIEWS) as broker:
        settings = kafka(broker.bootstrap)
        try:
            postgres.start()
            migrate(postgres.dsn)
            query = start_query(folder, postgres, folder / "warehouse", query_port, lookup_port=lookup_port)
            dashboard = start_dashboard(
                folder, broker, postgres.dsn, port, lookup_port, query_url=f"http://127.0.0.1:{query_port}"
            )
            made = Installation(broker, postgres, folder, dashboard, port, settings, lookup_port)
            try:
                yield made
            finally:
                made.dashboard.stop(30)
                query.stop(30)
        finally:
            postgres.remove()


async def beyond_its_limits(dsn: str, customer_id: str) -> None:
    """A collector refuses what the customer sends, and reports it."""
    usage = Usage()
    limits = RateLimits(Customer(beacons_per_second=10_000, bytes_per_day=500e9), usage)
    reports = UsageReports(
        dsn, "a-collector", usage, {"beacons_per_second": 10_000, "bytes_per_day": 500e9}, lambda _: None
    )
    terms = {customer_id: Customer(beacons_per_second=2, bytes_per_day=2e6)}
    amounts = {customer_id: Amount(1_250_000, beacons=30)}
    assert limits.wait_seconds(amounts, terms, 0.0) == 0
    for _ in range(3):
        assert limits.wait_seconds(amounts, terms, 0.0) > 0
        limits.count_refused(amounts, terms, 0.0)
    await reports.send()


def slot_with_lookups(installation: Installation, folder: Path) -> Slot:
    """A slot, not started, that the dashboard asks for views; a view that has ended is finished at once."""
    return Slot(
        installation.broker.bootstrap,
        folder,
        0,
        PROCESSOR_LOOKUP_HOST="127.0.0.1",
        PROCESSOR_LOOKUP_PORT=str(installation.lookup_port),
        PROCESSOR_LOOKUP_URL=f"http://127.0.0.1:{installation.lookup_port}",
        PROCESSOR_LOOKUP_TOKEN="that slots have among themselves",
        PROCESSOR_LOOKUP_CREDENTIALS=entry("dashboard", ["lookups", "partitions"], TOKEN),
        VIDEO_VIEWS_FINISH_CLEAN_MS="1000",
    )
