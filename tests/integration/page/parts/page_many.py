"""Many customers of the page: their viewers of this moment, and the minutes that were landed of them."""

import json
import time
from typing import Any, Final

import psycopg
from confluent_kafka import Producer

from services.rim.kafka.connection import client_config
from shared import codec
from shared.schemas.live import SLICE_VALUE_CHARS_MAX, Live
from shared.schemas.live_minute import STEPS
from shared.topics import LIVE
from tests.integration.dashboard.dashboard_parts import Installation, newest_bucket
from tests.unit.dashboard.records import slice_of

#: As long as a title of a slice may be.
LONG_TITLE: Final = "The film whose title takes all the room that a title may ever use up"[:SLICE_VALUE_CHARS_MAX]


def watched_by_many_customers(installation: Installation, count: int) -> None:
    """Viewers of this moment of so many more customers; one of them has a title as long as can be."""
    zeros: dict[str, Any] = dict.fromkeys(Live.__struct_fields__, 0)
    producer = Producer(client_config(installation.settings, "test") | {"acks": "all"})
    for number in range(count):
        slices = {f"video_title={LONG_TITLE}": slice_of(viewers_now=9)} if number == 0 else {}
        live = Live(
            **zeros
            | {"schema_version": 1, "customer_id": f"customer-{number:03}", "bucket_ms": newest_bucket()}
            | {"viewers_now": 1_000 - number, "slices": slices}
        )
        producer.produce(LIVE.name, codec.LIVE.encode(live), f"0:{live.customer_id}:{live.bucket_ms}", 0)
    assert producer.flush(30) == 0


def landed_of_many_customers(installation: Installation, count: int) -> None:
    """The last two minutes of so many of these customers, as they are landed: each has titles of its own, and one CDN fails all."""
    until = int(time.time() // 60)

    def figures(viewers: int, rebuffering: int = 0) -> dict[str, int]:
        counts = {"views_started": 4, "failures": int(rebuffering > 0), "viewers_max": viewers}
        return {"viewers_now": STEPS * viewers, "rebuffering_now": STEPS * rebuffering} | counts

    rows = []
    for number in range(count):
        documents = {
            "": {"": figures(10)},
            "cdn": {"fastly": figures(4, 3), "akamai": figures(6)},
            "country": {"DE": figures(7), "FR": figures(3, 3)},
            "video_title": {LONG_TITLE if number == 0 else f"Title {number:03}": figures(10)},
            "cdn,country": {"fastly\x1fDE": figures(1), "fastly\x1fFR": figures(3, 3), "akamai\x1fDE": figures(6)},
        }
        for dimension, values in documents.items():
            document = json.dumps({"steps": STEPS, "values": values})
            rows += [(f"customer-{number:03}", dimension, minute, document) for minute in (until - 2, until - 1)]
    with psycopg.connect(installation.postgres.dsn) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO serving.live_minutes VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", rows)
