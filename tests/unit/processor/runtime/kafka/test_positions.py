"""What the client is given and when; seeks that do not work at once: tried again, across a pause too, and given up in the end."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from services.processor.runtime.kafka import positions as positions_module
from services.processor.runtime.kafka.positions import SEEK_TRIES_MAX, Positions, SeekFailed


class Client:
    """Refuses to seek so many times."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.sought: list[tuple[str, int, int]] = []
        self.epochs: list[int | None] = []
        #: Calls, each with its partitions; of those that begin, with the offset.
        self.assigned: list[list[tuple[str, int, int]]] = []
        self.unassigned: list[list[tuple[str, int]]] = []
        self.paused: list[tuple[str, int]] = []
        self.resumed: list[tuple[str, int]] = []

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned.append([(at.topic, at.partition, at.offset) for at in partitions])

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.unassigned.append([(at.topic, at.partition) for at in partitions])

    def seek(self, at: TopicPartition) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaException(KafkaError(KafkaError._STATE, "not ready"))
        self.sought.append((at.topic, at.partition, at.offset))
        self.epochs.append(at.leader_epoch)

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused += [(at.topic, at.partition) for at in partitions]

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.resumed += [(at.topic, at.partition) for at in partitions]


def positions(client: Client) -> Positions:
    """Of a client that reads a partition, which is to be read again."""
    made = Positions(client, ["beacons"])  # type: ignore[arg-type]
    made.rewind("beacons", 5, None)
    made.carry_out_rewinds()
    made.rewind("beacons", 5, 34)
    return made


def test_the_client_is_given_a_partition_only_with_the_offset_to_read_from() -> None:
    client = Client(refusals=0)
    made = Positions(client, ["commands", "users"])  # type: ignore[arg-type]
    made.start()
    assert client.assigned == [[]], "the group waits for an answer"
    made.rewind("commands", 5, 34, 2)
    made.rewind("users", 5, None)
    made.carry_out_rewinds()
    assert client.assigned[1:] == [[("commands", 5, 34)], [("users", 5, OFFSET_BEGINNING)]]
    # The client compares the leader epoch at a seek alone.
    assert client.sought == [("commands", 5, 34)]
    assert client.epochs == [2]


def test_only_what_the_client_was_given_is_taken_from_it() -> None:
    client = Client(refusals=0)
    made = positions(client)
    made.start()
    made.forget(5)
    made.stop([5, 6])
    made.stop([5])
    assert client.unassigned == [[("beacons", 5)], []]
    made.rewind("beacons", 5, 50)
    made.carry_out_rewinds()
    assert client.assigned[-1] == [("beacons", 5, 50)]


def test_a_paused_partition_goes_on_after_its_rewind() -> None:
    client = Client(refusals=0)
    made = positions(client)
    made.hold_back(5, lambda topic: True)
    made.carry_out_rewinds()
    assert (client.paused, client.sought, client.resumed) == ([("beacons", 5)], [("beacons", 5, 34)], [("beacons", 5)])


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    """The real client, beside the library's own broker in memory, which has a record in partition 0."""
    config: dict[str, Any] = {"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0}
    producer = Producer(config)
    brokers = producer.list_topics("beacons", timeout=20).brokers.values()
    producer.produce("beacons", b"record", partition=0)
    assert producer.flush(20) == 0
    bootstrap = ",".join(f"{one.host}:{one.port}" for one in brokers)
    made = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "error", "log_level": 0})
    yield made
    made.close()


def read(consumer: Consumer, made: Positions) -> None:
    """Returns when a record has come."""
    deadline = time.monotonic() + 20
    while not consumer.consume(1, 0.1):
        assert time.monotonic() < deadline, "no record came"
        made.carry_out_rewinds()


def test_a_partition_that_was_taken_away_while_it_was_paused_is_read_when_it_comes_back(consumer: Consumer) -> None:
    made = Positions(consumer, ["beacons"])
    made.rewind("beacons", 0, 0)
    read(consumer, made)
    made.hold_back(0, lambda topic: True)
    made.forget(0)
    made.stop([0])
    made.rewind("beacons", 0, 0)
    read(consumer, made)


def test_a_seek_is_tried_again_though_its_time_passed_while_the_process_was_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(positions_module, "SEEK_SECONDS_MAX", -1.0)
    client = Client(refusals=SEEK_TRIES_MAX)
    rewinding = positions(client)
    for _ in range(SEEK_TRIES_MAX):
        rewinding.carry_out_rewinds()
        assert rewinding.is_rewinding(("beacons", 5))
    rewinding.carry_out_rewinds()
    assert client.sought == [("beacons", 5, 34)]


def test_a_seek_that_never_works_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions_module, "SEEK_SECONDS_MAX", -1.0)
    rewinding = positions(Client(refusals=SEEK_TRIES_MAX + 1))
    for _ in range(SEEK_TRIES_MAX):
        rewinding.carry_out_rewinds()
    with pytest.raises(SeekFailed, match="cannot seek beacons/5"):
        rewinding.carry_out_rewinds()


def test_what_is_forgotten_is_not_sought() -> None:
    client = Client(refusals=0)
    rewinding = positions(client)
    rewinding.forget(5)
    rewinding.carry_out_rewinds()
    assert client.sought == []


def test_the_leader_is_asked_whether_its_log_was_cut_off_before_the_offset() -> None:
    client = Client(refusals=0)
    rewinding = positions(client)
    rewinding.rewind("beacons", 5, 34, 2)
    rewinding.carry_out_rewinds()
    assert client.sought == [("beacons", 5, 34)]
    assert client.epochs[-1] == 2
