"""Alerts on real parts: rules from Postgres through the processor to receivers, through kill -9 of both processes.

An HTTP server fails at first, and an SMTP server takes e-mails. Each incident opens and closes once, and each message has one id.
"""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from aiosmtpd.controller import Controller
from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.paths import ROOT
from deploy.local.ports import free_port
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.core.trial import Tried
from services.alerts.http.bodies import NewReceiver
from services.alerts.service import Alerting, NotThere
from services.alerts.store import deliveries
from services.alerts.store.deliveries import TooManyTests
from services.alerts.targets import ReceiverWrong
from shared import codec
from shared.partitioning import partition_of
from shared.schemas.alerts.event import AlertEvent
from shared.topics import (
    ALERT_EVENTS,
    ALERT_RULES,
    ALERTS_CHANGELOG,
    LIVE,
    PRESENCE,
    RECEIVED,
    REJECTED,
    Topic,
)
from tests.documents import blocks
from tests.integration.alerts.alerting import T0, alerting, asked, bad_minutes, page
from tests.integration.alerts.notifying import notifications
from tests.integration.collector.collecting import SECONDS_MAX
from tests.integration.parts.feed import committed
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import Slot, wait_until
from tests.unit.alerts.live import live
from tests.unit.webhooks.receiver import SECRET, Receiver, receiving

pytestmark = pytest.mark.integration

CUSTOMERS = [f"customer-{number}" for number in range(12)]
#: Buckets of an incident: calm, bad, and calm until it is over.
STORY = [4] * 3 + [40] * 10 + [4] * 45


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (ALERT_RULES, LIVE, RECEIVED, ALERT_EVENTS, ALERTS_CHANGELOG, PRESENCE, REJECTED)


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
    controller = Controller(box, hostname="127.0.0.1", port=free_port(), ready_timeout=SECONDS_MAX)
    controller.start()
    try:
        yield box, controller.port
    finally:
        controller.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving(lambda _id, before: 503 if before < 1 else 204) as found:
        yield found


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
        self._make = partial(notifications, bootstrap, dsn, smtp_port, folder)
        self.child = self._make()

    def start(self) -> None:
        self.child = self._make()
        self.child.start()


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


def snippets(language: str) -> list[str]:
    """The blocks of docs/alerts.md that this file runs."""
    found = blocks(ROOT / "docs/alerts.md")
    return [
        one.text for one in found if one.language == language and one.test == "tests/integration/alerts/test_alerts.py"
    ]


def test_each_way_of_notification_of_the_document_reaches_its_receiver(
    broker: Broker, dsn: str, mailbox: tuple[Mailbox, int], tmp_path: Path
) -> None:
    box, smtp_port = mailbox
    bodies = [msgspec.json.decode(text, type=NewReceiver) for text in snippets("json")]
    assert [one.kind for one in bodies] == ["webhook", "slack", "teams", "pagerduty", "email"]
    with posted() as (url, got):

        async def make(made: Alerting, actor: Actor) -> None:
            for number, one in enumerate(bodies):
                target = dict(one.target) if one.kind == "email" else {**one.target, "url": f"{url}/{one.kind}"}
                receiver = await made.add_receiver(
                    actor, name=one.name, kind=one.kind, target=target, template=one.template
                )
                await made.test_receiver(receiver, actor, number=str(number))

        alerting(dsn, make)
        notifications = Notifications(broker.bootstrap, dsn, smtp_port, tmp_path)
        notifications.start()
        try:
            states = "SELECT state FROM alerts.deliveries"
            wait_until(lambda: {one[0] for one in asked(dsn, states)} == {"delivered"}, "all tests are delivered")
        finally:
            notifications.child.kill()
    assert got.keys() == {"/webhook", "/slack", "/teams", "/pagerduty"}
    assert all("This is a test" in body for body in got.values())
    assert msgspec.json.decode(got["/pagerduty"])["routing_key"] == bodies[3].target["routing_key"]
    # One message, which comes again where the answer to it comes late.
    assert len(message_ids(box)) == 1
    assert all(one.rcpt_tos == ["managers@example.com"] for one in box.got)


