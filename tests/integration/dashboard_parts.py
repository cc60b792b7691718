"""The dashboard with a broker and Postgres of its own, and what tests put into them."""

import os
import sys
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from services.accounts.commands import login_link, make_tenant
from services.rim.kafka.connection import client_config
from shared import codec
from shared.schemas.live import BUCKET_MS, Live
from shared.settings import Settings
from shared.topics import BEACONS, LIVE, PROFILES
from tests.integration.served import MEASURES

ROOT = Path(__file__).parents[2]


TOKEN = "a token of sixteen or more"


#: The owner of everything, whose browser tests look through.
WATCHER = "watcher@tests.localhost"


PARTITIONS = BEACONS.partitions(PROFILES["laptop"])


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

    def login_url(self) -> str:
        """An address that logs the owner of everything in, once."""
        return f"{self.url}login#{login_link(self.postgres.dsn, WATCHER)}"

    def count(self, customer_id: str, bucket_ms: int, partition: int = 0, **figures: Any) -> None:
        """Puts one live record into the topic, as the processor would."""
        zeros = dict.fromkeys(
            set(Live.__struct_fields__) - {"partition", "customer_id", "bucket_ms", "schema_version", "slices"}, 0
        )
        live = Live(
            schema_version=1, partition=partition, customer_id=customer_id, bucket_ms=bucket_ms, **(zeros | figures)
        )
        producer = Producer(client_config(self.settings, "test") | {"acks": "all"})
        producer.produce(LIVE.name, codec.LIVE.encode(live), f"{partition}:{customer_id}:{bucket_ms}", partition)
        assert producer.flush(30) == 0

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
            "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
            "PLAYHEAD_TOPICS_PROFILE": "laptop",
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
    child.wait_until(lambda: answers(f"http://127.0.0.1:{port}/v1/live", token), 60, "answering")
    assert answers(f"http://127.0.0.1:{admin_port}/readyz")
    assert answers(f"http://127.0.0.1:{admin_port}/metrics")
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
    child.wait_until(lambda: answers(f"http://127.0.0.1:{admin_port}/readyz"), 60, "ready")
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
