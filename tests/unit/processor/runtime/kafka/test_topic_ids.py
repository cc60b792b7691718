"""Topic ids: a topic that was created again is noticed, and a broker that does not answer is no such topic."""

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
        self.asked: list[Future[Any]] = []

    def __len__(self) -> int:
        return 0

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        answers: dict[str, Future[Any]] = {name: Future() for name in (INPUT, CHANGELOG)}
        self.asked += answers.values()
        for answer in answers.values():
            if not HELD:
                answer.set_result(SimpleNamespace(topic_id="id"))
        return answers


HELD: list[bool] = []


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> TopicIds:
    monkeypatch.setattr(topic_ids_module, "AdminClient", Broker)
    monkeypatch.setattr(Broker, "made", 0)
    HELD.clear()
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
    monkeypatch.setattr(topic_ids_module, "ANSWER_SECONDS", 1e9)
    assert [ids.now() for _ in range(3)] == [{INPUT: "id", CHANGELOG: "id"}] * 3
    monkeypatch.setattr(topic_ids_module, "ANSWER_SECONDS", -1.0)
    ids.now()
    assert Broker.made == 1


def test_a_slot_at_work_does_not_wait_for_the_answer(ids: TopicIds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids_module, "ASK_SECONDS", 0.0)
    HELD.append(True)
    assert [ids.news() for _ in range(3)] == [None] * 3
    assert ids._admin is not None
    asked = ids._admin.asked  # type: ignore[attr-defined]
    assert len(asked) == 2, "it asks once at a time"
    for answer in asked:
        answer.set_result(SimpleNamespace(topic_id="other"))
    assert ids.news() == {INPUT: "other", CHANGELOG: "other"}


def test_an_answer_that_failed_is_asked_for_again(ids: TopicIds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids_module, "ASK_SECONDS", 0.0)
    HELD.append(True)
    assert ids.news() is None
    assert ids._admin is not None
    for answer in ids._admin.asked:  # type: ignore[attr-defined]
        answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    assert ids.news() is None
    HELD.clear()
    assert [ids.news(), ids.news()] == [None, {INPUT: "id", CHANGELOG: "id"}]
