"""Ends of inputs: a client that has forgotten the leaders is replaced, and what it was asked is asked again."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.processor.runtime.kafka import end_offsets
from services.processor.runtime.kafka.end_offsets import FAILED_ASKS_MAX, Ends
from shared.settings import Settings

HANGING, FAILING = ("beacons", 0), ("beacons", 1)


class Broker:
    """Stands in for the admin client: until it is replaced, it never answers for one partition and fails for the other."""

    made = 0

    def __init__(self, _config: Any) -> None:
        type(self).made += 1
        self._is_first = self.made == 1

    def list_offsets(self, request: Any, **_: Any) -> dict[Any, Future[Any]]:
        answers: dict[Any, Future[Any]] = {at: Future() for at in request}
        for at, answer in answers.items():
            if not self._is_first:
                answer.set_result(SimpleNamespace(offset=7))
            elif (at.topic, at.partition) == FAILING:
                answer.set_exception(KafkaException(KafkaError(KafkaError._NOENT)))
        return answers


def test_what_a_client_was_asked_before_it_was_replaced_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_offsets, "AdminClient", Broker)
    monkeypatch.setattr(end_offsets, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(Broker, "made", 0)
    ends = Ends(Settings())
    monkeypatch.setattr(ends, "_leaders", SimpleNamespace(of=lambda _: {1: [HANGING], 2: [FAILING]}))
    for _ in range(FAILED_ASKS_MAX):
        ends._ask()
        assert ends.of(["beacons"], 0) == ends.of(["beacons"], 1) == {}
    assert Broker.made == 2
    before = ends.answers
    ends._ask()
    assert ends.answers == before + 2, "who waits for news sees it"
    assert [ends.of(["beacons"], number)["beacons"].offset for number in (0, 1)] == [7, 7]


def test_partitions_whose_leader_has_changed_are_asked_for_by_a_client_that_does_not_know_the_former(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(end_offsets, "AdminClient", Broker)
    monkeypatch.setattr(end_offsets, "ASK_SECONDS", 0.0)
    # From the second client on all are answered.
    monkeypatch.setattr(Broker, "made", 1)
    found = ({None: [HANGING, FAILING]}, {1: [HANGING], 2: [FAILING]}, {1: [HANGING, FAILING]}, {1: [HANGING]})
    leaders = iter(found)
    ends = Ends(Settings())
    monkeypatch.setattr(ends, "_leaders", SimpleNamespace(of=lambda _: next(leaders)))
    made = []
    for _ in found:
        ends._ask()
        made.append(Broker.made - 2)
    assert made == [0, 0, 1, 1], "what was not known, or is not watched any more, has not changed"
