"""Webhooks on a real broker: a receiver that fails at first, one that always does, and a process that is killed between."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child
from shared.topics import API_ANOMALIES, WEBHOOKS_FAILED, Topic
from tests.integration.collector.collecting import SECONDS_MAX, reading
from tests.integration.parts.installed import variables
from tests.integration.parts.slots import wait_until
from tests.unit.webhooks.anomalies import revision
from tests.unit.webhooks.receiver import SECRET, Receiver, receiving

pytestmark = pytest.mark.integration

#: A message of this host is never taken.
REFUSED = "refused.example"


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (API_ANOMALIES, WEBHOOKS_FAILED)


class Webhooks:
    """The process, and what it says."""

    def __init__(self, bootstrap: str, url: str, log_file: Path) -> None:
        self._admin = f"http://127.0.0.1:{(port := free_port())}"
        self._environ = os.environ | {
            **variables(bootstrap),
            "WEBHOOKS_URL": url,
            "WEBHOOKS_SECRET": SECRET,
            "WEBHOOKS_ATTEMPTS_MAX": "3",
            "WEBHOOKS_BACKOFF_MS": "10",
            "WEBHOOKS_SESSION_MS": "6000",
            "WEBHOOKS_ADMIN_HOST": "127.0.0.1",
            "WEBHOOKS_ADMIN_PORT": str(port),
        }
        self._log_file = log_file
        self.child = self._make()

    def _make(self) -> Child:
        command = [sys.executable, "-m", "services.webhooks"]
        return Child("webhooks", command, log_file=self._log_file, env=self._environ)

    def start(self) -> None:
        self.child = self._make()
        self.child.start()

    def outcomes(self) -> dict[str, int]:
        """Messages by what became of them."""
        with urlopen(self._admin + "/metrics", timeout=SECONDS_MAX) as answer:
            lines = answer.read().decode().splitlines()
        found = (line.partition('_messages_total{outcome="')[2].split('"} ') for line in lines)
        return {one[0]: int(float(one[1])) for one in found if len(one) == 2}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    def status_of(message_id: str, before: int) -> int:
        refused = any(one.id == message_id and one.body["data"]["host"] == REFUSED for one in found.got)
        return 503 if refused or before < 2 else 200

    with receiving(status_of) as found:
        yield found


def send(broker: Broker, partition: int, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(API_ANOMALIES.name, value, b"key", partition)
    assert producer.flush(SECONDS_MAX) == 0


def test_each_anomaly_is_sent_signed_and_in_order_or_goes_to_the_dead_letter_topic(
    own_broker: Broker, receiver: Receiver, tmp_path: Path
) -> None:
    broker = own_broker
    webhooks = Webhooks(broker.bootstrap, receiver.url, tmp_path / "webhooks.log")
    webhooks.start()
    try:
        with reading(broker.bootstrap, WEBHOOKS_FAILED.name) as failed:
            send(broker, 0, revision(1), revision(2), revision(3, state="closed"))
            refused = revision(1, host=REFUSED)
            send(broker, 1, refused, b"{", revision(1, host="after.example"))
            failed.until(lambda records: len(records) == 2)
            wait_until(lambda: len(receiver.taken()) == 3, "all but the refused is sent")
        assert (dict(failed.records[0].headers)["reason"], failed.records[0].value) == (b"answered 503", refused)
        assert dict(failed.records[1].headers)["origin"] == b"api_anomalies/1/1"
        assert all(one.is_signed for one in receiver.got)
        first = [one.body["type"] for one in receiver.taken() if one.body["data"]["host"] == "api.example"]
        assert first == ["api_anomaly.opened", "api_anomaly.closed"]
        wanted = {"delivered": 3, "passed_over": 1, "dead_letter": 1, "undecodable": 1}
        wait_until(lambda: webhooks.outcomes() == wanted, "everything is counted")

        # Killed, with an anomaly meanwhile: nothing is lost, and a receiver knows a repeated message by its id.
        webhooks.child.kill()
        send(broker, 0, revision(1, host="later.example"))
        webhooks.start()
        hosts = lambda: [one.body["data"]["host"] for one in receiver.taken()]  # noqa: E731
        # The group waits for the one that was killed until its session is over.
        wait_until(lambda: "later.example" in hosts(), "what came meanwhile is sent", SECONDS_MAX)
        by_id = {one.id for one in receiver.taken()}
        assert len(by_id) == 4
        webhooks.child.stop(SECONDS_MAX)
        assert webhooks.child.exit_code == 0, webhooks.child.log_file.read_text()[-3000:]
        log = webhooks.child.log_file.read_text()
        assert "t0p" not in log
        assert SECRET not in log
    finally:
        webhooks.child.kill()
