"""Parties take turns: the many that one waits for delay no other, and one leaves what others need."""

import asyncio

import pytest

from services.rim.turns.fair_turns import FairTurns


class Work:
    """Holds turns until the test ends them; notes in which order they began."""

    def __init__(self, turns: FairTurns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, *names: str) -> None:
        """The party of a name is its first letter."""
        for name in names:
            self.gates[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._hold(name))
            await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        self.gates[name].set()
        await self.tasks[name]
        for _ in range(3):
            await asyncio.sleep(0)

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.begun.append(name)
            await self.gates[name].wait()


async def test_a_party_with_many_leaves_a_turn_to_another_and_then_waits_behind_it() -> None:
    work = Work(FairTurns(3, of_one=2))
    await work.begin("a1", "a2", "a3", "a4", "a5")
    assert work.begun == ["a1", "a2"]
    await work.begin("b1", "c1", "b2", "c2")
    assert work.begun == ["a1", "a2", "b1"]
    # Those that wait: of a three, of c two, of b one.
    for ends, begins in (("a1", "a3"), ("b1", "c1"), ("a2", "b2"), ("a3", "a4"), ("c1", "c2"), ("b2", "a5")):
        await work.end(ends)
        assert work.begun[-1] == begins
    for name in ("a4", "a5", "c2"):
        await work.end(name)
    assert len(work.begun) == len(work.tasks)
    assert work.turns.is_free("a")


async def test_alone_a_party_never_has_more_than_its_own_turns() -> None:
    work = Work(FairTurns(2, of_one=1))
    await work.begin("a1", "a2", "a3")
    assert (work.begun, work.turns.waiting("a")) == (["a1"], 2)
    for name, begun in (("a1", 2), ("a2", 3), ("a3", 3)):
        await work.end(name)
        assert len(work.begun) == begun


@pytest.mark.parametrize("is_called", [False, True])
async def test_who_is_cancelled_leaves_its_turn_to_the_next(is_called: bool) -> None:
    work = Work(FairTurns(1, of_one=1))
    await work.begin("a1", "b1", "c1")
    if is_called:
        # The turn is handed over, and given up before it is taken.
        work.turns.give_back("a")
    work.tasks["b1"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await work.tasks["b1"]
    if not is_called:
        await work.end("a1")
    await asyncio.sleep(0)
    assert work.begun == ["a1", "c1"]
    if is_called:
        work.tasks["a1"].cancel()
        return
    await work.end("c1")
    assert work.turns.is_free("b")
