"""The page over a month of views: dashboard, query, Postgres, broker, and a warehouse that no finalizer writes."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
import pyarrow as pa
from confluent_kafka import Producer
from deltalake import write_deltalake
from playwright.sync_api import Page

from deploy.local.broker import Broker
from deploy.local.paths import RRWEB
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from services.alerts.store import schema as alerts_schema
from services.finalizer.serving.database import Serving
from services.rim.kafka.connection import client_config
from shared import codec
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.live import BUCKET_MS
from shared.schemas.live_minute import STEPS
from shared.schemas.view import View
from shared.topics import BEACONS, REJECTED
from tests.integration.dashboard.dashboard_parts import Installation, newest_bucket, start_dashboard, start_query
from tests.integration.page.parts import page_requests
from tests.integration.page.parts.page_views import first_hour, month, watched_by_x, watched_for_hours
from tests.integration.parts.browsing import SOON_MS
from tests.integration.parts.installed import kafka
from tests.integration.query.querying import Installation as Data
from tests.unit.dashboard.records import slice_of
from tests.unit.query.parts.recounting import DAY_MS

#: Owns an organisation that has nothing at first.
OWNER: Final = "bruce@wayne.example"
#: More than a page of them.
BEACONS_OF_X: Final = 150


@dataclass
class Looked:
    """What is looked at, and the truth of it."""

    installation: Installation
    query: Child
    views: list[View]
    now_ms: int
    #: When viewer X began to watch.
    x_ms: int

    @property
    def url(self) -> str:
        return self.installation.url


@contextmanager
def looked_at(folder: Path, broker: Broker) -> Iterator[Looked]:
    """Everything at work over the views of `page_views`."""
    postgres = Postgres(folder / "postgres")
    now_ms = int(time.time() * 1_000)
    x_ms = now_ms - 20 * 3_600_000 - now_ms % 60_000
    of_players = page_requests.captured_views(now_ms)
    views = [*month(now_ms), *first_hour(now_ms), *(view for view, _ in of_players)]
    views += [watched_for_hours(now_ms - 4 * DAY_MS), watched_by_x(x_ms)]
    port, query_port = free_port(), free_port()
    try:
        postgres.start()
        with closing(Serving(postgres.dsn, away_seconds_max=20, stop=threading.Event())) as serving:
            serving.open()
            serving.keep_views(0)
            data = Data(postgres.dsn, serving, folder / "warehouse")
            data.in_warehouse(views)
            data.in_postgres(views)
            _beacons_of(folder / "warehouse", views[-1])
            page_requests.land(folder / "warehouse", of_players)
            _recorded(folder / "warehouse", views[-1])
        alerts_schema.migrate(postgres.dsn)
        dashboard = start_dashboard(
            folder,
            broker,
            postgres.dsn,
            port,
            free_port(),
            query_url=f"http://127.0.0.1:{query_port}",
            DASHBOARD_RECORDINGS_LOOKUP_URL=f"http://127.0.0.1:{free_port()}",
            DASHBOARD_RRWEB_DIR=str(RRWEB),
        )
        query = start_query(folder, postgres, folder / "warehouse", query_port)
        settings = kafka(broker.bootstrap)
        installation = Installation(broker, postgres, folder, dashboard, port, settings, 0)
        try:
            yield Looked(installation, query, views, now_ms, x_ms)
        finally:
            installation.dashboard.stop(30)
            query.stop(30)
    finally:
        postgres.remove()


def _beacons_of(warehouse: Path, view: View) -> None:
    """What the finalizer stores of a view's beacons, as they came: a second apart."""
    key = view_key(view.customer_id, view.view_id)
    times = [view.first_append_ms + 1_000 * number for number in range(BEACONS_OF_X)]
    write_deltalake(
        warehouse / "bronze",
        pa.table(
            {
                "key": pa.array([key] * len(times), pa.binary()),
                "value": pa.array(
                    [json.dumps(_beacon(number, times[number])).encode() for number in range(len(times))],
                    pa.binary(),
                ),
                "kafka_partition": pa.array([0] * len(times), pa.int32()),
                "kafka_offset": pa.array(range(len(times)), pa.int64()),
                "kafka_timestamp_ms": pa.array(times, pa.int64()),
                "day": pa.array([at // DAY_MS for at in times], pa.int64()),
            }
        ),
        partition_by=["day"],
    )


def _beacon(number: int, at_ms: int) -> dict[str, Any]:
    """One of them: the errors of `watched_by_x` among many others."""
    said = {
        64: ("warning", {"player_error_code": "BUFFER_LOW", "player_error_message": "two seconds are left"}),
        95: ("error", {"player_error_code": "MEDIA_ERR_NETWORK", "player_error_message": "the segment never came"}),
    }
    event, attrs = said.get(number, ("timeupdate", {}))
    return {"event": event, "seq": number, "client_time_ms": at_ms, "attrs": attrs}


def _recorded(warehouse: Path, view: View) -> None:
    """Three parts of the recording of a view's session."""
    rows = {
        "customer_id": pa.array([view.customer_id] * 3),
        "session_id": pa.array([view.session_id] * 3),
        "sequence": pa.array(range(3), pa.int64()),
        "at_ms": pa.array([view.first_append_ms + number for number in range(3)], pa.int64()),
        "state": pa.array(["stored"] * 3),
    }
    write_deltalake(warehouse / "recording_index", pa.table(rows))


def watch_now(installation: Installation) -> None:
    """Viewers of this moment: most of those of one CDN wait."""
    bucket_ms = newest_bucket()
    fastly = slice_of(
        viewers_now=200,
        rebuffering_now=70,
        bitrate_bps_now=190 * 10**6,
        bitrate_viewers_now=190,
        views_started=5,
        failures=4,
    )
    akamai = slice_of(viewers_now=600, rebuffering_now=6, bitrate_bps_now=600 * 4 * 10**6, bitrate_viewers_now=600)
    slices = {
        "cdn=fastly": fastly,
        "cdn=akamai": akamai,
        "country=DE": slice_of(viewers_now=500, rebuffering_now=72),
        "country=FR": slice_of(viewers_now=300, rebuffering_now=4),
        "cdn,country=fastly\x1fDE": slice_of(viewers_now=120, rebuffering_now=68),
        "country,video_title=DE\x1fCup final": slice_of(viewers_now=410, rebuffering_now=50),
        "video_title=Cup final": slice_of(viewers_now=650, rebuffering_now=60),
        "video_title=Sintel": slice_of(viewers_now=150, rebuffering_now=16),
        "asn=3320": slice_of(viewers_now=420, rebuffering_now=63),
        "cdn,asn=fastly\x1f3320": slice_of(viewers_now=110, rebuffering_now=60),
        "asn=3215": slice_of(viewers_now=380, rebuffering_now=13),
        "device=phone": slice_of(viewers_now=480, rebuffering_now=48),
        "device=tv": slice_of(viewers_now=320, rebuffering_now=28),
        "player_version=2.4.0": slice_of(viewers_now=360, rebuffering_now=64),
        "player_version=2.3.0": slice_of(viewers_now=440, rebuffering_now=12),
    }
    for step in range(-20, 1):
        figures = {
            "viewers_now": 800 + 5 * step,
            "rebuffering_now": 76 + step,
            "bitrate_bps_now": 2_600_000_000,
            "bitrate_viewers_now": 800,
            "views_started": 12,
            "startups": 12,
            "startup_ms": 12 * 900,
            "failures": int(step % 3 == 0),
            "views_finished": 9,
            "exits_before_start": int(step % 4 == 0),
        }
        for partition in (0, 1):
            share = figures if partition == 0 else {}
            installation.put("acme", bucket_ms + step * BUCKET_MS, partition, slices=slices if share else {}, **share)
    installation.put("globex", bucket_ms, 0, viewers_now=40)
    installation.flush()


def viewers_at(minute: int) -> int:
    """Of acme in a minute of the day before `watch_now`; one in four comes by fastly."""
    return 400 + minute % 300


def watched_before(installation: Installation, customer: str = "acme") -> None:
    """Viewers of the last day of a customer, as `services/serving` lands them: by minute, and by 5 s of the last three hours."""
    until = int(time.time() // 60)
    with psycopg.connect(installation.postgres.dsn) as connection, connection.cursor() as cursor:
        for table, first in (("live_minutes", until - 1_440), ("live_steps", until - 180)):
            rows = []
            for minute in range(first, until):
                shares = {"": {"": 1.0}, "cdn": {"fastly": 0.25, "akamai": 0.75}}
                for dimension, values in shares.items():
                    viewers = {value: round(viewers_at(minute) * share) for value, share in values.items()}
                    if table == "live_minutes":
                        figures = {
                            value: {"viewers_now": STEPS * count, "viewers_max": count}
                            for value, count in viewers.items()
                        }
                        document: dict[str, object] = {"steps": STEPS, "values": figures}
                    else:
                        steps = {value: {"viewers_now": [count] * STEPS} for value, count in viewers.items()}
                        document = {"heard": [1] * STEPS, "values": steps}
                    rows.append((customer, dimension, minute, json.dumps(document)))
            cursor.executemany(
                f"INSERT INTO serving.{table} VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (customer_id, dimension, minute) DO UPDATE SET document = excluded.document".encode(),
                rows,
            )


def arrives(
    installation: Installation,
    customer_id: str,
    view_id: str,
    *,
    reason: str = "",
    detail: str = "",
    write_key: str | None = None,
) -> None:
    """Puts a beacon into its topic, or input with a reason into that of what is rejected, as the collector would."""
    now_ms = int(time.time() * 1_000)
    key = view_key(customer_id, view_id) if customer_id else None
    beacon = Beacon(
        schema_version=1,
        source="mux",
        customer_id=customer_id,
        view_id=view_id,
        event="playing",
        source_event="playing",
        recv_time_ms=now_ms,
        client_time_ms=now_ms,
        seq=1,
        attrs={"video_title": "A title"},
        write_key=write_key,
    )
    producer = Producer(client_config(installation.settings, "test") | {"acks": "all"})
    if reason:
        producer.produce(
            REJECTED.name, b'{"event": "?"}', key, headers={"reason": reason, "detail": detail, "origin": "/"}
        )
    else:
        producer.produce(BEACONS.name, codec.BEACON.encode(beacon), key)
    assert producer.flush(30) == 0


def log_in(page: Page, looked: Looked) -> None:
    """Lets the browser in as the owner of everything."""
    page.goto(looked.installation.login_url())
    page.wait_for_selector("#account", timeout=SOON_MS)
