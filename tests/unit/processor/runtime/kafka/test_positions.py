"""Seeks that do not work at once: tried again, across a pause too, and given up in the end."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.processor.runtime.kafka import positions as positions_module
from services.processor.runtime.kafka.positions import SEEK_TRIES_MAX, Positions, SeekFailed


class Client:
    """Refuses to seek so many times."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.sought: list[tuple[str, int, int]] = []
        self.epochs: list[int | None] = []
        self.resumed: list[tuple[str, int]] = []

    def seek(self, at: TopicPartition) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaException(KafkaError(KafkaError._STATE, "not ready"))
        self.sought.append((at.topic, at.partition, at.offset))
        self.epochs.append(at.leader_epoch)

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.resumed += [(at.topic, at.partition) for at in partitions]


def positions(client: Client) -> Positions:
    made = Positions(client, ["beacons"])  # type: ignore[arg-type]
    made.rewind("beacons", 5, 34)
    return made


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
    assert client.resumed == [("beacons", 5)]


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
    rewinding.rewind("beacons", 6, 34, 2)
    rewinding.carry_out_rewinds()
    assert client.sought == [("beacons", 5, 34), ("beacons", 6, 34)]
    assert client.epochs == [None, 2]
