"""A customer's alerts are deleted on real parts: broker, a slot of alerts, the service that lands incidents, Postgres."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.core.deletions import Step
from services.accounts.store import schema as accounts_schema
from services.accounts.store.audit import SYSTEM, Actor
from services.accounts.store.customers import deletions
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import schema
from services.finalizer.jobs.deletions.learned import Learned
from services.finalizer.serving.deletion_requests import DeletionRequests, Work
from shared import codec, topics
from shared.partitioning import partition_of
from shared.schemas.live import BUCKET_MS
from shared.settings import Settings
from tests.integration.alerts.alerting import alerting, asked
from tests.integration.alerts.notifying import notifications
from tests.integration.deletions.deleting import holding, tables_holding
from tests.integration.parts.brokers import topics_of
from tests.integration.parts.feed import committed
from tests.integration.parts.installed import PARTITIONS, variables
from tests.integration.parts.slots import Slot, wait_until
from tests.unit.alerts.live import live

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

GONE, STAYS = "gone-customer", "another"


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return topics_of("alerts")


async def add_rules(made: Alerting, actor: Actor) -> None:
    """A rule of each customer that finds any viewer, with a receiver that nobody reaches."""
    url = {"url": f"http://127.0.0.1:{free_port()}/hook", "secret": "s" * 32}
    receiver = await made.add_receiver(actor, name="hook", kind="webhook", target=url, template=None)
    for customer in (GONE, STAYS):
        body = RuleBody(
            customer=customer, name=f"Viewers of {customer}", metric="viewers", condition="threshold", threshold=0.5,
            receivers=[receiver],
        )  # fmt: skip
        await made.add_rule(EVERYTHING, body, actor)


def report(bootstrap: str, customer: str, viewers: int, buckets: int) -> None:
    """The newest buckets of a customer, of one partition."""
    producer, key = Producer({"bootstrap.servers": bootstrap, "acks": "all"}), customer.encode()
    last_ms = time.time_ns() // 1_000_000 // BUCKET_MS * BUCKET_MS
    for number in reversed(range(buckets)):
        gauge = live(last_ms - number * BUCKET_MS, 0, customer, viewers_now=viewers)
        producer.produce(topics.LIVE.name, codec.LIVE.encode(gauge), key, partition_of(key, PARTITIONS))
    assert producer.flush(60) == 0


@contextmanager
def processes(broker: Broker, dsn: str, folder: Path) -> Iterator[None]:
    """A slot of alerts, and the service that lands incidents."""
    slot = Slot(
        broker.bootstrap,
        folder,
        0,
        PROCESSOR_APPLICATION="alerts",
        PROCESSOR_REWRITE_INTERVAL_MS="100",
        ALERTS_GRACE_MS="100",
    )
    landing = notifications(broker.bootstrap, dsn, free_port(), folder)
    try:
        slot.start()
        landing.start()
        wait_until(slot.is_ready, "the slot is ready", 120)
        yield
    finally:
        landing.kill()
        slot.end()


def asked_for(dsn: str) -> None:
    """A request to delete the customer, as the command makes it."""

    async def ask() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            owner = await deletions.owner_of(connection, GONE)
            new = deletions.wanted(GONE, None, [], organisation_id=owner, asked_by=SYSTEM.name)
            await deletions.ask(connection, new, SYSTEM)

    asyncio.run(ask())


def step_of(dsn: str, step: Step) -> Mapping[str, int]:
    return asked(dsn, f"SELECT found FROM accounts.deletion_steps WHERE step = '{step}'")[0][0]  # type: ignore[no-any-return]


def test_rules_incidents_and_what_was_learned_of_a_customer_go_through_deaths_and_nobody_is_told(
    broker: Broker, postgres: Postgres, tmp_path: Path
) -> None:
    dsn = postgres.create_database(f"learned_{uuid4().hex}")
    accounts_schema.migrate(dsn)
    schema.migrate(dsn)
    alerting(dsn, add_rules)
    settings = Settings.load(variables(broker.bootstrap))
    requests = DeletionRequests(dsn)

    def process() -> tuple[Learned, Work]:
        """As one that starts anew: it remembers nothing."""
        (work,) = requests.open()
        return Learned(settings, requests), work

    with processes(broker, dsn, tmp_path):
        published = "SELECT count(*) FROM alerts.environments WHERE published = version"
        wait_until(lambda: asked(dsn, published) == [(2,)], "rules are published", 120)
        for customer in (GONE, STAYS):
            report(broker.bootstrap, customer, 9, 10)
        found = "SELECT count(DISTINCT incident_id) FROM alerts.deliveries"
        wait_until(lambda: asked(dsn, found) == [(2,)], "each customer has an incident with a message", 120)
        comments = "INSERT INTO alerts.comments (incident_id, author, text) SELECT id, 'ada', 'Look at it.' FROM alerts.incidents"
        asked(dsn, f"{comments} RETURNING id")
        asked_for(dsn)

        learned, work = process()
        learned.withdraw_rules(work)
        # It dies here, before it has seen that the slot has done it, or noted that the step is done.
        learned, work = process()
        wait_until(lambda: learned.withdraw_rules(work) is not None, "the slot has deleted rules", 120)
        assert (step_of(dsn, Step.RULES)["rules"], step_of(dsn, Step.RULES)["rule_versions"]) == (1, 1)
        # Live numbers fall, and rise again: no rule finds anything.
        report(broker.bootstrap, GONE, 0, 3)
        report(broker.bootstrap, GONE, 9, 3)

        learned, work = process()
        learned.delete(work, lambda: ())
        learned, work = process()
        wait_until(lambda: learned.delete(work, lambda: ()) is not None, "incidents are deleted", 120)
        counts = step_of(dsn, Step.LEARNED)
        assert (counts["incidents"], counts["comments"]) == (1, 1)
        assert min(counts["messages"], counts["changes"]) >= 1
        # What partitions go on to say of nobody leaves nothing.
        report(broker.bootstrap, GONE, 0, 3)
        report(broker.bootstrap, STAYS, 9, 3)
        assert tables_holding(dsn, GONE) == {"accounts.deletions", "accounts.audit"}
        assert {"alerts.rules", "alerts.rule_versions", "alerts.incidents", "alerts.changes"} <= tables_holding(
            dsn, STAYS
        )
        wait_until(lambda: "state-0" not in holding(tmp_path, GONE), "the slot's files are written again", 120)
        newest = {one.key() or b"": one.value() for one in committed(broker.bootstrap, topics.ALERTS_CHANGELOG)}
        assert not [key for key, value in newest.items() if value is not None and GONE.encode() in key + value]
        rules = {one.key() or b"": one.value() for one in committed(broker.bootstrap, topics.ALERT_RULES)}
        assert rules[GONE.encode()] is None
        assert rules[STAYS.encode()] is not None
        events = [
            codec.ALERT_EVENT.decode(one.value() or b"") for one in committed(broker.bootstrap, topics.ALERT_EVENTS)
        ]
        assert [one.change for one in events if one.customer_id == GONE] == ["opened"]
