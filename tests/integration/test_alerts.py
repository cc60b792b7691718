"""Alerts on real parts: rules from Postgres through the processor to receivers, through kill -9 of both processes.

An HTTP server fails at first, and an SMTP server takes e-mails. Each incident opens and closes once, and each message has one id.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
import pytest
from aiosmtpd.controller import Controller
from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store import schema as accounts_schema
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import schema
from services.rim.database.pool import Postgres as Pool
from shared import codec
from shared.partitioning import partition_of
from shared.schemas.alerts.event import AlertEvent
from shared.topics import ALERT_EVENTS, ALERT_RULES, ALERTS_CHANGELOG, LIVE, PRESENCE, PROFILES, REJECTED, Topic
from tests.integration.collecting import SECONDS_MAX, reading
from tests.integration.slots import Slot, wait_until
from tests.unit.alerts.live import T0 as MONDAY
from tests.unit.alerts.live import live
from tests.unit.webhooks.receiver import SECRET, Receiver, receiving

pytestmark = pytest.mark.integration

T = TypeVar("T")
CUSTOMERS = [f"customer-{number}" for number in range(12)]
PARTITIONS = LIVE.partitions(PROFILES["laptop"])
#: In the past: the clock of a slot is the present, and the first bucket waits by it.
T0 = MONDAY - 14 * 86_400_000
#: Buckets of an incident: calm, bad, and calm until it is over.
STORY = [4] * 3 + [40] * 10 + [4] * 45


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (ALERT_RULES, LIVE, ALERT_EVENTS, ALERTS_CHANGELOG, PRESENCE, REJECTED)


class Mailbox:
    """An SMTP server's handler, which keeps what came."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def handle_DATA(  # noqa: N802 - as the library calls it
        self, _server: object, _session: object, envelope: Any
    ) -> str:
        self.got.append(envelope)
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield box, controller.port
    finally:
        controller.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving(lambda _id, before: 503 if before < 1 else 204) as found:
        yield found


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    made = postgres.create_database(f"alerts_{uuid4().hex}")
    accounts_schema.migrate(made)
    schema.migrate(made)
    return made


def alerting(dsn: str, work: Callable[[Alerting, Actor], Any]) -> Any:
    """What people do, on the service that the routes use."""

    async def run() -> Any:
        with psycopg.connect(dsn, autocommit=True) as connection:
            row = connection.execute(
                "INSERT INTO accounts.organisations (name) VALUES ('Acme') RETURNING id::text"
            ).fetchone()
        assert row is not None
        pool = Pool(dsn, service="test", connections_max=2, seconds_max=10, writes=True)
        await pool.open()
        try:
            return await work(Alerting(pool), Actor("person", "p", "ada@acme", None, row[0]))
        finally:
            await pool.close()

    return asyncio.run(run())


async def rules_and_receivers(made: Alerting, actor: Actor, hook: str) -> list[str]:
    """A threshold for each customer, which notifies a webhook and an address; the receivers' ids."""
    webhook = await made.add_receiver(
        actor, name="hook", kind="webhook", target={"url": hook, "secret": SECRET}, template=None
    )
    mail = await made.add_receiver(actor, name="mail", kind="email", target={"to": ["a@x.example"]}, template="$title")
    for customer in CUSTOMERS:
        body = RuleBody(
            customer=customer, name="High", metric="rebuffering", condition="threshold", threshold=0.05,
            receivers=[webhook, mail],
        )  # fmt: skip
        await made.add_rule(EVERYTHING, body, actor)
    return [webhook, mail]


class Notifications:
    """The process."""

    def __init__(self, bootstrap: str, dsn: str, smtp_port: int, folder: Path) -> None:
        self._log_file = folder / "notifications.log"
        self._environ = os.environ | {
            "PLAYHEAD_KAFKA_BOOTSTRAP": bootstrap,
            "NOTIFICATIONS_POSTGRES_DSN": dsn,
            "NOTIFICATIONS_PRIVATE_RECEIVERS": "true",
            "NOTIFICATIONS_SMTP_HOST": "127.0.0.1",
            "NOTIFICATIONS_SMTP_PORT": str(smtp_port),
            "NOTIFICATIONS_SMTP_SECURITY": "none",
            "NOTIFICATIONS_BACKOFF_MS": "50",
            "NOTIFICATIONS_ANSWER_MS_MAX": "1000",
            "NOTIFICATIONS_ADMIN_HOST": "127.0.0.1",
            "NOTIFICATIONS_ADMIN_PORT": "0",
        }
        self.child = self._make()

    def _make(self) -> Child:
        command = [sys.executable, "-m", "services.notifications"]
        return Child("notifications", command, log_file=self._log_file, env=self._environ)

    def start(self) -> None:
        self.child = self._make()
        self.child.start()


