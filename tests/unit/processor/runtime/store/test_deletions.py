"""How long deletions are kept is read from the broker, once for all partitions that are taken together."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.processor.runtime.store import deletions as deletions_module
from services.processor.runtime.store.deletions import Deletions
from shared.settings import Settings
from shared.topics import VIDEO_VIEWS_CHANGELOG


class Answer:
    """What the broker says of a topic."""

    def __init__(self, kept_ms: int | None) -> None:
        self._kept_ms = kept_ms

    def result(self) -> dict[str, str]:
        if self._kept_ms is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "nobody answers"))
        return {"delete.retention.ms": str(self._kept_ms)}


class Broker:
    """Stands in for Kafka: counts what it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept_ms: int | None = 60_000
        self.asked = 0
        self.clients = 0
        monkeypatch.setattr(deletions_module, "AdminClient", self._client)
        monkeypatch.setattr(deletions_module, "describe_topics", self._describe)
        self.deletions = Deletions(Settings(), VIDEO_VIEWS_CHANGELOG)

    def _client(self, _config: Any) -> list[Any]:
        """As the client is: false when it is idle."""
        self.clients += 1
        return []

    def _describe(self, _admin: Any, names: list[str], **_: Any) -> dict[str, Answer]:
        self.asked += 1
        return {name: Answer(self.kept_ms) for name in names}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


def test_one_answer_serves_all_that_are_taken_together(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions_module, "ANSWER_SECONDS", 1e9)
    assert [broker.deletions.kept_ms() for _ in range(8)] == [60_000] * 8
    assert broker.asked == 1


def test_what_an_operator_changes_is_seen_by_the_next_takeover(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions_module, "ANSWER_SECONDS", -1.0)
    assert broker.deletions.kept_ms() == 60_000
    broker.kept_ms = 1_000
    assert broker.deletions.kept_ms() == 1_000


def test_without_an_answer_nothing_is_assumed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions_module, "ANSWER_SECONDS", -1.0)
    broker.deletions.kept_ms()
    broker.kept_ms = None
    with pytest.raises(KafkaException):
        broker.deletions.kept_ms()


def test_one_client_asks_until_it_fails_and_a_new_one_asks_then(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client keeps to a broker that is dead, and every takeover would wait for it."""
    monkeypatch.setattr(deletions_module, "ANSWER_SECONDS", -1.0)
    for _ in range(3):
        broker.deletions.kept_ms()
    assert broker.clients == 1
    broker.kept_ms = None
    with pytest.raises(KafkaException):
        broker.deletions.kept_ms()
    broker.kept_ms = 1_000
    assert (broker.deletions.kept_ms(), broker.clients) == (1_000, 2)
