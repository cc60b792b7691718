"""Topic ids: a topic that was created again is noticed, and a broker that does not answer is no such topic."""

import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.processor.runtime.kafka import topic_ids as topic_ids_module
from services.processor.runtime.kafka.topic_ids import TopicIds, TopicReplaced, check
from shared.settings import Settings
from tests.unit.processor.engine.counting import APPLICATION

(INPUT,) = (topic.name for topic in APPLICATION.inputs)
CHANGELOG = APPLICATION.changelog.name


class Broker:
    """Stands in for the admin client, which is false when it is idle."""

    made = 0

    def __init__(self, _config: Any) -> None:
        type(self).made += 1

    def __len__(self) -> int:
        return 0

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        answers: dict[str, Future[Any]] = {name: Future() for name in (INPUT, CHANGELOG)}
        for answer in answers.values():
            if not FAILING:
                answer.set_result(SimpleNamespace(topic_id="id"))
            elif FAILING[0] is not None:
                answer.set_exception(FAILING[0])
        return answers


#: With what the broker fails; None: it does not answer.
FAILING: list[Exception | None] = []


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> TopicIds:
    monkeypatch.setattr(topic_ids_module, "AdminClient", Broker)
    monkeypatch.setattr(Broker, "made", 0)
    FAILING.clear()
    return TopicIds(Settings(), APPLICATION)


def test_a_topic_that_was_created_again_is_named_with_the_command_that_begins_with_it() -> None:
    with pytest.raises(TopicReplaced, match=f"partition 3 .* topic {INPUT} with id a; .* id b.* begin-topic {INPUT}$"):
        check(APPLICATION, 3, {INPUT: "a", CHANGELOG: "c"}, {INPUT: "b", CHANGELOG: "c"})
    with pytest.raises(TopicReplaced, match="the rows of the application are lost"):
        check(APPLICATION, 3, {INPUT: "a", CHANGELOG: "c"}, {INPUT: "a", CHANGELOG: "d"})


def test_the_same_topics_and_topics_of_which_nothing_is_known_are_no_other_ones() -> None:
    check(APPLICATION, 3, {INPUT: "a"}, {INPUT: "a", CHANGELOG: "c"})
    check(APPLICATION, 3, {INPUT: "a", "a former input": "b"}, {INPUT: "a"})
    check(APPLICATION, 3, {}, {INPUT: "a"})


def test_one_client_and_one_answer_serve_all_partitions_that_are_taken_together(
    ids: TopicIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_ids_module, "ASK_SECONDS", 1e9)
    assert [ids.now() for _ in range(3)] == [{INPUT: "id", CHANGELOG: "id"}] * 3
    first = ids.newest
    # What explains a failure must not be older than it.
    assert ids.now(is_fresh=True) == first
    assert ids.newest is not first
    first = ids.newest
    monkeypatch.setattr(topic_ids_module, "ASK_SECONDS", 0.0)
    assert ids.now() == first
    assert ids.newest is not first, "it was asked again"
    assert Broker.made == 1


@pytest.mark.parametrize("error", [KafkaException(KafkaError(KafkaError._TIMED_OUT)), None])
def test_a_broker_that_does_not_say_holds_up_nothing_and_a_new_client_finds_another(
    ids: TopicIds, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr(topic_ids_module, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(topic_ids_module, "ANSWER_SECONDS_MAX", 0.01)
    FAILING.append(error)
    assert ids.now() is None
    FAILING.clear()
    assert ids.now() == {INPUT: "id", CHANGELOG: "id"}
    assert Broker.made == 2


def test_a_slot_at_work_asks_from_a_thread_until_it_is_stopped(ids: TopicIds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids_module, "ASK_SECONDS", 0.001)
    ids.start()
    deadline = time.monotonic() + 30
    while ids.newest is None:
        assert time.monotonic() < deadline
    ids.stop()
    assert ids._thread is not None
    assert not ids._thread.is_alive()
