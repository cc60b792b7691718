"""A player release whose beacons are rejected, from its POSTs to the incident; rules made, changed and deleted are in force soon.

Collector, broker, processor, notifications and Postgres are real processes.
"""

import http.client
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from shared.topics import ALERT_EVENTS, ALERT_RULES, ALERTS_CHANGELOG, LIVE, PRESENCE, Topic
from tests.integration.alerts.alerting import alerting, asked
from tests.integration.alerts.notifying import notifications
from tests.integration.collector.collecting import Collector
from tests.integration.parts.brokers import OF_COLLECTOR
from tests.integration.parts.slots import Slot, wait_until
from tests.unit.collector.intake.bodies import mux_body, mux_event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

#: Processes start meanwhile, and each bucket waits for its time, on a busy machine.
SECONDS_MAX = 180.0

#: Beacons of one body, of which the broken release's are half rejected: enough for a rule in a bucket of 5 s.
EVENTS = 40
RULE = RuleBody(
    customer="acme",
    name="Rejected",
    metric="rejected",
    condition="threshold",
    threshold=0.2,
    by="release",
    viewers_min=20,
)


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (*OF_COLLECTOR, ALERT_RULES, LIVE, ALERT_EVENTS, ALERTS_CHANGELOG, PRESENCE)


def body(release: str, *, is_broken: bool) -> bytes:
    """A player's POST: its first beacon names its release; the others say only what changed."""
    view, broken = f"view-of-{release}", {"e": ...} if is_broken else {}
    events = [mux_event(xid=view, xsqno=number, **(broken if number % 2 else {})) for number in range(2, EVENTS)]
    return mux_body(mux_event(xid=view, xsqno=1, e="viewstart", pswve=release), *events)


@contextmanager
def players(port: int) -> Iterator[None]:
    """Two players that post again and again: one of a release that works, and one of a release that does not."""
    stop = threading.Event()

    def play() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
        # A request every half second is a rate, not a wait for something.
        while not stop.wait(0.5):
            for release in ("1.0", "2.0"):
                headers = {"Content-Type": "text/plain"}
                connection.request("POST", "/", body(release, is_broken=release == "2.0"), headers)
                connection.getresponse().read()
        connection.close()

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class Installation:
    """What is at work, and the rule's id."""

    dsn: str
    rule_id: str

    def change(self, rule: RuleBody | None, version: int) -> None:
        """Changes the rule as the API does, or deletes it."""

        async def work(made: Alerting, actor: Actor) -> None:
            if rule is None:
                await made.delete_rule(EVERYTHING, self.rule_id, actor)
            else:
                await made.change_rule(EVERYTHING, self.rule_id, rule, actor, version=version)

        alerting(self.dsn, work)

    def changes(self) -> list[tuple[str, int, str | None, dict[str, str]]]:
        """What became of incidents: change, the rule's version, why it ended, and the worst slice."""
        found = "SELECT event FROM alerts.changes ORDER BY (event->>'rule_version')::int, revision"
        events: list[dict[str, Any]] = [row[0] for row in asked(self.dsn, found)]
        return [(one["change"], one["rule_version"], one["end_reason"], one["slices"][0]["slice"]) for one in events]


def test_a_release_that_is_rejected_is_told_and_a_changed_rule_is_in_force(
    broker: Broker, dsn: str, tmp_path: Path
) -> None:
    rule_id: str = alerting(dsn, lambda made, actor: made.add_rule(EVERYTHING, RULE, actor))
    notifying = notifications(broker.bootstrap, dsn, free_port(), tmp_path)
    slot = Slot(broker.bootstrap, tmp_path, 0, PROCESSOR_APPLICATION="alerts")
    port, here = free_port(), Installation(dsn, rule_id)
    notifying.start()
    slot.start()
    try:
        with Collector(broker.bootstrap, tmp_path, port, "c-1"), players(port):
            wait_until(lambda: len(here.changes()) >= 1, "the release is an incident", SECONDS_MAX)
            assert here.changes()[0] == ("opened", 1, None, {"release": "2.0"})
            # Who measures something else has another incident: the change is in force.
            other = RuleBody(**{name: getattr(RULE, name) for name in RULE.__struct_fields__} | {"by": "collector"})
            here.change(other, 1)
            wait_until(lambda: len(here.changes()) >= 3, "the changed rule is in force", SECONDS_MAX)
            assert here.changes()[1] == ("closed", 1, "rule_changed", {"release": "2.0"})
            assert here.changes()[2] == ("opened", 2, None, {"collector": "c-1"})
            here.change(None, 2)
            wait_until(lambda: len(here.changes()) >= 4, "the deleted rule is in force no more", SECONDS_MAX)
            assert here.changes()[3] == ("closed", 2, "rule_changed", {"collector": "c-1"})
    finally:
        slot.end()
        notifying.kill()
    audited = [row[0] for row in asked(dsn, "SELECT action FROM accounts.audit ORDER BY id")]
    assert audited == ["made_alert_rule", "changed_alert_rule", "deleted_alert_rule"]
    assert json.loads(
        asked(dsn, "SELECT json_agg(version ORDER BY version)::text FROM alerts.rule_versions")[0][0]
    ) == [1, 2]
