"""Questions to Postgres: those of one organisation, however many, leave connections to others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.query.rim.engine import CALLER
from services.query.rim.in_turns import InTurns

AT_ONCE = 4


class Held:
    """Postgres, whose answers come when the test lets them."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.under_way: list[str] = []
        self.most = 0

    async def ask(self, read: Callable[[Any], Awaitable[Any]]) -> Any:
        self.under_way.append(CALLER.get()[0])
        self.most = max(self.most, len(self.under_way))
        try:
            await self.let.wait()
            return await read(None)
        finally:
            self.under_way.remove(CALLER.get()[0])


@asynccontextmanager
async def asking(postgres: InTurns, organisation: str, callers: int) -> AsyncIterator[list[asyncio.Task[str]]]:
    """A question of each of so many callers of an organisation, all at once."""

    async def one(number: int) -> str:
        CALLER.set((organisation, f"token:{number}"))

        async def read(_: Any) -> str:
            return organisation

        return await postgres.ask(read)

    tasks = [asyncio.create_task(one(number)) for number in range(callers)]
    # Each is at its turn, or waits for one.
    for _ in range(3):
        await asyncio.sleep(0)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_organisation_with_very_many_questions_leaves_a_connection_to_another() -> None:
    held = Held()
    postgres = InTurns(held, AT_ONCE)
    async with asking(postgres, "globex", 200) as many, asking(postgres, "acme", 1) as (other,):
        assert sorted(held.under_way) == ["acme", *["globex"] * (AT_ONCE - 1)]
        held.let.set()
        assert await other == "acme"
        assert await asyncio.gather(*many) == ["globex"] * 200
    # The pool below refuses those for which it has neither a connection nor a place to wait.
    assert held.most == AT_ONCE


async def test_who_goes_away_leaves_the_turn_to_the_next() -> None:
    held = Held()
    postgres = InTurns(held, 1)
    async with asking(postgres, "globex", 1) as (first,), asking(postgres, "acme", 1) as (second,):
        assert held.under_way == ["globex"]
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held.let.set()
        assert await second == "acme"
