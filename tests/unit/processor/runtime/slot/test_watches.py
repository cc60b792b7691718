"""Watches: a question is asked again after commits of its partition, and nobody waits for what cannot come."""

import time
from concurrent.futures import Future

import pytest

from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.watches import Watches


class Asked:
    """A question, and what is said to it."""

    def __init__(self, answer: bytes | None = None) -> None:
        self.answer = answer
        self.times = 0
        self.error: Exception | None = None

    def __call__(self) -> tuple[bytes | None, str]:
        self.times += 1
        if self.error is not None:
            raise self.error
        return self.answer, "me"


def added(
    watches: Watches, asked: Asked, partition: int = 3, seconds: float = 600.0
) -> Future[tuple[bytes | None, str]]:
    return watches.add(partition, asked, time.monotonic() + seconds)


def test_what_is_there_is_reported_at_once() -> None:
    assert added(Watches(), Asked(b"a")).result(0) == (b"a", "me")


def test_it_is_asked_again_after_each_commit_of_its_partition_alone() -> None:
    watches, asked = Watches(), Asked()
    answer = added(watches, asked)
    for commits in ({3: 1}, {3: 1}, {3: 1, 4: 7}, {3: 1, 4: 8}):
        watches.turn(commits)
    assert (asked.times, answer.done()) == (2, False)
    asked.answer = b"a"
    watches.turn({3: 2, 4: 8})
    assert answer.result(0) == (b"a", "me")
    watches.turn({3: 3})
    assert asked.times == 3


def test_one_that_comes_later_is_asked_after_the_next_commit() -> None:
    watches, first, second = Watches(), Asked(), Asked()
    added(watches, first)
    watches.turn({3: 1})
    answer = added(watches, second)
    second.answer = b"b"
    watches.turn({3: 2})
    assert answer.result(0)[0] == b"b"


@pytest.mark.parametrize("commits", [{3: None}, {}])
def test_where_the_partition_is_reassigned_or_gone_nobody_waits(commits: dict[int, int | None]) -> None:
    watches, asked = Watches(), Asked()
    answer = added(watches, asked)
    watches.turn({3: 1})
    asked.error = Unanswered("gone")
    watches.turn(commits)
    with pytest.raises(Unanswered, match="gone"):
        answer.result(0)


def test_no_more_wait_than_may_and_those_that_nobody_wants_make_room() -> None:
    watches, asked = Watches(watches_max=2), Asked()
    first, _ = added(watches, asked), added(watches, asked, seconds=-1.0)
    first.cancel()
    added(watches, asked)
    added(watches, asked)
    with pytest.raises(Unanswered, match="too many"):
        added(watches, asked)
    asked.answer = b"a"
    watches.turn({3: 1})
    added(watches, Asked())