def test_an_organisation_sends_so_many_tests_within_an_hour(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may send tests could fill anybody's mailbox."""
    monkeypatch.setattr(deliveries, "TESTS_MAX", 2)

    async def make(made: Alerting, actor: Actor) -> None:
        # A new receiver makes no room.
        for number in range(3):
            target = {"to": [f"{number}@example.com"]}
            receiver = await made.add_receiver(actor, name=f"r{number}", kind="email", target=target, template=None)
            if number < 2:
                await made.test_receiver(receiver, actor, number=str(number))
        with pytest.raises(TooManyTests):
            await made.test_receiver(receiver, actor, number="2")

    alerting(dsn, make)
    hour_ago = "UPDATE alerts.deliveries SET made_at = now() - interval '61 minutes' RETURNING id"
    assert sorted(asked(dsn, hour_ago)) == [("msg_test_0",), ("msg_test_1",)]

    async def again(made: Alerting, actor: Actor) -> None:
        (receiver, *_) = await made.receivers(actor.organisation_id)
        await made.test_receiver(receiver.id, actor, number="3")

    alerting(dsn, again)


@contextmanager
def posted() -> Iterator[tuple[str, dict[str, str]]]:
    """A server that takes everything; by path the last body."""
    got: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got[self.path] = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_receiver_is_changed_and_keeps_the_address_that_is_not_given(dsn: str) -> None:
    async def change(made: Alerting, actor: Actor) -> None:
        assert actor.organisation_id is not None
        one = await made.add_receiver(actor, name="a", kind="email", target={"to": ["a@x.example"]}, template=None)
        await made.change_receiver(one, actor, name="b", target=None, template="$title")
        found = await made.receivers(actor.organisation_id)
        assert [(each.name, each.target, each.template) for each in found] == [("b", {"to": ["a@x.example"]}, "$title")]
        await made.change_receiver(one, actor, name="b", target={"to": ["c@x.example"]}, template=None)
        assert (await made.receivers(actor.organisation_id))[0].target == {"to": ["c@x.example"]}
        with pytest.raises(ReceiverWrong):
            await made.change_receiver(one, actor, name="b", target={"url": "https://x.example"}, template=None)
        stranger = replace(actor, organisation_id=str(uuid4()))
        with pytest.raises(NotThere):
            await made.change_receiver(one, stranger, name="mine", target=None, template=None)

    alerting(dsn, change)


def test_the_documents_commands_make_a_rule_and_a_receiver(dsn: str) -> None:
    bad_minutes(dsn)
    with page(dsn) as (url, bearer):
        environ = os.environ | {"PAGE": url, "TOKEN": bearer}
        answers = [
            subprocess.run(["bash", "-ec", text], env=environ, capture_output=True, text=True, check=True).stdout
            for text in snippets("sh")
        ]
    made, tried, suggested, tested = answers
    assert '"version":1' in made
    found = msgspec.json.decode(tried, type=Tried)
    assert (found.fired, found.known_minutes) == (3, 60)
    assert [one.opened_ms for one in found.incidents] == [T0 - minute * 60_000 for minute in (19, 39, 59)]
    assert [one.event.slices[0].slice for one in found.incidents] == [{"cdn": "b"}] * 3
    assert suggested.count('"version":1') == 3
    assert '"state":"waiting"' in tested
    rules = asked(dsn, "SELECT version, body->>'metric', body->>'by' FROM alerts.rules ORDER BY changed_at")
    assert rules[0] == (1, "rebuffering", "cdn")
    assert rules[1:] == [(1, "beacons", None), (1, "rejected", "release"), (1, "rejected", "collector")]
    actions = asked(dsn, "SELECT action FROM accounts.audit ORDER BY id")
    assert actions == [*[("made_alert_rule",)] * 4, ("made_alert_receiver",), ("tested_alert_receiver",)]


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
        events = committed_events(broker.bootstrap)
    finally:
        slot.end()
        notifications.child.kill()
    expect_each_once(events)
    expect_delivered(dsn, receiver, box)


def committed_events(bootstrap: str) -> list[AlertEvent]:
    """What readers of committed records get from the topic, from its beginning."""
    return [codec.ALERT_EVENT.decode(message.value() or b"") for message in committed(bootstrap, ALERT_EVENTS)]


def expect_each_once(events: list[AlertEvent]) -> None:
    """Nothing is missing and nothing doubled in the topic."""
    found = Counter((one.customer_id, one.change) for one in events)
    assert found == Counter({(customer, change): 1 for customer in CUSTOMERS for change in ("opened", "closed")})
    assert {one.opened_ms for one in events} == {T0 + 4 * 5_000}


def message_ids(box: Mailbox) -> set[str]:
    """Of the e-mails that came."""
    return {line for one in box.got for line in one.content.decode().splitlines() if line.startswith("Message-ID")}


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
    assert len(message_ids(box)) == 2 * len(CUSTOMERS)
    assert any("Alert: High (customer-0)" in one.content.decode() for one in box.got)
