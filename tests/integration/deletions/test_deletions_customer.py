"""A whole customer is deleted on real parts, alerts included: rules, incidents, what was learned. Then every byte is searched."""

import asyncio
import random
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Message

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.core.deletions import Step
from services.accounts.store import schema as accounts_schema
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import schema
from shared import topics
from shared.codec import ALERT_EVENT
from tests.integration.alerts.alerting import alerting, asked
from tests.integration.alerts.notifying import notifications
from tests.integration.deletions.deleting import Feed, Kept, delete_exports, holding, looked_until, tables_holding
from tests.integration.finalizer.finalizing import Installation, wait_for_exit
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import topics_of
from tests.integration.parts.feed import committed
from tests.integration.parts.slots import Slot, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

#: Found nowhere else, and nothing that compresses: customers, and what their viewers and people wrote.
GONE, STAYS, GONE_WORDS, STAYS_WORDS = (random.Random(name).randbytes(16).hex() for name in "abcd")
WORDS = {GONE: GONE_WORDS, STAYS: STAYS_WORDS}


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    of_alerts = (topics.RECEIVED, topics.ALERT_RULES, topics.ALERT_EVENTS, topics.ALERTS_CHANGELOG)
    return {one.name: one for one in (*topics_of("video_views"), *of_alerts)}.values()


async def add_rules(made: Alerting, actor: Actor) -> None:
    """A rule of each customer that finds any viewer, with a receiver that nobody reaches."""
    url = {"url": f"http://127.0.0.1:{free_port()}/hook", "secret": "s" * 32}
    receiver = await made.add_receiver(actor, name="hook", kind="webhook", target=url, template=None)
    for customer, words in WORDS.items():
        body = RuleBody(
            customer=customer, name=words, metric="viewers", condition="threshold", threshold=0.5, receivers=[receiver],
        )  # fmt: skip
        await made.add_rule(EVERYTHING, body, actor)


@contextmanager
def processes(broker: Broker, dsn: str, folder: Path) -> Iterator[None]:
    """A slot of views, one of alerts, and the service that lands incidents."""
    common = {
        "PROCESSOR_REWRITE_INTERVAL_MS": "100",
        "VIDEO_VIEWS_FINISH_CLEAN_MS": "0",
    }
    of_views = Slot(broker.bootstrap, folder, 0, **common)
    of_alerts = Slot(broker.bootstrap, folder, 1, **common, PROCESSOR_APPLICATION="alerts", ALERTS_GRACE_MS="100")
    landing = notifications(broker.bootstrap, dsn, free_port(), folder)
    try:
        for one in (of_views, of_alerts):
            one.start()
        landing.start()
        for one in (of_views, of_alerts):
            wait_until(one.is_ready, "the slot is ready", 120)
        yield
    finally:
        landing.kill()
        for one in (of_views, of_alerts):
            one.end()


def newest_by_key(records: Iterable[Message]) -> dict[bytes, bytes | None]:
    """What a compacted topic comes to."""
    return {record.key() or b"": record.value() for record in records}


