"""Watches: queries that wait for an answer, repeated after every commit of their partition. Used by the slot's loop only."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final, NamedTuple

from services.processor.engine.application.access import LookFailed
from services.processor.runtime.questions import Unanswered

WATCHES_MAX: Final = 4_096

#: What a question says, None while there is no answer, and under which member id.
_Ask = Callable[[], tuple[bytes | None, str]]


class _Watch(NamedTuple):
    partition: int
    ask: _Ask
    answer: Future[tuple[bytes | None, str]]
    #: Until when somebody waits at the most, monotonic seconds.
    until: float

    @property
    def is_wanted(self) -> bool:
        return not self.answer.cancelled() and time.monotonic() < self.until


class Watches:
    """Bounded. A watch whose client has gone is dropped at its turn, or when its place is needed."""

    def __init__(self, watches_max: int = WATCHES_MAX) -> None:
        self._watches_max = watches_max
        self._watches: list[_Watch] = []
        #: Up to which commit each partition's watches were asked.
        self._asked: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, partition: int, ask: _Ask, until: float) -> Future[tuple[bytes | None, str]]:
        """Waits for an answer, until then (monotonic seconds). Raises `Unanswered` when too many wait, or as `ask` does."""
        answer: Future[tuple[bytes | None, str]] = Future()
        found, member_id = ask()
        if found is not None:
            answer.set_result((found, member_id))
            return answer
        if len(self._watches) >= self._watches_max:
            self._watches = [watch for watch in self._watches if watch.is_wanted]
        if len(self._watches) >= self._watches_max:
            raise Unanswered("too many questions wait for a commit")
        self._watches.append(_Watch(partition, ask, answer, until))
        return answer

    def turn(self, commits: Mapping[int, int]) -> None:
        """Repeats the queries of each partition that has a new commit or is no longer at work.

        `commits` are the numbers of the last commits of the partitions at work.
        """
        changed = {
            watch.partition
            for watch in self._watches
            if watch.partition not in commits or self._asked.get(watch.partition) != commits[watch.partition]
        }
        if changed:
            self._watches = [watch for watch in self._watches if watch.partition not in changed or not _is_over(watch)]
            self._asked = dict(commits)


def _is_over(watch: _Watch) -> bool:
    """Repeats the query. Returns whether the watch is over: answered, failed, or without a client."""
    if not watch.is_wanted:
        return True
    try:
        found, member_id = watch.ask()
    except (Unanswered, LookFailed) as error:
        if watch.answer.set_running_or_notify_cancel():
            watch.answer.set_exception(error)
        return True
    if found is None:
        return False
    if watch.answer.set_running_or_notify_cancel():
        watch.answer.set_result((found, member_id))
    return True
