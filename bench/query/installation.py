"""The page over a generated warehouse: dashboard, query, Postgres with sums of hours, and a broker without records."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import psycopg

from deploy.demo import accounts
from deploy.local.broker import Broker
from deploy.local.paths import ROOT
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from deploy.local.supervisor import is_ready
from deploy.topics import create_topics
from services.alerts.store import schema as alerts_schema
from services.finalizer.serving.database import Serving
from shared.measures import COUNTED, SUMMED
from shared.settings import Settings
from shared.topics import BEACONS, LIVE, REJECTED

_READY_SECONDS: Final = 120
#: Of DuckDB and of columns in memory.
_BYTES: Final = 1 << 30


@dataclass(frozen=True)
class Page:
    """Where the page is, and the link that logs in once."""

    url: str
    link: str


@contextmanager
def page_over(folder: Path, warehouse: Path) -> Iterator[Page]:
    """Everything at work over table `views` of a warehouse, until the block ends. Answers are not kept: each is computed."""
    broker, postgres = Broker(folder / "broker"), Postgres(folder / "postgres")
    children: list[Child] = []
    try:
        broker.start()
        settings = Settings(kafka_bootstrap=broker.bootstrap, topics_profile="laptop")
        create_topics(settings, [LIVE, BEACONS, REJECTED])
        postgres.start()
        with closing(Serving(postgres.dsn, away_seconds_max=60, stop=threading.Event())) as serving:
            serving.open()
        with psycopg.connect(postgres.dsn) as connection:
            _fill_sums(connection, warehouse)
        alerts_schema.migrate(postgres.dsn)
        accounts.token(postgres.dsn)
        port, query_port = free_port(), free_port()
        url = f"http://127.0.0.1:{port}/"
        for name, env in _services(settings, postgres.dsn, warehouse, port, query_port).items():
            admin_port = free_port()
            own = {f"{name.upper()}_ADMIN_HOST": "127.0.0.1", f"{name.upper()}_ADMIN_PORT": str(admin_port)}
            child = Child(
                name,
                [sys.executable, "-m", f"services.{name}"],
                log_file=folder / f"{name}.log",
                folder=ROOT,
                env=os.environ | env | own,
            )
            children.append(child)
            child.start()
            child.wait_until(lambda port=admin_port: is_ready(port), _READY_SECONDS, "ready")  # type: ignore[misc]
        yield Page(url, accounts.link(postgres.dsn, url))
    finally:
        for child in children:
            child.stop(30)
        postgres.remove()
        broker.kill()


def _services(settings: Settings, dsn: str, warehouse: Path, port: int, query_port: int) -> dict[str, dict[str, str]]:
    return {
        "query": {
            "QUERY_HOST": "127.0.0.1",
            "QUERY_PORT": str(query_port),
            "QUERY_POSTGRES_DSN": dsn,
            "QUERY_WAREHOUSE_DIR": str(warehouse),
            "QUERY_COLUMNS_BYTES_MAX": str(_BYTES),
            "QUERY_ANSWERS_BYTES_MAX": "0",
        },
        "dashboard": {
            "PLAYHEAD_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
            "PLAYHEAD_TOPICS_PROFILE": "laptop",
            "DASHBOARD_HOST": "127.0.0.1",
            "DASHBOARD_PORT": str(port),
            "DASHBOARD_POSTGRES_DSN": dsn,
            "DASHBOARD_QUERY_URL": f"http://127.0.0.1:{query_port}",
        },
    }


def _fill_sums(connection: psycopg.Connection, warehouse: Path) -> None:
    """The sums of hours of the same views, in total and by client, as the finalizer publishes them."""
    parts = [f"count(*) FILTER (WHERE {on}) AS {name}" for name, on in COUNTED.items()]
    parts += [f"coalesce(sum({of}), 0)::bigint AS {name}" for name, of in SUMMED.items()]
    names = ", ".join((*COUNTED, *SUMMED))
    with duckdb.connect() as reader:
        reader.execute("SET enable_progress_bar = false")
        rows = reader.execute(
            f"SELECT hour, customer_id, {', '.join(parts)} FROM read_parquet(?) WHERE NOT deleted GROUP BY ALL",  # noqa: S608
            [f"{warehouse}/views/**/*.parquet"],
        ).fetchall()
    columns = f"grain, start, customer_id, dimensions, members, {names}, uniques"
    columns += ", startup_ms_buckets, startup_ms_counts, rebuffer_ms_buckets, rebuffer_ms_counts"
    values = ", ".join(["%s"] * (len(COUNTED) + len(SUMMED)))
    for dimensions, members in (("", "{}"), ("source", "{mux}")):
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO serving.rollups ({columns}) VALUES ('hour', to_timestamp(%s::bigint * 3600), %s,"  # noqa: S608
                f" '{dimensions}', '{members}', {values}, '', '{{}}', '{{}}', '{{}}', '{{}}')",
                rows,
            )