def test_nothing_of_a_customer_is_left_and_no_alert_tells_of_its_end(
    broker: Broker, postgres: Postgres, tmp_path: Path, warm_jvm: WarmJvm
) -> None:
    dsn = postgres.create_database(f"deletions_{uuid4().hex}")
    accounts_schema.migrate(dsn)
    schema.migrate(dsn)
    alerting(dsn, add_rules)
    feed, kept = Feed(broker), Kept(tmp_path / "exports")
    installation = Installation(tmp_path, broker.bootstrap, dsn, jvm=warm_jvm)
    with processes(broker, dsn, tmp_path):
        published = "SELECT count(*) FROM alerts.environments WHERE published = version"
        looked_until(lambda: asked(dsn, published) == [(2,)], "rules are published", 60)
        for customer, words in WORDS.items():
            feed.view(f"{words}-done", words, words, is_whole=True, customer=customer)
            feed.view(f"{words}-open", words, words, is_whole=False, customer=customer)
        messages = "SELECT count(DISTINCT incident_id) FROM alerts.deliveries"
        looked_until(lambda: asked(dsn, messages) == [(2,)], "each customer has an incident with a message", 180)
        for words in WORDS.values():
            asked(
                dsn,
                f"INSERT INTO alerts.comments (incident_id, author, text) SELECT id, 'ada', '{words}' FROM alerts.incidents"
                f" WHERE event ->> 'rule_name' = '{words}' RETURNING id",
            )
        looked_until(lambda: len(committed(broker.bootstrap, topics.VIEWS)) >= 2, "the whole views are finished", 180)
        assert installation.run_once() == 0
        looked_until(lambda: holding(tmp_path, GONE) >= {"state-0", "state-1"}, "state is on disk", 60)

        # Killed between the withdrawal of rules and the note of it; then, after that, between that of incidents and its note.
        command, options = f"forget --customer {GONE} --whole-customer", {"deletion_settle_seconds": "30"}
        for crash_at in ("deletion_step:1", "deletion_step:4"):
            with installation.running(command, jvm=warm_jvm, crash_at=crash_at, **options) as child:
                wait_for_exit(child)
                assert child.exit_code == -signal.SIGKILL
        with installation.running(command, jvm=warm_jvm, **options) as child:
            wait_for_exit(child)
            assert child.exit_code == 0, (tmp_path / "finalizer.log").read_text()[-3000:]
        asyncio.run(delete_exports(dsn, kept))

        # The request is the proof, and the log is the organisation's.
        assert tables_holding(dsn, GONE) == {"accounts.deletions", "accounts.audit", "serving.forgotten"}
        assert tables_holding(dsn, GONE_WORDS) == {"accounts.audit"}
        looked_until(lambda: "state-1" not in holding(tmp_path, GONE), "alerts' files are written again", 120)
        looked_until(lambda: not holding(tmp_path, GONE_WORDS) & {"state-0", "state-1"}, "so are those of views", 120)
        # Files of state are written again all the time: one may be gone, and the next one not looked at yet.
        parts = {"state-0", "state-1", "warehouse"}
        looked_until(lambda: parts <= holding(tmp_path, STAYS), "the other customer's are there", 120)
        assert {"alerts.rules", "alerts.incidents", "alerts.comments"} <= tables_holding(dsn, STAYS_WORDS)
        left = newest_by_key(committed(broker.bootstrap, topics.ALERTS_CHANGELOG))
        assert not [key for key, value in left.items() if value is not None and GONE.encode() in key + value]
        assert any(value is not None and STAYS.encode() in key for key, value in left.items())
        rules = newest_by_key(committed(broker.bootstrap, topics.ALERT_RULES))
        assert rules[GONE.encode()] is None
        assert rules[STAYS.encode()] is not None
        events = [ALERT_EVENT.decode(one.value() or b"") for one in committed(broker.bootstrap, topics.ALERT_EVENTS)]
    # Its incident may have recovered before; that its rule is gone is told to nobody.
    assert "rule_changed" not in {one.end_reason for one in events if one.customer_id == GONE}
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT state FROM accounts.deletions").fetchone() == ("done",)
        found = dict(connection.execute("SELECT step, found FROM accounts.deletion_steps").fetchall())
    # The counts are those of the runs that were killed.
    assert (found[Step.RULES]["rules"], found[Step.RULES]["rule_versions"]) == (1, 1)
    learned = found[Step.LEARNED]
    assert (learned["incidents"], learned["comments"]) == (1, 1)
    assert min(learned["messages"], learned["changes"]) >= 1
    # Where it may still be is shown, with the time at which it is gone.
    assert {"beacons", "live", "alert_rules", "alert_events", "alerts.changelog"} <= set(found[Step.TOPICS])
