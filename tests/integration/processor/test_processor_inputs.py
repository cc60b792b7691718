"""Several inputs on a real broker: joined right through kills, hand-overs and an upgrade of the rows."""

import os
import random
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from deploy.local import process
from deploy.local.broker import Broker
from services.processor.engine.driver import Driver
from shared import topics
from shared.partitioning import partition_of
from shared.topics import Topic
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import ROOT, wait_until
from tests.integration.processor.join_slot import SESSIONS
from tests.unit.processor.engine.joining import CHANGELOG, JOINED, LEFT, RIGHT, application

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

HOUR_MS = 3_600_000
InputRecord = tuple[Topic, bytes, bytes]


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    """Those of the join."""
    return (LEFT, RIGHT, JOINED, CHANGELOG, topics.LATE, topics.REJECTED)


class JoinSlot:
    """One slot as a process of its own."""

    def __init__(self, bootstrap: str, folder: Path, number: int, store_format: int = 1) -> None:
        self._log = folder / f"slot-{number}-{store_format}.log"
        arguments = [bootstrap, str(folder), str(number), str(store_format)]
        argv = [sys.executable, "-m", "tests.integration.processor.join_slot", *arguments]
        with self._log.open("ab") as log:
            self.process = process.launch(argv, log.fileno(), os.environ, ROOT, None)

    def has_taken(self) -> bool:
        """Whether it works a partition."""
        assert self.process.poll() is None, self.log()
        return "partition_taken_over" in self.log()

    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


def sessions(random_: random.Random, at_ms: int, keys: int) -> list[InputRecord]:
    """What two topics say of many keys, each in several sessions, out of order."""
    records = [
        (random_.choice([LEFT, RIGHT]), b"key-%d" % key, b"%d %d.%d" % (at_ms + random_.randrange(3_000), key, number))
        for key in range(keys)
        for number in range(random_.randint(1, 12))
    ]
    random_.shuffle(records)
    return records


def closing(at_ms: int) -> list[InputRecord]:
    """A record of every partition so far ahead that the sessions of all others close."""
    keys: dict[int, bytes] = {}
    for number in range(10_000):
        keys.setdefault(partition_of(b"close-%d" % number, PARTITIONS), b"close-%d" % number)
    return [(topic, key, b"%d -" % (at_ms + 2 * HOUR_MS)) for key in keys.values() for topic in (LEFT, RIGHT)]


def produce(bootstrap: str, records: list[InputRecord]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for topic, key, value in records:
        producer.produce(topic.name, value, key, partition_of(key, PARTITIONS))
    assert producer.flush(60) == 0


def truth(records: list[InputRecord]) -> list[tuple[bytes, bytes]]:
    """What a calm run in memory makes of it, key by key."""
    found = []
    for key in {key for _, key, _ in records if key.startswith(b"key-")}:
        driver = Driver(application(SESSIONS))
        far = 100 * HOUR_MS + int(time.time() * 1000)
        driver.pipe_all([(*each, far) for each in records if each[1] == key], commit_every=100)
        driver.advance_to(far)
        found += [(key, output.value) for output in driver.outputs(JOINED)]
    return sorted(found)


class Joined:
    """All committed records of topic `joined`."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "test-joined",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign([TopicPartition(JOINED.name, number, 0) for number in range(PARTITIONS)])
        self.found: list[tuple[bytes, bytes]] = []

    def read(self) -> list[tuple[bytes, bytes]]:
        for message in self._consumer.consume(1000, 0.3):
            assert message.error() is None, message.error()
            self.found.append((message.key() or b"", message.value() or b""))
        return sorted(self.found)

    def close(self) -> None:
        self._consumer.close()


def test_two_inputs_are_joined_once_through_kills_handovers_and_an_upgrade(own_broker: Broker, tmp_path: Path) -> None:
    random_ = random.Random(6)
    base_ms = int(time.time() * 1000) - 100 * HOUR_MS
    joined = Joined(own_broker.bootstrap)
    records: list[InputRecord] = []

    def send(more: list[InputRecord]) -> None:
        records.extend(more)
        produce(own_broker.bootstrap, more)

    def slot(number: int, store_format: int = 1) -> JoinSlot:
        slots.append(JoinSlot(own_broker.bootstrap, tmp_path, number, store_format))
        return slots[-1]

    slots: list[JoinSlot] = []
    try:
        first = slot(0)
        send(sessions(random_, base_ms, 60))
        wait_until(first.has_taken, "the first slot works")
        second = slot(1)
        # Half of the partitions, of both inputs, move while there is work.
        send(sessions(random_, base_ms + 2_000, 60))
        wait_until(second.has_taken, "the second slot works")
        first.kill()
        send(sessions(random_, base_ms + 4_000, 60))
        # An upgrade: the rows so far are in format 1.
        first = slot(0, store_format=2)
        wait_until(first.has_taken, "the first slot works again")
        assert second.terminate() == 0, second.log()
        send(sessions(random_, base_ms + 6_000, 60))
        send(closing(base_ms))
        expected = truth(records)
        wait_until(lambda: len(joined.read()) >= len(expected), "every session is written", 180)
        assert joined.read() == expected
        assert first.terminate() == 0, first.log()
        # A rollback too far.
        third = slot(0)
        assert third.process.wait(120) != 0
        assert "store open has rows of format 2; this version reads 1" in third.log()
    finally:
        joined.close()
        for each in slots:
            if each.process.poll() is None:
                each.kill()
