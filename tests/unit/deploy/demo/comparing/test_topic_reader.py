"""Reading a demo's topics: what a busy broker says for a moment ends no demo."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from deploy.demo.comparing.topic_reader import TopicReader
from shared.settings import Settings


@pytest.mark.parametrize(
    "code", [KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._TIMED_OUT]
)
def test_a_partition_that_changes_its_leader_is_queried_again(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    assert not reader(monkeypatch, code).read(0)
    # As long as there is time, in the same look.
    assert reader(monkeypatch, code, times=2).read(60)


def test_a_client_that_keeps_a_former_epoch_of_the_leaders_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    made = TopicReader(Settings(kafka_bootstrap="127.0.0.1:1"))
    former = made._admin

    def ends() -> dict[tuple[str, int], int]:
        if made._admin is former:
            raise KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH))
        return {}

    monkeypatch.setattr(made, "_ends", ends)
    assert made.read(60)


def test_anything_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException):
        reader(monkeypatch, KafkaError.TOPIC_AUTHORIZATION_FAILED).read(0)


def reader(monkeypatch: pytest.MonkeyPatch, code: int, times: int = 1000) -> TopicReader:
    """One whose broker has this error for so many questions, and then no records."""
    errors = [KafkaException(KafkaError(code)) for _ in range(times)]

    def ends() -> dict[tuple[str, int], int]:
        if errors:
            raise errors.pop()
        return {}

    made = TopicReader(Settings(kafka_bootstrap="127.0.0.1:1"))
    monkeypatch.setattr(made, "_ends", ends)
    return made
