"""How soon a changed alert rule is in force: `python -m bench.alerts.rules [--rules N]`.

Postgres, a broker, `services.notifications` and one slot of `alerts` are processes of their own. Customers are bad all the time, in
ten buckets of topic `live` a second. Then each gets a rule as the API adds it, one after the other; the rule is in force once the
event that opens its incident can be read. The first bucket of a customer waits for partitions that nobody knows yet, 5 s long,
with any rules. So a rule of one more customer comes first, which is not counted: its incident shows that this is over.
Checked before any figure: each rule has opened one incident.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.report.results import Compared, Part, keep
from bench.state.open_views import Slot, create
from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from deploy.local.process import Child, wait_until
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store import schema as accounts_schema
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import schema
from services.rim.database.pool import Postgres as Pool
from shared import codec
from shared.partitioning import partition_of
from shared.schemas.live import BUCKET_MS, SCHEMA_VERSION, Live
from shared.statistics.weeks import HOUR_MS
from shared.topics import ALERT_EVENTS, LIVE, PROFILES

GOAL_SECONDS: Final = 5.0
_PARTITIONS: Final = LIVE.partitions(PROFILES["laptop"])
#: Buckets are of the past, and come faster than time: what is measured is not how long a bucket takes.
_BUCKET_EVERY_SECONDS: Final = 0.1
_SECONDS_MAX: Final = 120.0
_COUNTS: Final = (
    *("viewers_now", "rebuffering_now", "open_now", "bitrate_bps_now", "bitrate_viewers_now", "beacons", "duplicates"),
    *("dropped", "late", "views_started", "views_finished", "views_revised", "playback_failures"),
    *("startup_failures", "exits_before_start"),
)


def main() -> int:
    """1 when a rule opens no incident, or more than one."""
    parser = argparse.ArgumentParser(prog="python -m bench.alerts.rules", description=__doc__)
    parser.add_argument("--rules", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alert-rules") as name:
        folder = Path(name)
        with Broker(folder / "broker") as broker:
            create(broker, "laptop")
            postgres = Postgres(folder / "postgres")
            postgres.start()
            try:
                seconds = _measured(broker, postgres, folder, given.rules)
            finally:
                postgres.remove()
    _keep(sorted(seconds))
    return 0


def _measured(broker: Broker, postgres: Postgres, folder: Path, rules: int) -> list[float]:
    accounts_schema.migrate(postgres.dsn)
    schema.migrate(postgres.dsn)
    slot = Slot(broker, folder, "laptop", {"PROCESSOR_APPLICATION": "alerts"})
    environ = os.environ | {
        "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
        "NOTIFICATIONS_POSTGRES_DSN": postgres.dsn,
        "NOTIFICATIONS_ADMIN_HOST": "127.0.0.1",
        "NOTIFICATIONS_ADMIN_PORT": "0",
    }
    command = [sys.executable, "-m", "services.notifications"]
    notifications = Child("notifications", command, log_file=folder / "notifications.log", env=environ)
    stop = threading.Event()
    customers = [f"customer-{number}" for number in range(1 + rules)]
    feeding = threading.Thread(target=_feed, args=(broker.bootstrap, customers, stop))
    slot.child.start()
    notifications.start()
    try:
        wait_until(slot.is_ready, _SECONDS_MAX, "the slot works")
        feeding.start()
        return asyncio.run(_each_rule(broker.bootstrap, postgres.dsn, customers))
    finally:
        stop.set()
        slot.child.kill()
        notifications.kill()
        if feeding.is_alive():
            feeding.join()


def _feed(bootstrap: str, customers: list[str], stop: threading.Event) -> None:
    """Gauges of one partition, a tenth of the viewers rebuffering."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    bucket_ms = round(time.time()) * 1_000 // HOUR_MS * HOUR_MS - 14 * 24 * HOUR_MS
    counts: dict[str, Any] = dict.fromkeys(_COUNTS, 0) | {"viewers_now": 1_000, "rebuffering_now": 100}
    while not stop.wait(_BUCKET_EVERY_SECONDS):
        for customer in customers:
            gauge = Live(
                schema_version=SCHEMA_VERSION, partition=0, customer_id=customer, bucket_ms=bucket_ms, **counts
            )
            key = customer.encode()
            producer.produce(LIVE.name, codec.LIVE.encode(gauge), key, partition_of(key, _PARTITIONS))
        producer.flush(_SECONDS_MAX)
        bucket_ms += BUCKET_MS


async def _each_rule(bootstrap: str, dsn: str, customers: list[str]) -> list[float]:
    """Seconds from the answer to a new rule until its incident can be read, for each customer but the first."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        made = "INSERT INTO accounts.organisations (name, owns_rest) VALUES ('Bench', true) RETURNING id::text"
        row = connection.execute(made).fetchone()
    assert row is not None
    actor = Actor("person", "p", "bench@localhost", None, row[0])
    pool = Pool(dsn, service="bench", connections_max=2, seconds_max=10, writes=True)
    await pool.open()
    consumer = _reader(bootstrap)
    found: list[float] = []
    try:
        for customer in customers:
            rule = RuleBody(customer=customer, name="High", metric="rebuffering", condition="threshold", threshold=0.05)
            rule_id = await Alerting(pool).add_rule(EVERYTHING, rule, actor)
            begun = time.monotonic()
            await asyncio.to_thread(_until_opened, consumer, rule_id)
            found.append(time.monotonic() - begun)
    finally:
        consumer.close()
        await pool.close()
    return found[1:]


def _reader(bootstrap: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(ALERT_EVENTS.name, number, 0) for number in range(_PARTITIONS)])
    return consumer


def _until_opened(consumer: Consumer, rule_id: str) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        event = codec.ALERT_EVENT.decode(message.value() or b"")
        if (event.rule_id, event.change) != (rule_id, "opened"):
            raise SystemExit(f"not the opening of {rule_id}: {event.change} of {event.rule_id}")
        return
    raise SystemExit(f"rule {rule_id} is not in force after {_SECONDS_MAX} s")


def _keep(seconds: list[float]) -> None:
    worst, median = seconds[-1], seconds[len(seconds) // 2]
    print(f"{len(seconds)} rules in force after {median:.2f} s (median), {worst:.2f} s (worst)")
    keep(
        Part(
            name="alert-rules",
            title="Alert rules: how soon a change is in force",
            command=f"python -m bench.alerts.rules --rules {len(seconds)}",
            checked="each rule has opened one incident of its customer",
            compared=[
                Compared("a rule that was saved is in force, median", f"{median:.2f} s"),
                Compared(
                    f"the same, the longest of {len(seconds)}", f"{worst:.2f} s", f"≤ {GOAL_SECONDS:g} s",
                    worst <= GOAL_SECONDS,
                ),
            ],
            lines=[
                (
                    "From the commit in Postgres to the committed event of the incident that the rule opens, by way of services"
                    " `notifications` and `alerts`, on one machine."
                )
            ],
        )
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