def asked(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type, call-overload, no-any-return]


def gauges(bootstrap: str, buckets: Iterable[tuple[int, int]]) -> None:
    """Each customer's gauges of two partitions, by bucket."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for start_ms, rebuffering in buckets:
        for customer in CUSTOMERS:
            for partition in range(2):
                one = live(start_ms, partition, customer, viewers_now=200, rebuffering_now=rebuffering // 2)
                key = customer.encode()
                producer.produce(LIVE.name, codec.LIVE.encode(one), key, partition_of(key, PARTITIONS))
    assert producer.flush(SECONDS_MAX) == 0


def test_each_change_is_notified_once_in_order_through_kills(
    broker: Broker, dsn: str, receiver: Receiver, mailbox: tuple[Mailbox, int], tmp_path: Path
) -> None:
    box, smtp_port = mailbox
    alerting(dsn, lambda made, actor: rules_and_receivers(made, actor, receiver.url))
    notifications = Notifications(broker.bootstrap, dsn, smtp_port, tmp_path)
    slot = Slot(broker.bootstrap, tmp_path, 0, PROCESSOR_APPLICATION="alerts")
    notifications.start()
    slot.start()
    try:
        unpublished = "SELECT 1 FROM alerts.environments WHERE version > published"
        wait_until(lambda: not asked(dsn, unpublished), "the rules are published")
        wait_until(slot.is_ready, "the slot works")
        buckets = [(T0 + number * 5_000, rebuffering) for number, rebuffering in enumerate(STORY)]
        gauges(broker.bootstrap, buckets[:6])
        changes = "SELECT 1 FROM alerts.changes"
        wait_until(lambda: len(asked(dsn, changes)) >= len(CUSTOMERS), "the incidents have opened")
        for number in range(6, len(buckets), 18):
            slot.kill()
            notifications.child.kill()
            slot.start()
            notifications.start()
            gauges(broker.bootstrap, buckets[number : number + 18])
        waiting = "SELECT 1 FROM alerts.deliveries WHERE state = 'waiting'"
        wait_until(lambda: len(asked(dsn, changes)) == 2 * len(CUSTOMERS), "the incidents have closed", 120)
        wait_until(lambda: not asked(dsn, waiting), "all is delivered", 120)
        with reading(broker.bootstrap, ALERT_EVENTS) as reader:
            wait_until(lambda: len(reader.records) >= 2 * len(CUSTOMERS), "the topic has the events")
            events = [codec.ALERT_EVENT.decode(record.value) for record in reader.records]
    finally:
        slot.end()
        notifications.child.kill()
    expect_each_once(events)
    expect_delivered(dsn, receiver, box)


def expect_each_once(events: list[AlertEvent]) -> None:
    """Nothing is missing and nothing doubled in the topic."""
    found = Counter((one.customer_id, one.change) for one in events)
    assert found == Counter({(customer, change): 1 for customer in CUSTOMERS for change in ("opened", "closed")})
    assert {one.opened_ms for one in events} == {T0 + 4 * 5_000}


def expect_delivered(dsn: str, receiver: Receiver, box: Mailbox) -> None:
    """Both receivers have every message, under one id each, the opening before the closing."""
    states = asked(dsn, "SELECT state, count(*) FROM alerts.deliveries GROUP BY state")
    assert states == [("delivered", 4 * len(CUSTOMERS))]
    taken = receiver.taken()
    assert all(one.is_signed for one in receiver.got)
    first = list({one.id: one.body for one in reversed(taken)}.values())[::-1]
    assert len(first) == 2 * len(CUSTOMERS)
    for customer in CUSTOMERS:
        of_one = [one["type"] for one in first if one["data"]["customer_id"] == customer]
        assert of_one == ["alert.opened", "alert.closed"]
    # Each failed once, so each came at least twice, under the same id.
    assert min(Counter(one.id for one in receiver.got).values()) >= 2
    mails = {line for one in box.got for line in one.content.decode().splitlines() if line.startswith("Message-ID")}
    assert len(mails) == 2 * len(CUSTOMERS)
    assert any("Alert: High (customer-0)" in one.content.decode() for one in box.got)
