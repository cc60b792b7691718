"""Work on threads, which nobody can stop, and two coroutines at the same time."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

#: After so much work a thread pauses for so long: the loop gets the interpreter at once then, and not after each 5 ms of waiting.
_WORK_SECONDS: Final = 0.004
_PAUSE_SECONDS: Final = 0.0005


async def until_over(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Runs `work` on a thread. A caller that is cancelled leaves when it is over.

    A thread cannot be stopped. So what its caller holds, such as the one turn of searches, is held until then.
    """
    return await _until_over(asyncio.to_thread(work, *given, **named), lambda: None)


async def _until_over(work: Coroutine[Any, Any, T], stop: Callable[[], None]) -> T:
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait([running])
        raise


class CpuTime:
    """The CPU time that work on a thread may take. The work asks often whether there is some left.

    Python runs one thread at a time. So the thread pauses at some of these questions, for the event loop.
    """

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._began: float | None = None
        self._paused = 0.0
        self._is_stopped = False

    def is_left(self) -> bool:
        """Whether the thread has worked for less than `seconds_max`, and its caller still waits."""
        now = time.thread_time()
        if self._began is None:
            self._began = self._paused = now
        if now - self._paused >= _WORK_SECONDS:
            self._paused = now
            time.sleep(_PAUSE_SECONDS)
        return not self._is_stopped and now - self._began < self._seconds_max

    async def spend(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """As `until_over`. If the caller is cancelled, no time is left."""
        return await _until_over(asyncio.to_thread(work, *given, **named), self._stop)

    def _stop(self) -> None:
        self._is_stopped = True


async def both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """The results of both, which run at the same time. If one fails, the other is cancelled before its error is raised."""
    error: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = group.create_task(first), group.create_task(second)
    except BaseExceptionGroup as failed:
        error = failed.exceptions[0]
    if error is not None:
        raise error
    return tasks[0].result(), tasks[1].result()
