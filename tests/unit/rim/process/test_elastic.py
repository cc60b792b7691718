"""Tasks that hang hold up themselves alone; threads are bounded and end when nothing is to be done."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack

import pytest

from services.rim.process import elastic
from services.rim.process.elastic import ElasticPool, Moving, MovingPermits

SECONDS_MAX = 60.0
SIZE = 4


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """Until it is set, what waits for it hangs."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, hang: threading.Event) -> Iterator[ElasticPool]:
    monkeypatch.setattr(elastic, "IDLE_SECONDS", 0.1)
    made = ElasticPool("test", SIZE, most=12)
    yield made
    hang.set()
    made.shutdown()


def names(pool: str = "test") -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(f"{pool}-")]


def finished(futures: list[Future[int]]) -> list[int]:
    return [future.result(SECONDS_MAX) for future in futures]


def test_tasks_run_on_no_more_threads_than_the_pool_has(pool: ElasticPool) -> None:
    running: set[str] = set()

    def work(number: int) -> int:
        running.add(threading.current_thread().name)
        return number

    assert finished([pool.submit(work, number) for number in range(200)]) == list(range(200))
    assert len(running) <= SIZE


def test_a_long_queue_alone_brings_no_more_threads() -> None:
    """Hundreds of takeovers that compute with a thread each would keep the folding thread from the interpreter."""
    pool = ElasticPool("queue", SIZE, most=64, patience_seconds=SECONDS_MAX)
    most, pause = [0], threading.Event()

    def work() -> None:
        most[0] = max(most[0], len([name for name in names("queue") if name != "queue-keeper"]))
        pause.wait(0.01)

    for future in [pool.submit(work) for _ in range(300)]:
        future.result(SECONDS_MAX)
    pool.shutdown()
    assert most[0] <= SIZE


def test_what_hangs_on_every_thread_does_not_hold_up_others(pool: ElasticPool, hang: threading.Event) -> None:
    hanging = [pool.submit(hang.wait) for _ in range(2 * SIZE)]
    assert finished([pool.submit(int, number) for number in range(20)]) == list(range(20))
    assert not any(one.done() for one in hanging)


def test_threads_are_bounded_and_a_task_beyond_them_waits(pool: ElasticPool, hang: threading.Event) -> None:
    begun = threading.Semaphore(0)

    def work() -> None:
        begun.release()
        hang.wait()

    tasks = [pool.submit(work) for _ in range(15)]
    for _ in range(12):
        assert begun.acquire(timeout=SECONDS_MAX)
    assert len([name for name in names() if name != "test-keeper"]) == 12
    # Those that no thread has taken may still be given up.
    assert sum(task.cancel() for task in tasks) == 3


def test_threads_without_work_end(pool: ElasticPool) -> None:
    finished([pool.submit(int, number) for number in range(20)])
    for thread in threading.enumerate():
        if thread.name.startswith("test-") and thread.name != "test-keeper":
            thread.join(SECONDS_MAX)
    assert [name for name in names() if name != "test-keeper"] == []
    assert pool.submit(int, 7).result(SECONDS_MAX) == 7


def test_a_task_that_raises_has_its_error_and_the_thread_goes_on(pool: ElasticPool) -> None:
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(SECONDS_MAX)
    assert pool.submit(int, 7).result(SECONDS_MAX) == 7


@pytest.mark.parametrize("cancels", [True, False])
def test_a_pool_that_is_shut_down_takes_nothing_more(cancels: bool, hang: threading.Event) -> None:
    pool = ElasticPool("test", 1, most=1)
    pool.submit(hang.wait)
    waits = pool.submit(int, 7)
    pool.shutdown(cancel_futures=cancels)
    with pytest.raises(RuntimeError):
        pool.submit(int, 8)
    hang.set()
    if cancels:
        with pytest.raises(CancelledError):
            waits.result(SECONDS_MAX)
    else:
        assert waits.result(SECONDS_MAX) == 7


def test_permits_are_given_again_for_those_who_make_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    permits, given_up = MovingPermits(2), threading.Event()
    moving = [Moving() for _ in range(3)]
    now = 100.0
    monkeypatch.setattr(elastic.time, "monotonic", lambda: now)
    holds: Callable[[Moving], bool] = lambda one: stack.enter_context(permits.held(one, given_up))  # noqa: E731
    with ExitStack() as stack:
        assert holds(moving[0])
        assert holds(moving[1])
        now += elastic.STALLED_SECONDS
        moving[1].moved()
        # The first has stalled; a third would wait for as long as both of the others move.
        assert holds(moving[2])
        moving[0].moved()
        given_up.set()
        assert not holds(Moving())
    given_up.clear()
    with ExitStack() as stack:
        assert holds(moving[0])
        assert holds(moving[1])


def test_a_permit_that_is_given_back_is_the_next_ones() -> None:
    permits, given_up = MovingPermits(1), threading.Event()
    with ElasticPool("test", 2, most=2) as pool, permits.held(Moving(), given_up):

        def take() -> bool:
            with permits.held(Moving(), given_up) as has_permit:
                return has_permit

        waiting = pool.submit(take)
        assert not waiting.done()
    assert waiting.result(SECONDS_MAX)
