"""Questions to the slot's loop: bounded, answered in order, dropped when nobody waits any more."""

import pytest

from services.processor.engine.application.access import LookFailed
from services.processor.runtime.questions import ANSWERED_PER_TURN_MAX, Questions, Unanswered


def test_a_question_is_answered_by_the_loops_next_turn_and_not_before() -> None:
    questions = Questions()
    answer = questions.ask(lambda: 42)
    assert not answer.done()
    questions.answer()
    assert answer.result(0) == 42


def test_a_full_queue_refuses_at_once_and_has_room_again_after_a_turn() -> None:
    questions = Questions(questions_max=2)
    questions.ask(lambda: 1)
    questions.ask(lambda: 2)
    with pytest.raises(Unanswered, match="too many questions wait"):
        questions.ask(lambda: 3)
    questions.answer()
    answer = questions.ask(lambda: 3)
    questions.answer()
    assert answer.result(0) == 3


def test_one_turn_answers_only_so_many() -> None:
    questions = Questions()
    answers = [questions.ask(lambda: None) for _ in range(ANSWERED_PER_TURN_MAX + 1)]
    questions.answer()
    assert [answer.done() for answer in answers] == [True] * ANSWERED_PER_TURN_MAX + [False]
    questions.answer()
    assert answers[-1].done()


def test_what_nobody_waits_for_any_more_is_not_asked() -> None:
    questions = Questions()
    called: list[int] = []
    answer = questions.ask(lambda: called.append(1))
    answer.cancel()
    questions.answer()
    assert called == []


@pytest.mark.parametrize("error", [Unanswered("being taken"), LookFailed("the application raised")])
def test_what_cannot_be_answered_says_why_to_who_asked(error: Exception) -> None:
    def question() -> None:
        raise error

    questions = Questions()
    answer = questions.ask(question)
    questions.answer()
    assert answer.exception(0) is error
