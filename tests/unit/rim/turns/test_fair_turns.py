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
        """The party of a name is its first letter, its member what is between this and the number."""
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
        async with self.turns.turn(name[0], name[1:-1]):
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


async def test_the_many_members_of_a_party_have_the_turns_of_one_party() -> None:
    work = Work(FairTurns(1, of_one=1))
    await work.begin(*(f"a{member}1" for member in "klmnop"), "b1", "b2")
    for ends, begins in (("ak1", "al1"), ("al1", "b1"), ("b1", "am1"), ("am1", "b2")):
        await work.end(ends)
        assert work.begun[-1] == begins
    for name in ("b2", "an1", "ao1", "ap1"):
        await work.end(name)
    assert work.turns.is_free("a", "k")


async def test_a_member_leaves_turns_of_its_party_to_others_of_it_and_then_waits_behind_them() -> None:
    work = Work(FairTurns(4, of_one=3, of_member=2))
    await work.begin("ak1", "ak2", "ak3", "ak4", "al1")
    assert work.begun == ["ak1", "ak2", "al1"]
    await work.begin("al2", "b1", "b2")
    assert work.begun == ["ak1", "ak2", "al1", "b1"]
    assert work.turns.waiting("a") == 3
    for ends, begins in (("al1", "al2"), ("b1", "b2"), ("ak1", "ak3"), ("al2", "ak3"), ("b2", "ak3")):
        await work.end(ends)
        assert work.begun[-1] == begins
    await work.end("ak2")
    assert work.begun[-1] == "ak4"
    for name in ("ak3", "ak4"):
        await work.end(name)
    assert (work.turns.waiting("a"), work.turns.is_free("a", "k")) == (0, True)
