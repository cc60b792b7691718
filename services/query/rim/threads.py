"""Work on threads, which nobody can stop, and two coroutines at the same time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def until_over(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Runs `work` on a thread. A caller that is cancelled leaves when it is over.

    A thread cannot be stopped. So what its caller holds, such as the one turn of searches, is held until then.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *given, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, T]) -> list[T]:
    """The results of both, which run at the same time. If one fails, the other is cancelled before its error is raised."""
    error: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in (first, second)]
    except BaseExceptionGroup as failed:
        error = failed.exceptions[0]
    if error is not None:
        raise error
    return [task.result() for task in tasks]
