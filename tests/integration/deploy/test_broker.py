"""The local broker: starts once formatted, keeps its data over a stop and over a kill, says why when it dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from deploy import topics as topics_command
from deploy.local.broker import Broker
from deploy.local.paths import ROOT
from deploy.local.process import ProcessDied, wait_until
from deploy.topics import create_topics, mend_topics
from services.rim.kafka.connection import TopicsWrong, verify_topics
from shared import topics
from shared.partitioning import partition_of
from shared.settings import Settings
from shared.topics import Topic
from tests.integration.parts.brokers import another_cluster
from tests.integration.parts.installed import kafka, variables

pytestmark = pytest.mark.integration


def test_a_record_outlives_a_clean_restart_and_a_kill(tmp_path: Path) -> None:
    with Broker(tmp_path / "a folder with spaces") as broker:
        settings = kafka(broker.bootstrap)
        # One that is named twice is made once.
        created = create_topics(settings, [*topics.ALL, topics.BEACONS])
        assert created == [topic.name for topic in topics.ALL]

        _produce(broker, "beacons", b"before restart")
        broker.restart()
        _produce(broker, "beacons", b"before kill")
        broker.kill()
        assert not broker.is_running
        broker.start()

        assert create_topics(settings) == []
        assert _read(broker, "beacons", 2) == [b"before restart", b"before kill"]
    assert not broker.is_running


def test_a_broker_that_dies_at_its_start_says_why(broker: Broker, tmp_path: Path) -> None:
    second = another_cluster(tmp_path / "second", port=broker.port)
    with pytest.raises(ProcessDied, match=r"(?s)broker ended with exit code 1; .*Address already in use"):
        second.start()
    assert not second.is_running


def test_a_topic_that_is_not_as_declared_is_named(broker: Broker, settings: Settings) -> None:
    other = Topic("mistaken", key="", schema="", owner="this test", cleanup="delete")
    create_topics(settings, [other])
    declared = Topic("mistaken", key="", schema="", owner="this test", cleanup="compact")

    with pytest.raises(TopicsWrong, match=r"mistaken has cleanup\.policy=delete, declared is compact"):
        create_topics(settings, [declared])
    with pytest.raises(TopicsWrong, match="absent is missing"):
        verify_topics(settings, [Topic("absent", key="", schema="", owner="", cleanup="delete")])


def test_a_controller_that_does_not_answer_in_time_is_asked_again(
    broker: Broker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_command, "_REQUEST_SECONDS", 1.0)
    ask, asked = topics_command._ask, []

    def hangs_at_first(*given: Any) -> Any:
        broker.child.signal(signal.SIGCONT if asked else signal.SIGSTOP)
        asked.append(given)
        return ask(*given)

    monkeypatch.setattr(topics_command, "_ask", hangs_at_first)
    try:
        assert create_topics(settings, [Topic("waited", key="", schema="", owner="this test", cleanup="delete")]) == [
            "waited"
        ]
    finally:
        broker.child.signal(signal.SIGCONT)
    assert len(asked) > 1


def test_the_command_for_topics_changes_nothing_that_is_there(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    before = set(admin.list_topics(timeout=60).topics)
    environ = os.environ | variables(broker.bootstrap)
    for more in ((), ("--check",)):
        command = [sys.executable, "-m", "deploy.topics", *more]
        run = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
    assert set(admin.list_topics(timeout=60).topics) == before


def test_settings_that_weaken_an_answer_of_200_are_refused_and_mended_by_the_command(own_broker: Broker) -> None:
    settings = kafka(own_broker.bootstrap)
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    weak = {"unclean.leader.election.enable": "true", "message.timestamp.type": "CreateTime"}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in weak.items()]
    resource = ConfigResource(ResourceType.TOPIC, topics.BEACONS.name, incremental_configs=entries)
    for answer in admin.incremental_alter_configs([resource], request_timeout=60).values():
        answer.result()

    def are_known(values: dict[str, str]) -> bool:
        """Whether the broker knows what its controller has noted."""
        (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topics.BEACONS.name)]).values()
        known = described.result(60)
        return all(known[name].value == value for name, value in values.items())

    wait_until(lambda: are_known(weak), 60, "the settings are in force")
    with pytest.raises(TopicsWrong, match=r"beacons has unclean\.leader\.election\.enable=true.*deploy\.topics --mend"):
        verify_topics(settings, [topics.BEACONS])
    assert set(mend_topics(settings)) == {
        "beacons: unclean.leader.election.enable=false",
        "beacons: message.timestamp.type=LogAppendTime",
    }
    mended = {"unclean.leader.election.enable": "false", "message.timestamp.type": "LogAppendTime"}
    wait_until(lambda: are_known(mended), 60, "the mended settings are in force")
    verify_topics(settings, topics.ALL)
    assert mend_topics(settings) == []
    # One broker holds one copy: it cannot give what production promises.
    with pytest.raises(TopicsWrong, match="has 1 replicas, profile production declares 3"):
        verify_topics(Settings(kafka_bootstrap=own_broker.bootstrap, topics_profile="production"), [topics.BEACONS])


def test_a_topic_whose_clients_set_the_time_is_refused(broker: Broker, settings: Settings) -> None:
    by_clients = {"message.timestamp.type": "CreateTime"}
    create_topics(settings, [Topic("stamped", key="", schema="", owner="", cleanup="delete", extra=by_clients)])

    with pytest.raises(
        TopicsWrong, match=r"stamped has message\.timestamp\.type=CreateTime, declared is LogAppendTime"
    ):
        verify_topics(settings, [Topic("stamped", key="", schema="", owner="", cleanup="delete")])


def test_producers_and_the_java_default_agree_on_partitions(broker: Broker, settings: Settings) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    found: dict[bytes | None, int | None] = {}
    keys = [f"customer:{number}".encode() for number in range(50)]
    for key in keys:
        producer.produce("late", b"{}", key=key, on_delivery=lambda _, m: found.update({m.key(): m.partition()}))
    assert producer.flush(60) == 0

    partitions = topics.LATE.partitions(settings.profile)
    assert found == {key: partition_of(key, partitions) for key in keys}


def _produce(broker: Broker, topic: str, value: bytes) -> None:
    failures: list[str] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    producer.produce(
        topic, value, partition=0, on_delivery=lambda error, _: failures.append(str(error)) if error else None
    )
    assert producer.flush(30) == 0
    assert failures == []


def _read(broker: Broker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "test-broker", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        values: list[bytes] = []

        def are_there() -> bool:
            # A broker that has just begun may answer with an error first.
            found = [record.value() for record in consumer.consume(count, timeout=1) if record.error() is None]
            values.extend(value for value in found if value is not None)
            return len(values) >= count

        wait_until(are_there, 120, f"{count} records are read")
        return values
    finally:
        consumer.close()
