"""A fenced slot: whether another process has its id, or only a member that has no process any more."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.processor.runtime.slot import fencing
from services.processor.runtime.slot.fencing import stays


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "ASK_SECONDS", 0.0)


def members(*answers: list[str] | None) -> Callable[[], list[str]]:
    """The slots of the group's members, answer by answer, the last one for ever; None: no answer."""
    left: Iterator[list[str] | None] = iter(answers)
    last: list[list[str] | None] = [None]

    def ask() -> list[str]:
        last[0] = next(left, last[0])
        if last[0] is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return last[0]

    return ask


def test_a_member_that_stays_longer_than_a_session_is_another_process() -> None:
    assert stays("pod-0/1", members(["pod-0/0", "pod-0/1"]), seconds=0.05) is True


@pytest.mark.parametrize("last", [[], ["pod-0/0"]])
def test_a_member_that_goes_within_a_session_had_no_process(last: list[str]) -> None:
    assert stays("pod-0/1", members(["pod-0/0", "pod-0/1"], ["pod-0/1"], last), seconds=1e9) is False


def test_a_group_that_does_not_answer_at_first_is_asked_again() -> None:
    assert stays("pod-0/1", members(None, None, []), seconds=1e9) is False
    assert stays("pod-0/1", members(None, ["pod-0/1"]), seconds=0.0) is True


def test_a_group_that_never_answers_is_not_waited_for_without_end() -> None:
    assert stays("pod-0/1", members(None), seconds=0.0, unanswered_seconds_max=0.05) is None
