"""Questions: how other threads query the slot's loop, the only thread that touches cores. Bounded, and answered within a turn."""

import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeVar

from services.processor.engine.application.access import LookFailed

T = TypeVar("T")

QUESTIONS_MAX: Final = 1_024
#: Answered in one turn of the loop: some ten milliseconds of the fold's time at the most.
ANSWERED_PER_TURN_MAX: Final = 128


class Unanswered(RuntimeError):
    """No slot can answer now; ask again soon. The text says why."""


class Looked(NamedTuple):
    """What a core's committed rows say of a key: JSON, or None where there is nothing."""

    json: bytes | None
    #: When the core committed last, monotonic seconds.
    committed_at: float
    #: Input records not yet folded; None while the end is not known.
    lag_records: int | None


class LookedInCopy(NamedTuple):
    """What a standby's copy says of a key: JSON, or None where it has nothing, which proves nothing."""

    json: bytes | None
    #: For how long the copy may have lacked what the changelog has, at the most, ms by this machine's clock and the broker's.
    age_ms: int
    #: Changelog records that it is known to lack.
    lag_records: int


class Questions:
    """Questions on their way to the loop, each a call to be made there."""

    def __init__(self, questions_max: int = QUESTIONS_MAX) -> None:
        self._waiting: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(questions_max)

    def ask(self, question: Callable[[], T]) -> Future[T]:
        """Lets the loop call `question`. Raises `Unanswered` when too many wait. Cancel the future if the answer is not needed."""
        answer: Future[T] = Future()
        try:
            self._waiting.put_nowait((question, answer))
        except queue.Full:
            raise Unanswered("too many questions wait") from None
        return answer

    def answer(self) -> bool:
        """Answers what waits; whether anything did. Called by the loop, between records."""
        has_any = not self._waiting.empty()
        for _ in range(ANSWERED_PER_TURN_MAX if has_any else 0):
            try:
                question, answer = self._waiting.get_nowait()
            except queue.Empty:
                break
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(question())
            except (Unanswered, LookFailed) as error:
                answer.set_exception(error)
        return has_any
