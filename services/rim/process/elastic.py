"""Threads for work that may hang: what hangs holds up itself alone. Bounded.

A `ThreadPoolExecutor` of n threads stops when n calls hang, as all calls to one slow broker may. Here a thread that has been busy
with one call for some time does not count, and `MovingPermits` count only holders that make progress. A queue alone brings no more
threads: hundreds that compute would keep the interpreter from the thread that they work for.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

#: A thread that has been busy with one task for so long does not count.
PATIENCE_SECONDS: Final = 0.25
#: A thread without work ends after this.
IDLE_SECONDS: Final = 5.0
#: A holder of a permit that has not moved for so long does not count.
STALLED_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.2


class _Task(NamedTuple):
    future: Future[Any]
    call: Callable[[], Any]


class ElasticPool(Executor):
    """Runs tasks on `size` threads, not counting those that have been busy with one task for `patience_seconds`, `most` in all."""

    def __init__(self, name: str, size: int, *, most: int, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._name = name
        self._size = size
        self._most = most
        self._patience_seconds = patience_seconds
        self._lock = threading.Lock()
        self._has_task = threading.Condition(self._lock)
        self._is_short = threading.Condition(self._lock)
        self._tasks: deque[_Task] = deque()
        #: Threads at all, and those that take a task next; since when each of the others has its task (monotonic seconds).
        self._threads = self._idle = 0
        self._busy_since: dict[int, float] = {}
        self._keeper: threading.Thread | None = None
        self._is_closed = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Runs the call on a thread. Raises RuntimeError after `shutdown`."""
        task = _Task(Future(), partial(function, *arguments, **named))
        with self._lock:
            if self._is_closed:
                raise RuntimeError(f"pool {self._name} is shut down")
            self._tasks.append(task)
            if len(self._tasks) > self._idle and self._threads < self._size:
                self._start()
            elif len(self._tasks) > self._idle:
                self._watch()
            self._has_task.notify()
        return task.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Takes no more tasks. Threads end after the tasks that wait; none is joined; `wait` has no effect."""
        with self._lock:
            self._is_closed = True
            dropped = list(self._tasks) if cancel_futures else []
            if cancel_futures:
                self._tasks.clear()
            self._has_task.notify_all()
            self._is_short.notify_all()
        for task in dropped:
            task.future.cancel()

    def _start(self) -> None:
        self._threads += 1
        self._idle += 1
        threading.Thread(target=self._run, name=f"{self._name}-{self._threads}").start()

    def _watch(self) -> None:
        """Has the keeper look after tasks that wait."""
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name=f"{self._name}-keeper", daemon=True)
            self._keeper.start()
        self._is_short.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            if task.future.set_running_or_notify_cancel():
                try:
                    result = task.call()
                except BaseException as error:  # noqa: BLE001  (as an executor does)
                    task.future.set_exception(error)
                else:
                    task.future.set_result(result)
            # Neither the call nor its outcome lives until the next task.
            result = task = None
            with self._lock:
                self._idle += 1
                del self._busy_since[threading.get_ident()]

    def _next(self) -> _Task | None:
        """The next task; None when the thread ends."""
        with self._lock:
            until = time.monotonic() + IDLE_SECONDS
            while not self._tasks:
                left = until - time.monotonic()
                if self._is_closed or left <= 0:
                    self._threads -= 1
                    self._idle -= 1
                    return None
                self._has_task.wait(left)
            self._idle -= 1
            self._busy_since[threading.get_ident()] = time.monotonic()
            return self._tasks.popleft()

    def _keep(self) -> None:
        with self._lock:
            while not self._is_closed or self._tasks:
                if not self._tasks:
                    self._is_short.wait()
                    continue
                now = time.monotonic()
                stuck = sum(now - since >= self._patience_seconds for since in self._busy_since.values())
                may_start = min(self._size + stuck, self._most) - self._threads
                for _ in range(min(len(self._tasks) - self._idle, may_start)):
                    self._start()
                self._is_short.wait(_LOOK_SECONDS / 4)


class Moving:
    """Something that takes long and makes progress, or none."""

    def __init__(self) -> None:
        self.moved_at = time.monotonic()

    def moved(self) -> None:
        """It has made progress."""
        self.moved_at = time.monotonic()


class MovingPermits:
    """At most `most` hold a permit at a time, not counting those that have made no progress for `STALLED_SECONDS`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[Moving] = []
        self._changed = threading.Condition()

    @contextmanager
    def held(self, moving: Moving, given_up: threading.Event) -> Iterator[bool]:
        """Waits for a permit and holds it; False, without one, once `given_up` is set."""
        with self._changed:
            while not given_up.is_set() and self._counted() >= self._most:
                self._changed.wait(_LOOK_SECONDS)
            has_one = not given_up.is_set()
            if has_one:
                moving.moved()
                self._held.append(moving)
        try:
            yield has_one
        finally:
            with self._changed:
                if has_one:
                    self._held.remove(moving)
                self._changed.notify()

    def _counted(self) -> int:
        stalled_at = time.monotonic() - STALLED_SECONDS
        return sum(one.moved_at > stalled_at for one in self._held)
