"""Those who ask for a changelog's ends at a time share a client, which ends with the last of them, or is replaced when it fails."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.processor.runtime.kafka import changelog_ends
from services.processor.runtime.kafka.changelog_ends import ChangelogEnds
from shared.settings import Settings
from tests.unit.processor.engine.counting import APPLICATION

ASKING = 4


class Client:
    """Stands in for a consumer: its answers wait for each other, and those of a partition may fail."""

    made: ClassVar[list["Client"]] = []
    #: Passed when so many ask at a time.
    together: ClassVar[threading.Barrier] = threading.Barrier(ASKING)
    failing: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        self.is_closed = False
        self.made.append(self)

    def get_watermark_offsets(self, at: TopicPartition, *, timeout: float) -> tuple[int, int] | None:
        assert not self.is_closed
        assert timeout > 0
        self.together.wait(30)
        if at.partition in self.failing:
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return at.partition, 10 * at.partition

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> ChangelogEnds:
    def made(_settings: Any, _application: Any, _name: str, isolation: str) -> Client:
        assert isolation == "read_uncommitted"
        return Client()

    monkeypatch.setattr(changelog_ends, "changelog_consumer", made)
    monkeypatch.setattr(Client, "made", [])
    monkeypatch.setattr(Client, "together", threading.Barrier(ASKING))
    monkeypatch.setattr(Client, "failing", set())
    return ChangelogEnds(Settings(), APPLICATION)


def asked(ends: ChangelogEnds) -> list[Any]:
    """What all are answered that ask at a time; the error of those that fail."""

    def ask(partition: int) -> Any:
        try:
            return ends.of(partition)
        except KafkaException as error:
            return error.args[0].code()

    with ThreadPoolExecutor(ASKING) as pool:
        return list(pool.map(ask, range(ASKING)))


def test_those_who_ask_at_a_time_share_a_client_that_ends_with_the_last_of_them(ends: ChangelogEnds) -> None:
    for count in (1, 2):
        assert asked(ends) == [(number, 10 * number) for number in range(ASKING)]
        assert [client.is_closed for client in Client.made] == [True] * count


def test_a_client_that_fails_is_replaced_for_those_who_ask_later(ends: ChangelogEnds, monkeypatch: Any) -> None:
    monkeypatch.setattr(Client, "failing", {2})
    answers = asked(ends)
    assert answers == [(0, 0), (1, 10), KafkaError.NOT_LEADER_FOR_PARTITION, (3, 30)]
    monkeypatch.setattr(Client, "failing", set())
    assert asked(ends)[2] == (2, 20)
    assert [client.is_closed for client in Client.made] == [True, True]


def test_no_answer_in_time_is_an_error(ends: ChangelogEnds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "get_watermark_offsets", lambda *_, **__: None)
    with pytest.raises(KafkaException, match=r"no watermarks of video_views\.changelog/1"):
        ends.of(1)
    assert [client.is_closed for client in Client.made] == [True]
