"""Reading a demo's topics: what a busy broker says for a moment ends no demo."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from deploy.local.observe import TopicReader
from shared.settings import Settings


@pytest.mark.parametrize("code", [KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION])
def test_a_partition_that_changes_its_leader_is_asked_again(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    assert not reader(monkeypatch, code).read(0)


def test_anything_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException):
        reader(monkeypatch, KafkaError.TOPIC_AUTHORIZATION_FAILED).read(0)


def reader(monkeypatch: pytest.MonkeyPatch, code: int) -> TopicReader:
    def ends() -> None:
        raise KafkaException(KafkaError(code))

    made = TopicReader(Settings(kafka_bootstrap="127.0.0.1:1"))
    monkeypatch.setattr(made, "_ends", ends)
    return made
