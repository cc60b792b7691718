"""Work on threads, and two coroutines at the same time."""

import asyncio
import itertools
import threading
from types import SimpleNamespace

import pytest

from services.rim.turns import thread_work
from services.rim.turns.thread_work import CpuTime, both, until_over


async def test_a_caller_that_is_cancelled_leaves_when_its_search_is_over() -> None:
    began, goes_on = threading.Event(), threading.Event()
    turns = asyncio.Semaphore(1)

    def search() -> str:
        began.set()
        assert goes_on.wait(30)
        return "found"

    async def ask() -> str:
        async with turns:
            return await until_over(search)

    asked = asyncio.create_task(ask())
    await asyncio.to_thread(began.wait, 30)
    asked.cancel()
    for _ in range(100):
        await asyncio.sleep(0)
    assert turns.locked(), "its thread has the turn"
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert not turns.locked()


async def test_what_a_search_finds_and_raises_is_its_callers() -> None:
    assert await until_over(sum, [1, 2]) == 3
    with pytest.raises(TypeError):
        await until_over(sum, 3)  # type: ignore[arg-type]


async def test_if_one_of_both_fails_the_other_is_stopped_and_the_caller_has_the_error() -> None:
    is_stopped = False

    async def fail() -> int:
        raise LookupError

    async def wait() -> int:
        nonlocal is_stopped
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_stopped = True
            raise
        return 0

    with pytest.raises(LookupError):
        await both(wait(), fail())
    assert is_stopped
    assert await both(asyncio.sleep(0, 1), asyncio.sleep(0, 2)) == (1, 2)


async def test_a_caller_of_both_that_is_cancelled_leaves_when_the_work_of_both_is_over() -> None:
    began, goes_on = threading.Barrier(3), threading.Event()
    ended: list[int] = []

    def work(number: int) -> int:
        began.wait(30)
        assert goes_on.wait(30)
        ended.append(number)
        return number

    asked = asyncio.create_task(both(until_over(work, 1), until_over(work, 2)))
    await asyncio.to_thread(began.wait, 30)
    asked.cancel()
    for _ in range(100):
        await asyncio.sleep(0)
    assert not asked.done(), "its threads still run"
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert sorted(ended) == [1, 2]


async def test_the_error_of_one_of_both_keeps_its_cause() -> None:
    async def fail() -> int:
        raise LookupError from ValueError("why")

    with pytest.raises(LookupError) as raised:
        await both(fail(), asyncio.sleep(0, 1))
    assert isinstance(raised.value.__cause__, ValueError)


async def test_work_whose_caller_goes_away_has_no_time_left() -> None:
    began, time = threading.Event(), CpuTime(600)
    stopped: list[bool] = []

    def work() -> None:
        while time.is_left():
            began.set()
        stopped.append(True)

    asked = asyncio.create_task(time.spend(work))
    assert await asyncio.to_thread(began.wait, 30)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(60):
            await asked
    assert stopped == [True]


def test_work_pauses_for_the_loop_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    # Each look at the clock is a thousandth of a second after the last one: so many that floats have them exactly.
    looks = itertools.count()
    clock = SimpleNamespace(thread_time=lambda: next(looks) / 1024, sleep=pauses.append)
    monkeypatch.setattr(thread_work, "time", clock)
    left = CpuTime(0.1)
    while left.is_left():
        pass
    # One after each 4 ms, at the fifth look.
    assert len(pauses) == 20
    assert all(0 < one < 0.005 for one in pauses)
