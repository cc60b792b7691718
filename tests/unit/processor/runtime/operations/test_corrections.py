"""Corrections of positions: which partitions are fenced and changed, and what the next meta row says."""

from typing import Any

import msgspec
import pytest

from services.processor.engine.state.meta import META_KEY, Meta, decode_meta
from services.processor.runtime.kafka.topic_ids import TopicIds
from services.processor.runtime.operations import corrections
from services.processor.runtime.operations.corrections import (
    NothingToCorrect,
    begin_at,
    begin_topic,
    positions,
    set_clocks_back,
)
from shared.settings import Settings
from tests.unit.processor.engine.counting import APPLICATION

(INPUT,) = (topic.name for topic in APPLICATION.inputs)
PARTITIONS = APPLICATION.partitions(Settings().profile)
META = Meta(
    {INPUT: 120},
    5_000,
    7,
    failing={b"k": (3, 100)},
    version="v",
    version_at=90,
    leader_epochs={INPUT: 3},
    topic_ids={INPUT: "former", "c": "d"},
)


class Changelog:
    """Stands in for Kafka: the last meta row of each partition, and which partitions were fenced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.metas: dict[int, Meta] = dict.fromkeys(range(PARTITIONS - 1), META)
        self.fenced: list[int] = []
        self.present = "new"
        monkeypatch.setattr(corrections, "partition_producer", lambda _settings, _application, one: Producer(self, one))
        monkeypatch.setattr(corrections, "last_meta", lambda _settings, _application, one: self.metas.get(one))
        monkeypatch.setattr(TopicIds, "now", lambda _: {INPUT: self.present, "c": "d"})


class Producer:
    def __init__(self, changelog: Changelog, partition: int) -> None:
        self._changelog = changelog
        self._partition = partition
        self._row: Meta | None = None

    def init_transactions(self, _seconds: float) -> None:
        self._changelog.fenced.append(self._partition)

    def begin_transaction(self) -> None:
        assert self._changelog.fenced[-1] == self._partition

    def produce(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        assert (topic, key, partition) == (APPLICATION.changelog.name, META_KEY, self._partition)
        self._row = decode_meta(value)

    def commit_transaction(self, _seconds: float) -> None:
        assert self._row is not None
        self._changelog.metas[self._partition] = self._row


@pytest.fixture
def changelog(monkeypatch: pytest.MonkeyPatch) -> Changelog:
    return Changelog(monkeypatch)


def run(command: Any, *arguments: Any) -> Any:
    return command(Settings(), APPLICATION, *arguments)


def test_every_partition_of_a_former_topic_begins_with_the_new_one_at_its_first_record(changelog: Changelog) -> None:
    changed = run(begin_topic, INPUT)
    assert [one.partition for one in changed] == changelog.fenced == list(range(PARTITIONS - 1))
    wanted = Meta({}, 5_000, 8, version="v", topic_ids={INPUT: "new", "c": "d"})
    assert set(map(msgspec.msgpack.encode, changelog.metas.values())) == {msgspec.msgpack.encode(wanted)}
    with pytest.raises(NothingToCorrect, match="was folded from the present topic"):
        run(begin_topic, INPUT)
    assert len(changelog.fenced) == PARTITIONS - 1, "nothing is fenced where nothing is to be corrected"


def test_a_topic_that_is_no_input_is_refused(changelog: Changelog) -> None:
    with pytest.raises(NothingToCorrect, match="not an input"):
        run(begin_topic, "c")
    assert changelog.fenced == []


def test_a_partition_whose_log_was_cut_off_continues_from_there(changelog: Changelog) -> None:
    (changed,) = run(begin_at, INPUT, 1, 90)
    assert (changed.partition, changed.next_offsets) == (1, {INPUT: 90})
    assert changelog.fenced == [1]
    assert (changelog.metas[1].leader_epochs, changelog.metas[1].topic_ids) == ({}, META.topic_ids)
    with pytest.raises(NothingToCorrect, match="not beyond offset 120"):
        run(begin_at, INPUT, 0, 120)
    with pytest.raises(NothingToCorrect, match="not an input"):
        run(begin_at, INPUT, 999, 90)
    assert changelog.fenced == [1]


def test_clocks_that_are_later_are_set_back_and_others_are_left_alone(changelog: Changelog) -> None:
    changelog.metas[1] = msgspec.structs.replace(META, clock_ms=4_000)
    run(set_clocks_back, 4_000, [0, 1])
    assert changelog.fenced == [0]
    assert changelog.metas[0] == msgspec.structs.replace(META, clock_ms=4_000, commit_number=8)
    with pytest.raises(NothingToCorrect, match="no clock is after"):
        run(set_clocks_back, 5_000, None)
    with pytest.raises(NothingToCorrect, match="no partitions \\[999\\]"):
        run(set_clocks_back, 4_000, [0, 999])


def test_positions_of_all_partitions_are_listed_without_a_fence(changelog: Changelog) -> None:
    listed = run(positions)
    assert [(one.partition, one.clock_ms) for one in listed[-2:]] == [(PARTITIONS - 2, 5_000), (PARTITIONS - 1, None)]
    assert changelog.fenced == []
